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

/** How many times as good as the reference: over 1 is better, whichever way the figure counts. */
export function toTimes({ ours, theirs, better }: Line): number {
  return better === 'more' ? ours / theirs : theirs / ours
}

/** What one round of a candidate gives: a figure, or several by name. */
type Figures = number | { [name: string]: number }

/** Measures every candidate once in each round, in turn, so that a slow minute of the machine meets all of them; medians. */
export async function interleave<Name extends string, Round extends Figures>(
  candidates: Record<Name, () => Promise<Round>>,
  rounds = 3,
): Promise<Record<Name, Round>> {
  const names = Object.keys(candidates) as Name[]
  const measured = new Map<Name, Round[]>(names.map(name => [name, []]))
  for (let round = 0; round < rounds; round++)
    for (const name of names) measured.get(name)?.push(await candidates[name]())
  return Object.fromEntries([...measured].map(([name, all]) => [name, toMedian(all)])) as Record<
    Name,
    Round
  >
}

/** Of several figures, each one's own median. */
function toMedian<Round extends Figures>(rounds: Round[]): Round {
  const [first] = rounds
  if (typeof first !== 'object') return median(rounds as number[]) as Round
  return Object.fromEntries(
    Object.keys(first).map(name => [
      name,
      median(rounds.map(round => (round as Record<string, number>)[name] ?? NaN)),
    ]),
  ) as Round
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
