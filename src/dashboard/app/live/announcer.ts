import { createThrottle, type Throttle } from './throttle.ts'
import type { Clock } from './clock.ts'

const ANNOUNCE_MS = 10_000

export interface Announcer extends Pick<Throttle, 'stop'> {
  /** So many events have come into view; `newest` is the title of the newest. */
  add(count: number, newest: string): void
}

/** Tells in one sentence what has come, seldom enough for somebody who listens to it. */
export function createAnnouncer(clock: Clock, say: (sentence: string) => void): Announcer {
  let sum = 0
  let latest = ''
  const speaking = createThrottle(clock, ANNOUNCE_MS, () => {
    say(sum === 1 ? `New event: ${latest}` : `${sum} new events, the newest: ${latest}`)
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
