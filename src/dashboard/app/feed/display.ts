import { computed, signal } from '@preact/signals'
import { readStored, store } from '../storage.ts'

/** The choices of a reader about the rows of every list of events, kept in this browser. */
export const DENSITIES = ['compact', 'comfortable'] as const
export const TIMES = ['relative', 'absolute'] as const
type Density = (typeof DENSITIES)[number]
type Times = (typeof TIMES)[number]

const chosenDensity = signal(DENSITIES.find(one => one === readStored('density')))
const wide = matchMedia('(min-width: 60rem)')
const isWide = signal(wide.matches)
wide.addEventListener('change', () => (isWide.value = wide.matches))

/** The height of rows. Without a choice, rows are compact on wide screens. */
export const density = computed<Density>(
  () => chosenDensity.value ?? (isWide.value ? 'compact' : 'comfortable'),
)
/** Rows show how long ago an event happened, or the time of day. */
export const times = signal<Times>(TIMES.find(one => one === readStored('times')) ?? 'relative')

export function chooseDensity(chosen: Density): void {
  chosenDensity.value = chosen
  store('density', chosen)
}

export function chooseTimes(chosen: Times): void {
  times.value = chosen
  store('times', chosen)
}
