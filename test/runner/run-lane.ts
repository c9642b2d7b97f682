import { availableParallelism } from 'node:os'
import { runBatch, type BatchOptions, type BatchResult } from './batch.ts'
import { CAPACITY, KINDS, planBatches, type Batch, type Lane } from './lanes.ts'
import { readLoad, watchMemory } from './memory.ts'
import type { LaneReport } from './report.ts'
import { judge, type Rerun } from './verdict.ts'

export interface LaneOptions extends BatchOptions {
  /** Maps files to their usual durations in milliseconds. */
  durations: Readonly<Record<string, number>>
  /** Prints progress. */
  print(text: string): void
}

/**
 * Runs the files of a lane, several at once. A file that failed, or whose process ended early, runs
 * once more after all others, alone.
 */
export async function runLane(
  lane: Lane,
  files: string[],
  options: LaneOptions,
): Promise<LaneReport> {
  const startedMs = performance.now()
  const endWatch = watchMemory(options.scratch)
  const report: LaneReport = {
    lane,
    seconds: 0,
    assertions: 0,
    files: [],
    reruns: [],
    left: [],
    leftOut: [],
    peakMemory: undefined,
    factor: options.factor,
  }
  const waiting: Rerun[] = []
  await runAll(planBatches(files, options.durations), options, result => {
    waiting.push(...take(result, report, options))
  })
  for (const first of waiting) {
    const load = readLoad()
    options.print(`Again, alone: ${first.file} (${first.why})`)
    const [batch] = planBatches([first.file], {})
    const result = await runBatch(batch!, options)
    report.files = report.files.filter(({ file }) => file !== first.file)
    const [again] = take(result, report, options)
    report.reruns.push({ first, again, load })
  }
  report.peakMemory = endWatch()
  report.seconds = (performance.now() - startedMs) / 1_000
  return report
}

/** Runs batches side by side, as many as `CAPACITY` allows. */
async function runAll(
  batches: Batch[],
  options: BatchOptions,
  onResult: (result: BatchResult) => void,
): Promise<void> {
  // Four browsers and their servers fill 4 GB.
  const capacity = (CAPACITY * Math.min(Math.max(availableParallelism(), 2), 4)) / 2
  const running = new Set<Promise<void>>()
  let used = 0
  for (const batch of batches) {
    const { weight } = KINDS[batch.kind]
    while (used + weight > capacity && running.size > 0) await Promise.race(running)
    used += weight
    const run = runBatch(batch, options)
      .then(onResult)
      .finally(() => {
        used -= weight
        running.delete(run)
      })
    running.add(run)
  }
  await Promise.all(running)
}

/** Adds the result of a batch to the report, and prints it. Returns what has to run again. */
function take(result: BatchResult, report: LaneReport, { print }: LaneOptions): Rerun[] {
  const { passed, reruns } = judge(result)
  const { batch, files, assertions, left } = result
  report.assertions += assertions
  for (const { file, tests, lines, startedMs, endedMs = performance.now() } of files) {
    const seconds = (endedMs - startedMs) / 1_000
    report.files.push({ file, seconds, outcomes: tests.map(({ outcome }) => outcome) })
    if (passed.includes(file)) {
      print(`ok ${file} ${tests.length} tests, ${seconds.toFixed(1)} s`)
    }
    for (const line of lines) {
      const reason = /^Left out: (.*)$/.exec(line)?.[1]
      if (reason && !report.leftOut.includes(reason)) report.leftOut.push(reason)
    }
  }
  for (const { file, why, lines } of reruns) {
    print([`NOT OK ${file} (${why})`, ...lines.map(line => `  ${line}`)].join('\n'))
  }
  report.left.push(...left.map(text => `${text}, by one of ${batch.files.join(', ')}`))
  return reruns
}
