import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { runBatch, type BatchOptions, type BatchResult } from './batch.ts'
import { getCapacity, KINDS, planBatches, type Batch, type Lane } from './lanes.ts'
import { countProcessorTime, readLoad, watchRoom } from './machine.ts'
import { watchMemory } from './memory.ts'
import type { LaneReport } from './report.ts'
import { judge, type Rerun } from './verdict.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const CHECK_MS = 250

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
  const readProcessor = countProcessorTime()
  const report: LaneReport = {
    lane,
    seconds: 0,
    assertions: 0,
    files: [],
    reruns: [],
    left: [],
    ended: [],
    leftOut: [],
    peakMemory: undefined,
    processor: undefined,
    factor: 1,
  }
  const waiting: Rerun[] = []
  let done = 0
  await runAll(planBatches(files, options.durations, isSharing), options, result => {
    done += result.batch.files.length
    const reruns = take(result, report, options.print, ` (${done} of ${files.length})`)
    waiting.push(...reruns)
    // Leftovers of a file that runs again are no fault yet: only the second run tells.
    for (const { what, by } of result.left) {
      const isPending = reruns.some(({ file }) => by.includes(file))
      const list = isPending ? report.ended : report.left
      list.push({ what, by: by.join(', ') })
    }
    report.factor = Math.max(report.factor, options.factor())
  })
  for (const first of waiting) {
    const load = readLoad()
    options.print(`Again, alone: ${first.file} (${first.why})`)
    const [batch] = planBatches([first.file], {})
    const result = await runBatch(batch!, options)
    report.files = report.files.filter(({ file }) => file !== first.file)
    const [again] = take(result, report, options.print)
    report.left.push(...result.left.map(({ what }) => ({ what, by: first.file })))
    report.reruns.push({ first, again, load })
  }
  report.factor = Math.max(report.factor, options.factor())
  report.processor = readProcessor()
  report.peakMemory = endWatch()
  report.seconds = (performance.now() - startedMs) / 1_000
  return report
}

/** Says whether a test opens something that the other files of its process can use, too. */
function isSharing(file: string): boolean {
  return /\b(withSharedServer|forProcess)\(/.test(readFileSync(resolve(ROOT, file), 'utf8'))
}

/** Runs batches side by side, as many as the cores, and their pressure now, allow. */
async function runAll(
  batches: Batch[],
  options: BatchOptions,
  onResult: (result: BatchResult) => void,
): Promise<void> {
  const room = watchRoom(getCapacity(), KINDS.unit.weight)
  const running = new Set<Promise<void>>()
  let used = 0
  for (const batch of batches) {
    const { weight } = KINDS[batch.kind]
    while (running.size > 0 && used + weight > room.capacity()) {
      await Promise.race([...running, sleep(CHECK_MS)])
    }
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
  room.stop()
}

/** Adds the result of a batch to the report, and prints it. Returns what has to run again. */
function take(
  result: BatchResult,
  report: LaneReport,
  print: (text: string) => void,
  ofFiles = '',
): Rerun[] {
  const { passed, reruns } = judge(result)
  report.assertions += result.assertions
  for (const { file, tests, lines, startedMs, endedMs = performance.now() } of result.files) {
    const seconds = (endedMs - startedMs) / 1_000
    report.files.push({ file, seconds, outcomes: tests.map(({ outcome }) => outcome) })
    if (passed.includes(file)) {
      print(`ok ${file} ${tests.length} tests, ${seconds.toFixed(1)} s${ofFiles}`)
    }
    for (const line of lines) {
      const reason = /^Left out: (.*)$/.exec(line)?.[1]
      if (reason && !report.leftOut.includes(reason)) report.leftOut.push(reason)
    }
  }
  for (const { file, why, lines } of reruns) {
    print([`NOT OK ${file} (${why})`, ...lines.map(line => `  ${line}`)].join('\n'))
  }
  return reruns
}
