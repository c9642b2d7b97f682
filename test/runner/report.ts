import type { ProcessorTime } from './machine.ts'
import type { Outcome } from './output.ts'
import type { Rerun } from './verdict.ts'

/** More flaky files than this are red: then it is not chance. */
const MAX_FLAKY = 5
const SLOWEST = 10

/** The results of a lane. */
export interface LaneReport {
  lane: string
  seconds: number
  assertions: number
  files: { file: string; seconds: number; outcomes: Outcome[] }[]
  reruns: { first: Rerun; again: Rerun | undefined; load: string | undefined }[]
  /** Leftovers without an excuse. */
  left: LeftBy[]
  /** Leftovers of files that failed and then ran again. They are no fault. */
  ended: LeftBy[]
  /** Why tests were left out, such as a missing command. */
  leftOut: string[]
  /** In bytes. */
  peakMemory: number | undefined
  processor: ProcessorTime | undefined
  /** The greatest factor of the machine meanwhile. */
  factor: number
}

interface LeftBy {
  what: string
  /** One file, or the files of a batch. */
  by: string
}

export interface Summary {
  lines: string[]
  /** The number of tests that passed. */
  passed: number
  /** The number of tests that failed, and of other faults. */
  failed: number
}

/** Returns the summary of a lane. In CI a test that is left out is a fault. */
export function summarize(report: LaneReport, isCi: boolean): Summary {
  const { lane, seconds, assertions, files, reruns, left, ended, leftOut } = report
  const { peakMemory, processor, factor } = report
  const red = reruns.filter(({ again }) => again)
  // An error outside of tests sends each file of its process into a rerun. The one that fails again
  // explains the others.
  const isExplained = red.some(({ first }) => isOutside(first))
  const flaky = reruns.filter(
    ({ first, again }) => !again && first.why === 'failed' && !(isExplained && isOutside(first)),
  )
  const outcomes = files.flatMap(one => one.outcomes)
  const count = (wanted: Outcome) => outcomes.filter(outcome => outcome === wanted).length
  const failed = red.reduce((sum, { again }) => sum + Math.max(again?.tests.length ?? 0, 1), 0)
  const skipped = count('skip') + count('todo')
  const faults = [
    // One file can leave a server with its Postgres of twenty processes.
    ...Map.groupBy(left, ({ by }) => by)
      .entries()
      .map(([by, some]) => [`Left behind by ${by}:`, ...some.map(toLine)].join('\n')),
    ...(flaky.length > MAX_FLAKY
      ? [`${flaky.length} files are flaky; at most ${MAX_FLAKY} may be.`]
      : []),
    ...(isCi && skipped > 0 ? [`${skipped} tests were left out, which CI does not allow.`] : []),
  ]
  const tests = outcomes.length - skipped
  const memory =
    peakMemory === undefined ? '' : `, at most ${(peakMemory / 2 ** 30).toFixed(1)} GiB`
  const busy =
    processor &&
    `${processor.ownS.toFixed(0)} s of processor time at least, the machine ${(processor.busy * 100).toFixed(0)} % busy`
  const slowest = files.toSorted((a, b) => b.seconds - a.seconds).slice(0, SLOWEST)
  const lines = [
    '',
    `Lane ${lane}: ${files.length} files, ${tests} tests, ${assertions} assertions, ${seconds.toFixed(0)} s${memory}` +
      (factor > 1 ? `; time limits were up to ${factor.toFixed(1)} times longer` : ''),
    ...(busy ? [busy] : []),
    'Slowest files:',
    ...slowest.map(({ file, seconds }) => `  ${seconds.toFixed(1).padStart(6)} s  ${file}`),
    // A test that passes can leave out a part of it.
    ...(skipped > 0 || leftOut.length > 0 ? [`Left out: ${skipped} tests`] : []),
    ...leftOut.map(reason => `  ${reason}`),
    ...reruns
      .filter(({ first }) => first.why !== 'failed')
      .map(({ first }) => `RUN AGAIN ${first.file}: its process ${first.why}`),
    ...ended.map(({ what, by }) => `ENDED before ${by} ran again: ${what}`),
    ...flaky.flatMap(({ first, load }) =>
      toNames(first).map(
        name =>
          `FLAKY ${first.file} › ${name}${toSeeds(first)}${load ? `, load ${load}` : ''}. Explain it in test/flaky.md.`,
      ),
    ),
    ...red.flatMap(({ again }) => [
      ...toNames(again!).map(name => `FAILED ${again!.file} › ${name}`),
      `  Repeat it alone: bun test --timeout 60000 ./${again!.file}`,
    ]),
    ...faults,
  ]
  return { lines, passed: tests - failed, failed: failed + faults.length }
}

const toLine = ({ what }: LeftBy) => `  ${what}`
const isOutside = ({ tests, why }: Rerun) => tests.length === 0 && why === 'failed'

function toNames({ tests, why }: Rerun): string[] {
  return tests.length > 0 ? tests : [why === 'failed' ? '(outside of tests)' : `(${why})`]
}

function toSeeds({ lines }: Rerun): string {
  const seeds = new Set(lines.flatMap(line => line.match(/\b[A-Z_]*SEED=\d+/g) ?? []))
  return seeds.size > 0 ? ` (${[...seeds].join(', ')})` : ''
}
