import type { Table } from './ledger-check.ts'
import type { Sample } from './soak-sample.ts'

/** A figure over the minutes of one life. */
export interface LifeCurve {
  name: string
  points: readonly (readonly [minute: number, value: number])[]
}

/** The trend of a figure over all lives. */
export interface Trend {
  mean: number
  /** Growth per hour within a life, and twice its standard error. */
  perHour: number
  errorPerHour: number
  /**
   * The median of the last lives over that of the first ones at the same age, if lives can be
   * compared.
   */
  lateToEarly: number | undefined
  /** Unknown if chance alone may exceed the growth that is looked for. */
  isFlat: 'yes' | 'no' | 'too short to say'
}

/** More growth per hour than this share of the mean, beyond chance, is a leak. */
const MAX_HOURLY = 0.25
/** The maximum ratio of a late life to an early one of the same age. */
const MAX_LATE = 1.2
/** A median of fewer points says little. */
const LEAST_POINTS = 5

/**
 * Judges whether a figure is stable within each life after `warmUpMinutes`, and from life to life.
 * Growth is the one slope that fits all lives best, with a separate level each. It counts after
 * subtracting twice its standard error, which is corrected for autocorrelation.
 */
export function assessTrend(curves: readonly LifeCurve[], warmUpMinutes: number): Trend {
  const lives = curves
    .map(({ points }) => points.filter(([minute]) => minute >= warmUpMinutes))
    .filter(points => points.length >= LEAST_POINTS)
  const all = lives.flat().map(([, value]) => value)
  const mean = toMean(all)
  const { slope, error } = fitSlope(lives)
  const [perHour, errorPerHour] = [slope * 60, 2 * error * 60]
  const lateToEarly = compareLives(lives)
  const most = MAX_HOURLY * mean
  const isGrowing = perHour - errorPerHour > most || (lateToEarly ?? 1) > MAX_LATE
  const isSure = perHour + errorPerHour <= most
  return {
    mean,
    perHour,
    errorPerHour,
    lateToEarly,
    isFlat: isGrowing ? 'no' : isSure ? 'yes' : 'too short to say',
  }
}

function fitSlope(lives: readonly LifeCurve['points'][]): { slope: number; error: number } {
  const centred = lives.map(points => {
    const [x0, y0] = [toMean(points.map(([x]) => x)), toMean(points.map(([, y]) => y))]
    return points.map(([x, y]) => [x - x0, y - y0] as const)
  })
  const sum = (values: readonly number[]) => values.reduce((all, one) => all + one, 0)
  const pairs = centred.flat()
  const sxx = sum(pairs.map(([x]) => x * x))
  if (sxx === 0) return { slope: 0, error: 0 }
  const slope = sum(pairs.map(([x, y]) => x * y)) / sxx
  const residuals = centred.map(points => points.map(([x, y]) => y - slope * x))
  const squares = sum(residuals.flat().map(one => one * one))
  const products = sum(
    residuals.map(one => sum(one.slice(1).map((value, nth) => value * one[nth]!))),
  )
  // Autocorrelated samples count as fewer.
  const likeness = squares === 0 ? 0 : Math.min(0.95, Math.max(0, products / squares))
  const degrees = Math.max(1, pairs.length - lives.length - 1)
  const variance = (squares / degrees / sxx) * ((1 + likeness) / (1 - likeness))
  return { slope, error: Math.sqrt(variance) }
}

/**
 * Compares the later half of the lives with the earlier half, over the minutes that all of them
 * have.
 */
function compareLives(lives: readonly LifeCurve['points'][]): number | undefined {
  if (lives.length < 2) return undefined
  const fromMinute = Math.max(...lives.map(points => points[0]![0]))
  const toMinute = Math.min(...lives.map(points => points.at(-1)![0]))
  const medians = lives.map(points =>
    toMedian(points.filter(([x]) => x >= fromMinute && x <= toMinute).map(([, y]) => y)),
  )
  const half = Math.floor(lives.length / 2)
  const ratio = toMedian(medians.slice(-half)) / toMedian(medians.slice(0, half))
  return Number.isFinite(ratio) ? ratio : undefined
}

function toMean(values: readonly number[]): number {
  return values.reduce((sum, one) => sum + one, 0) / values.length
}

function toMedian(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? NaN
}

/**
 * Judges memory and open files of the servers, and private memory per Postgres process, whose
 * number follows from the open connections. Lives count after a tenth of the run, or three minutes.
 */
export function assessSamples(
  samples: readonly Sample[],
  seconds: number,
): { table: Table; problems: string[] } {
  const warmUpMinutes = Math.min(180, seconds / 10) / 60
  const loaded = samples.filter(({ atS }) => atS <= seconds)
  const judged = {
    'server RSS, MB': assessTrend(toLives(loaded, 'rssMb'), warmUpMinutes),
    'server open files': assessTrend(toLives(loaded, 'files'), warmUpMinutes),
    'own MB of each Postgres process': assessTrend(toPostgresLives(loaded), warmUpMinutes),
  }
  return {
    table: {
      columns: [
        'flat',
        'mean',
        'growth per hour',
        '± 2 errors',
        'late life / early life',
        'is flat',
      ],
      rows: Object.entries(judged).map(([what, one]) => [
        what,
        one.mean.toFixed(2),
        one.perHour.toFixed(2),
        one.errorPerHour.toFixed(2),
        one.lateToEarly?.toFixed(2) ?? 'one life',
        one.isFlat,
      ]),
    },
    problems: Object.entries(judged)
      .filter(([, { isFlat }]) => isFlat === 'no')
      .map(([what]) => `not flat: ${what}`),
  }
}

/** Returns the curves by the age of each life. */
function toLives(samples: readonly Sample[], figure: 'rssMb' | 'files'): LifeCurve[] {
  const all = samples.flatMap(({ servers }) => servers)
  return [...Map.groupBy(all, ({ life }) => life)].map(([name, life]) => ({
    name,
    points: life.map(one => [one.ageS / 60, one[figure]] as const),
  }))
}

function toPostgresLives(samples: readonly Sample[]): LifeCurve[] {
  return [...Map.groupBy(samples, ({ postgres }) => postgres.life)].map(([name, life]) => ({
    name,
    points: life.map(
      ({ atS, postgres }) =>
        [(atS - life[0]!.atS) / 60, postgres.ownMb / postgres.processes] as const,
    ),
  }))
}
