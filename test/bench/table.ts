import { median } from './wrk.ts'

/** A figure beside the same figure of a named reference: both medians of rounds by turns on one machine and one Postgres. */
export interface Line {
  /** What it is about: `ingest`, `live feed`, `queue`, `webhooks`, `push`, `reading`. */
  subject: string
  /** What is counted, with its conditions: `events/s, 128 connections`. */
  what: string
  ours: number
  reference: string
  theirs: number
  /** Whether more is better (a rate) or less (a delay, bytes). */
  better: 'more' | 'less'
  /** The least `toTimes` that was aimed at. */
  aim?: number
}

/** How much of its full length a comparison has: `BENCH_SHARE=0.1` to see that it runs. */
export const SHARE = Number(process.env['BENCH_SHARE'] ?? 1)

/** The part of `count` that this run does: a multiple of 40, so that targets share it evenly. */
export function toShare(count: number): number {
  return Math.max(1, Math.round((count * SHARE) / 40)) * 40
}

/** How many times as good as the reference: over 1 is better, whichever way the figure counts. */
function toTimes({ ours, theirs, better }: Line): number {
  return better === 'more' ? ours / theirs : theirs / ours
}

/** Measures every candidate once in each round, in turn, so that a slow minute of the machine meets all of them; medians. */
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

/** The same, where one measurement brings several figures. */
export async function interleaveFigures<Name extends string, Figure extends string>(
  candidates: Record<Name, () => Promise<Record<Figure, number>>>,
  rounds = 3,
): Promise<Record<Name, Record<Figure, number>>> {
  const measured = mapValues(candidates, (): Record<Figure, number>[] => [])
  for (let round = 0; round < rounds; round++)
    for (const name of Object.keys(candidates) as Name[])
      measured[name].push(await candidates[name]())
  return mapValues(measured, ([first, ...others]) =>
    // There is a round at least.
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

/** Prints lines as one table, in Markdown, as the README shows it. */
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

/** Three digits that say something. */
function toFigure(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en')
}
