import { loadWithPageStyle } from './lazy-page.tsx'

/** Loads the script with what readers open from the keyboard or the list. */
export function loadOnDemand() {
  return loadWithPageStyle(import('./on-demand.ts'))
}
