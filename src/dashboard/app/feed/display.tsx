import { effect, signal } from '@preact/signals'
import { readStored, store } from '../storage.ts'

export const TIMES = ['relative', 'absolute'] as const

/** Rows show how long ago an event happened, or the time of day. It is kept in this browser. */
export const times = signal(TIMES.find(one => one === readStored('times')) ?? TIMES[0])
effect(() => store('times', times.value))
