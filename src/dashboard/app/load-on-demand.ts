import { content } from './first-content.ts'
import { loadWithPageStyle } from './lazy-page.tsx'

/** Loads the script with what pages need soon after their first content. */
export const loadAfter = () => content.then(() => import('./after-load.ts'))

/** Loads the script with what readers open from the keyboard or the list. */
export function loadOnDemand() {
  return loadWithPageStyle(import('./on-demand.ts'))
}
