// The states of threads. Pure: it also runs in the browser.

/** The place of each is its number in the database. */
export const STATES = ['resolved', 'succeeded', 'running', 'firing', 'failed'] as const
export type State = (typeof STATES)[number]

/** Returns whether a thread in a state is open: it goes on. */
export function isOpen(state: State | undefined): boolean {
  return state === 'firing' || state === 'running'
}
