import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { connect } from '../src/database/sql.ts'
import { getKind, getLane, type Lane } from './runner/lanes.ts'
import { summarize, type Summary } from './runner/report.ts'
import { runLane } from './runner/run-lane.ts'
import { measureSpeed } from './runner/speed.ts'
import { clearFolder } from './support/leftovers.ts'
import { SCRATCH } from './support/scratch.ts'
import { closeCluster, createEmptyDatabase, dropDatabase } from './support/servers/postgres.ts'
import { BUILT_PROGRAM, buildProgram } from './support/servers/process.ts'

// `bun test/run.ts [light] [slow] [PATTERN …]` runs the files of the lanes whose paths contain a
// pattern. It ends with `N passed, N failed`, and with 1 if a test failed or left something behind.
// `--update-timings` records how long each file took, so that the longest begin first.

const ROOT = resolve(import.meta.dirname, '..')
const LANES: Lane[] = ['light', 'slow']
/** The default DATA_DIR. No test may write into it. */
const DATA = join(ROOT, 'data')
const listData = () => (existsSync(DATA) ? readdirSync(DATA) : [])

const words = process.argv.slice(2)
const named = LANES.filter(lane => words.includes(lane))
const patterns = words.filter(word => !LANES.includes(word as Lane) && !word.startsWith('--'))
const files = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
  .filter(path => /\.test\.tsx?$/.test(path))
  .map(path => join('test', path))
  .filter(file => patterns.length === 0 || patterns.some(pattern => file.includes(pattern)))
const TIMINGS = join(ROOT, 'test/timings.json')
/** Milliseconds by file. */
const timings = JSON.parse(readFileSync(TIMINGS, 'utf8')) as Record<string, number>

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  // The watcher of the scratch folder then ends the tests.
  process.on(signal, () => process.exit(1))
}
const wanted = named.length > 0 ? named : LANES
const chosen = files.filter(file => wanted.includes(getLane(file)))
if (chosen.length === 0) {
  throw new Error(`No file of the lane has ${patterns.join(' or ')} in its path.`)
}
const factor = await measureHere()
const summaries: Summary[] = []
for (const lane of wanted) {
  const ofLane = chosen.filter(file => getLane(file) === lane)
  // A mistake that the light lane finds needs no slow one.
  if (summaries.every(({ failed }) => failed === 0)) summaries.push(await run(lane, ofLane))
}
await closeCluster()
await clearFolder(SCRATCH)
if (words.includes('--update-timings')) {
  const kept = Object.keys(timings).filter(file => existsSync(join(ROOT, file)))
  writeFileSync(TIMINGS, `${JSON.stringify(timings, kept.toSorted(), 2)}\n`)
}
const count = (of: 'passed' | 'failed') => summaries.reduce((sum, one) => sum + one[of], 0)
console.log(`${count('passed')} passed, ${count('failed')} failed`)
process.exit(count('failed') === 0 ? 0 : 1)

async function run(lane: Lane, chosen: string[]): Promise<Summary> {
  const before = listData()
  // The slow lane tests the source, and the executable.
  delete process.env[BUILT_PROGRAM]
  if (lane === 'light' && chosen.some(file => getKind(file) === 'processes')) {
    process.env[BUILT_PROGRAM] = buildProgram()
  }
  const options = { scratch: SCRATCH, factor, durations: timings, print: console.log }
  const report = await runLane(lane, chosen, options)
  const made = listData().filter(name => !before.includes(name))
  report.left.push(...made.map(name => join(DATA, name)))
  for (const { file, seconds } of report.files) timings[file] = Math.round(seconds * 10) * 100
  const summary = summarize(report, Boolean(process.env['CI']))
  console.log(summary.lines.join('\n'))
  return summary
}

/** The query also starts the Postgres that all files share. It runs until the end. */
async function measureHere(): Promise<number> {
  const url = await createEmptyDatabase()
  const sql = connect(url, { name: 'test speed', max: 1 })
  const speed = await measureSpeed(() => sql`select sum(n) from generate_series(1, 50000) as n`)
  await sql.end({ timeout: 1 })
  await dropDatabase(url)
  return speed
}
