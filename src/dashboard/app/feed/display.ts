import { signal } from '@preact/signals'
import { readStored, store } from '../storage.ts'

/** The choices of a reader about the rows of every list of events, kept in this browser. */
export const DENSITIES = ['compact', 'comfortable'] as const
export const TIMES = ['relative', 'absolute'] as const
type Density = (typeof DENSITIES)[number]
type Times = (typeof TIMES)[number]

/** The height of rows. */
export const density = signal<Density>(
  DENSITIES.find(one => one === readStored('density')) ?? 'compact',
)
/** Rows show how long ago an event happened, or the time of day. */
export const times = signal<Times>(TIMES.find(one => one === readStored('times')) ?? 'relative')

export function chooseDensity(chosen: Density): void {
  density.value = chosen
  store('density', chosen)
}

export function chooseTimes(chosen: Times): void {
  times.value = chosen
  store('times', chosen)
}
