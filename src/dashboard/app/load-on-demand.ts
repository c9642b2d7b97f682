import { loadWithPageStyle } from './lazy-page.tsx'

const { promise, resolve } = Promise.withResolvers<void>()

/** Call when the page has its first content, which nothing else delays. */
export const showContent = resolve

/** Loads the script with what pages need soon after their first content. */
export const loadAfter = () => promise.then(() => import('./after-load.ts'))

/** Loads the script with what readers open from the keyboard or the list. */
export function loadOnDemand() {
  return loadWithPageStyle(import('./on-demand.ts'))
}
