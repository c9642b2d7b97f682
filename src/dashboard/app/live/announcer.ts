import { createThrottle, type Throttle } from './throttle.ts'
import type { Clock } from './clock.ts'

const ANNOUNCE_MS = 10_000

export interface Announcer extends Pick<Throttle, 'stop'> {
  /** Adds `count` shown events; `newest` is the title of the newest. */
  add(count: number, newest: string): void
}

/** Announces new events to screen readers, at most every ten seconds. */
export function createAnnouncer(clock: Clock, say: (sentence: string) => void): Announcer {
  let sum = 0
  let latest = ''
  const speaking = createThrottle(clock, ANNOUNCE_MS, () => {
    say(
      sum === 1 ? `New event: ${latest}` : `${sum.toLocaleString()} new events. Newest: ${latest}`,
    )
    sum = 0
  })
  return {
    add(count, newest) {
      sum += count
      latest = newest
      speaking.trigger()
    },
    stop: speaking.stop,
  }
}
