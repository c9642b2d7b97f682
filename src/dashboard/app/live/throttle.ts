import { capitalize } from '../components/level.tsx'
import type { Row } from '../feed/log.ts'
import { toPlural } from '../locale.ts'
import type { Clock } from './clock.ts'

export interface Throttle {
  /** Runs the work now, or at the end of the current interval. Repeated calls cause one run. */
  trigger(): void
  /** Cancels a pending run. */
  stop(): void
  /** Runs pending work now. */
  flush(): void
}

/** Runs `work` at most once per interval. */
export function createThrottle(clock: Clock, intervalMs: number, work: () => void): Throttle {
  let last = -Infinity
  let cancel: (() => void) | undefined

  function run() {
    cancel = undefined
    last = clock.now()
    work()
  }

  return {
    trigger() {
      if (cancel) return
      const wait = last + intervalMs - clock.now()
      if (wait <= 0) run()
      // If the clock was set back, the wait must not exceed the interval.
      else cancel = clock.after(Math.min(wait, intervalMs), run)
    },
    stop() {
      cancel?.()
      cancel = undefined
    },
    flush() {
      if (!cancel) return
      cancel()
      run()
    },
  }
}

const ANNOUNCE_MS = 10_000
type Announced = Pick<Row, 'title' | 'level' | 'state'>
const NOTHING: Announced = { title: '' }

/**
 * Announces new events to screen readers, at most every ten seconds: the newest, or the newest of
 * the most urgent ones with its level. A thread is named with its state.
 */
export function createAnnouncer(clock: Clock, say: (sentence: string) => void) {
  let sum = 0
  let named = NOTHING
  const speaking = createThrottle(clock, ANNOUNCE_MS, () => {
    const { title, level, state } = named
    const why = level && toUrgency(named) ? `. ${capitalize(level)}` : sum === 1 ? '' : '. Newest'
    say(`${toPlural(sum, 'new event')}${why}: ${title}${state ? `, ${state}` : ''}`)
    sum = 0
    named = NOTHING
  })
  return {
    /** Adds shown events, newest first. */
    add(events: readonly Announced[]): void {
      sum += events.length
      for (const event of events.toReversed())
        if (toUrgency(event) >= toUrgency(named)) named = event
      speaking.trigger()
    },
    stop: speaking.stop,
  }
}

/** Returns 0 for the levels that are not urgent, and for a thread that ended well. */
function toUrgency({ level, state }: Announced): number {
  if (state === 'resolved' || state === 'succeeded') return 0
  return ['high', 'critical'].indexOf(level ?? '') + 1
}
