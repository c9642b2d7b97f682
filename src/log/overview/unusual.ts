// Tells unusual activity from the usual one. Pure, so that every rule has a test.

/** The events of three spans that end at the same time of a week. */
export interface Activity {
  /** Since the beginning of the hour; of a past week, the whole hour. */
  running: number
  /** In the hour before. */
  hour: number
  /** In the 24 hours before the running one. */
  day: number
}

/** A span with far more, or far fewer, events than in each of the past weeks. */
export interface Deviation {
  kind: 'loud' | 'silent'
  span: keyof Activity
  count: number
  /** The smallest and the largest count of the past weeks. */
  usual: { least: number; most: number }
}

/** Fewer weeks than this show no pattern. */
const MIN_WEEKS = 2
/** More events than this can be loud, so that a quiet project is not loud with its first events. */
const MIN_LOUD = 10
const FACTOR = 2
/** A count that was the same in this many weeks is no chance. */
const REGULAR_WEEKS = 3
/** How many standard deviations of a random count make a difference. */
const SPREAD = 4

/**
 * Compares activity with that of the same hours in past weeks, the last week first. `knownWeeks` is
 * the age of the project or channel. Weeks before that count only from the first one with events
 * on. Returns undefined for usual activity, and for less than two weeks to compare with.
 */
export function findDeviation(
  now: Activity,
  past: readonly Activity[],
  knownWeeks: number,
): Deviation | undefined {
  const oldest = past.findLastIndex(({ running, hour, day }) => running + hour + day > 0)
  const weeks = past.slice(0, Math.max(oldest + 1, Math.floor(knownWeeks)))
  if (weeks.length < MIN_WEEKS) return undefined
  const compare = (span: keyof Activity, kind: Deviation['kind']) => {
    const counts = weeks.map(week => week[span])
    const usual = { least: Math.min(...counts), most: Math.max(...counts) }
    const count = now[span]
    const isRegular = span === 'day' && weeks.length >= REGULAR_WEEKS && usual.least === usual.most
    const isUnusual =
      kind === 'loud'
        ? isLoud(count, usual.most)
        : isSilent(count, usual.least) || (isRegular && usual.least > 0 && count === 0)
    return isUnusual ? { kind, span, count, usual } : undefined
  }
  // The running hour is not over, so it can be loud already, but not silent.
  return (
    compare('day', 'silent') ??
    compare('running', 'loud') ??
    compare('hour', 'loud') ??
    compare('hour', 'silent') ??
    compare('day', 'loud')
  )
}

function isLoud(count: number, most: number): boolean {
  return count > MIN_LOUD && count > FACTOR * most && count - most > SPREAD * Math.sqrt(most)
}

function isSilent(count: number, least: number): boolean {
  return FACTOR * count < least && least - count > SPREAD * Math.sqrt(least)
}
