import { effect, signal } from '@preact/signals'
import { readStored, store } from '../storage.ts'

// The choices of a reader about the rows of every list of events, kept in this browser.

export const DENSITIES = ['compact', 'comfortable'] as const
export const TIMES = ['relative', 'absolute'] as const

/** The height of rows. */
export const density = choose('density', DENSITIES)
/** Rows show how long ago an event happened, or the time of day. */
export const times = choose('times', TIMES)

/** The choice that is stored by a name, or else the first one. */
function choose<One extends string>(name: string, all: readonly [One, ...One[]]) {
  const chosen = signal(all.find(one => one === readStored(name)) ?? all[0])
  effect(() => store(name, chosen.value))
  return chosen
}
