import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { estimateMs, getKind, getLane, LANES, type Lane } from './runner/lanes.ts'
import { measureStart } from './runner/speed.ts'

// `bun test/run.ts [quick] [browser] [slow] [PATTERN …]` runs the files of the lanes whose paths
// contain a pattern. It ends with `N passed, N failed`, and with 1 if a test failed or left
// something behind. `--update-timings` records how long each file took, so that the longest begin
// first. Nothing that is not in Node or Bun is imported before it is installed.

const ROOT = resolve(import.meta.dirname, '..')
/** The scripts before the files, and how long they take on a machine of usual speed. */
const STEPS: Record<Lane, { text: string; scripts: string[]; ms: number }> = {
  quick: { text: 'format, types, unused code', scripts: ['check'], ms: 20_000 },
  browser: { text: 'build', scripts: ['build:ui'], ms: 4_000 },
  slow: { text: 'build, types on Deno', scripts: ['build:ui', 'check:deno'], ms: 12_000 },
}

const words = process.argv.slice(2)
const named = LANES.filter(lane => words.includes(lane))
const lanes = named.length > 0 ? named : LANES
const patterns = words.filter(word => !LANES.includes(word as Lane) && !word.startsWith('--'))
const chosen = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
  .filter(path => /\.test\.tsx?$/.test(path))
  .map(path => join('test', path))
  .filter(file => patterns.length === 0 || patterns.some(pattern => file.includes(pattern)))
  .filter(file => lanes.includes(getLane(file)))
if (chosen.length === 0) {
  throw new Error(`No file of the lane has ${patterns.join(' or ')} in its path.`)
}
/** Milliseconds by file. */
const timings = JSON.parse(readFileSync(join(ROOT, 'test/timings.json'), 'utf8')) as Record<
  string,
  number
>

let step: ChildProcess | undefined
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    endStep()
    // The watcher of the scratch folder then ends the tests.
    process.exit(1)
  })
}
await printPlan()
for (const script of new Set(lanes.flatMap(lane => ['install', ...STEPS[lane].scripts]))) {
  const words =
    script === 'install' ? ['install', '--frozen-lockfile', '--silent'] : ['run', script]
  step = spawn(process.execPath, words, { cwd: ROOT, stdio: 'inherit', detached: true })
  const [code] = (await once(step, 'close')) as [number | null]
  // A check that fails ends the others late, or not at all.
  endStep()
  if (code !== 0) {
    console.log(`FAILED bun run ${script}\n0 passed, 1 failed`)
    process.exit(1)
  }
}
const { runLanes } = await import('./runner/run-lanes.ts')
const isUpdating = words.includes('--update-timings')
process.exit(await runLanes(lanes, chosen, { timings, isUpdating }))

/** Ends the processes of a step: they are a group. */
function endStep(): void {
  try {
    if (step?.pid !== undefined) process.kill(-step.pid, 'SIGKILL')
  } catch {
    // All of them have ended.
  }
  step = undefined
}

/** Prints what runs, and about how long, before anything else happens. */
async function printPlan(): Promise<void> {
  const factor = await measureStart()
  for (const lane of lanes) {
    const files = chosen.filter(file => getLane(file) === lane)
    if (files.length === 0) continue
    const { text, ms } = STEPS[lane]
    const kinds = Object.entries(Object.groupBy(files, getKind))
      .map(([kind, some]) => `${some.length} ${kind}`)
      .join(', ')
    const minutes = (estimateMs(files, timings, factor) + ms * factor) / 60_000
    const about = minutes < 1.5 ? 'about a minute' : `about ${Math.round(minutes)} minutes`
    const speed = factor > 1.1 ? `, ${factor.toFixed(1)} times slower than usual` : ''
    console.log(
      `Lane ${lane}: ${text}; then files of tests: ${kinds}; ${about} on this machine${speed}`,
    )
  }
}
