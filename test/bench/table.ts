import { median } from './wrk.ts'

/**
 * A figure beside that of a named reference: medians of interleaved rounds on one machine and one
 * Postgres.
 */
export interface Line {
  /** One of `ingest`, `live feed`, `queue`, `webhooks`, `push`, `reading`. */
  subject: string
  /** The measured quantity with its conditions: `events/s, 128 connections`. */
  what: string
  ours: number
  reference: string
  theirs: number
  /** `more` for a rate, `less` for a delay or bytes. */
  better: 'more' | 'less'
  /** The smallest acceptable `toTimes`. */
  aim?: number
}

/** The fraction of the full length that a comparison has: `BENCH_SHARE=0.1` for a trial run. */
export const SHARE = Number(process.env['BENCH_SHARE'] ?? 1)

/** Scales `count` for this run, to a multiple of 40, so that targets share it evenly. */
export function toShare(count: number): number {
  return Math.max(1, Math.round((count * SHARE) / 40)) * 40
}

/**
 * Returns how many times better than the reference the figure is: over 1 is better in both
 * directions.
 */
function toTimes({ ours, theirs, better }: Line): number {
  return better === 'more' ? ours / theirs : theirs / ours
}

/**
 * Measures every candidate once per round, in turn, so that a slow minute affects all of them;
 * returns medians.
 */
export async function interleave<Name extends string>(
  candidates: Record<Name, () => Promise<number>>,
  rounds = 3,
): Promise<Record<Name, number>> {
  const measured = await interleaveFigures(
    mapValues(candidates, measure => async () => ({ figure: await measure() })),
    rounds,
  )
  return mapValues(measured, ({ figure }) => figure)
}

/** The same for measurements with several figures. */
export async function interleaveFigures<Name extends string, Figure extends string>(
  candidates: Record<Name, () => Promise<Record<Figure, number>>>,
  rounds = 3,
): Promise<Record<Name, Record<Figure, number>>> {
  const measured = mapValues(candidates, (): Record<Figure, number>[] => [])
  for (let round = 0; round < rounds; round++)
    for (const name of Object.keys(candidates) as Name[])
      measured[name].push(await candidates[name]())
  return mapValues(measured, ([first, ...others]) =>
    // At least one round was run.
    mapValues(first!, (_, figure) => median([first!, ...others].map(figures => figures[figure]))),
  )
}

function mapValues<Key extends string, Value, Mapped>(
  values: Record<Key, Value>,
  map: (value: Value, key: Key) => Mapped,
): Record<Key, Mapped> {
  const entries = (Object.keys(values) as Key[]).map(key => [key, map(values[key], key)])
  return Object.fromEntries(entries) as Record<Key, Mapped>
}

/** Prints lines as one Markdown table, as in docs/benchmarks.md. */
export function printTable(lines: readonly Line[]): void {
  console.log('| | | Tidings | reference | | times as good |\n| - | - | -: | - | -: | -: |')
  for (const line of lines) {
    const aim = line.aim === undefined ? '' : ` (aim ${line.aim})`
    const figures = [line.ours, line.theirs].map(toFigure)
    console.log(
      `| ${line.subject} | ${line.what} | ${figures[0]} | ${line.reference} | ${figures[1]} | ${toTimes(line).toFixed(2)}${aim} |`,
    )
  }
}

/** Formats a number with three significant digits. */
function toFigure(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en')
}
