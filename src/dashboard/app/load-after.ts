import { content } from './first-content.ts'

/** Loads the script with what pages need soon after their first content. */
export const loadAfter = () => content.then(() => import('./after-load.ts'))
