import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { connect } from '../../src/database/sql.ts'
import { clearFolder } from '../support/leftovers.ts'
import { SCRATCH } from '../support/scratch.ts'
import {
  closeCluster,
  createEmptyDatabase,
  dropDatabase,
  dropDatabases,
} from '../support/servers/postgres.ts'
import { BUILT_PROGRAM, buildProgram } from '../support/servers/process.ts'
import { FACTOR_FILE } from '../support/until.ts'
import { getKind, getLane, getSlots, type Lane } from './lanes.ts'
import { summarize, type Summary } from './report.ts'
import { runLane, type LaneOptions } from './run-lane.ts'
import { startProcess, watchSpeed } from './speed.ts'

const ROOT = resolve(import.meta.dirname, '../..')
/** The default DATA_DIR. No test may write into it. */
const DATA = join(ROOT, 'data')
const listData = () => (existsSync(DATA) ? readdirSync(DATA) : [])

interface Options {
  /** Maps files to milliseconds. */
  timings: Record<string, number>
  /** Writes how long each file took. */
  isUpdating: boolean
}

/** Runs the files of lanes, prints their summaries and the sum, and returns the exit code. */
export async function runLanes(
  lanes: readonly Lane[],
  files: string[],
  { timings, isUpdating }: Options,
): Promise<number> {
  // The database also starts the Postgres that all files share. It runs until the end.
  const url = await createEmptyDatabase()
  const sql = connect(url, { name: 'test speed', max: 1, settings: { statement_timeout: 0 } })
  const speed = await watchSpeed(
    async () => {
      await startProcess()
      await sql`select sum(n) from generate_series(1, 50000) as n`
    },
    factor => writeFileSync(FACTOR_FILE, String(factor)),
    { beside: getSlots() / availableParallelism() },
  )
  const options = {
    ...{ scratch: SCRATCH, factor: speed.factor, durations: timings },
    ...{ dropDatabases, print: console.log },
  }
  const summaries: Summary[] = []
  for (const lane of lanes) {
    const ofLane = files.filter(file => getLane(file) === lane)
    // A mistake that the quick lane finds needs no slow one.
    if (ofLane.length === 0 || summaries.some(({ failed }) => failed > 0)) continue
    summaries.push(await run(lane, ofLane, options))
  }
  await speed.stop()
  await sql.end({ timeout: 1 })
  await dropDatabase(url)
  await closeCluster()
  await clearFolder(SCRATCH, speed.factor())
  if (isUpdating) {
    const kept = Object.keys(timings).filter(file => existsSync(join(ROOT, file)))
    const text = JSON.stringify(timings, kept.toSorted(), 2)
    writeFileSync(join(ROOT, 'test/timings.json'), `${text}\n`)
  }
  const count = (of: 'passed' | 'failed') => summaries.reduce((sum, one) => sum + one[of], 0)
  console.log(`${count('passed')} passed, ${count('failed')} failed`)
  return count('failed') === 0 ? 0 : 1
}

type RunOptions = LaneOptions & { durations: Record<string, number> }

async function run(lane: Lane, files: string[], options: RunOptions): Promise<Summary> {
  const before = listData()
  if (files.some(file => getKind(file) === 'processes'))
    process.env[BUILT_PROGRAM] ??= buildProgram()
  const report = await runLane(lane, files, options)
  const made = listData().filter(name => !before.includes(name))
  report.left.push(...made.map(name => ({ what: join(DATA, name), by: 'the lane' })))
  for (const { file, seconds } of report.files) {
    options.durations[file] = Math.round(seconds * 10) * 100
  }
  const summary = summarize(report, Boolean(process.env['CI']))
  console.log(summary.lines.join('\n'))
  return summary
}
