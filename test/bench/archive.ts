import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { connect } from '../../src/database/sql.ts'
import { makeFolder } from '../support/scratch.ts'
import { closeCluster, dropDatabase } from '../support/servers/postgres.ts'
import { createKey } from '../support/worlds/keys.ts'
import { openPostgresClock, readProcessMs } from './processor-time.ts'
import { openOldEvents, postSteadily, PROJECT } from './retention.ts'
import { startTidings, stopCandidates } from './server.ts'
import { ARGUMENTS, readEvents, SHARE, toShare } from './table.ts'
import { load, median, requireWrk } from './wrk.ts'

const EVENTS = toShare(readEvents(1_000_000))
const WINDOW_S = 4
const CONNECTIONS = 32
/** The fixed rate of ingest, a small part of the highest one. */
const PER_SECOND = 500
const MAX_PAIRS = Math.ceil(40 * SHARE)
const POLL_MS = 200
const HOWS = ['beside', 'alone'] as const
const MAIN = resolve(import.meta.dir, '../../src/main.ts')

/**
 * Measures a run of the archive alone (`bench archive alone`), and then ingest beside one
 * (`bench archive beside`). In the second part, the process of the archive is stopped in every
 * other window of 4 s. Both figures then see the same machine.
 */
export async function benchArchive(): Promise<void> {
  requireWrk()
  const [only] = ARGUMENTS.positionals
  if (only !== 'beside') await runAlone()
  if (only !== 'alone') await runBesideIngest()
  await closeCluster()
}

async function runAlone(): Promise<void> {
  const url = await openOldEvents(EVENTS)
  const sql = connect(url, { name: 'bench', max: 1 })
  // A server makes the secrets.
  await stopCandidates([await startTidings(url, '')])
  const clock = await openPostgresClock(sql)
  const [beforeMs, startedMs] = [clock(), performance.now()]
  const { child, folder, exited } = startArchive(url)
  let usage = readUsage(child)
  while (child.exitCode === null) {
    usage = readUsage(child) ?? usage
    await Promise.race([exited, Bun.sleep(POLL_MS)])
  }
  const tookS = (performance.now() - startedMs) / 1_000
  const perEvent = (ms: number) => `${((ms * 1_000) / EVENTS).toFixed(0)} µs`
  console.log(
    `alone: ${(EVENTS / tookS).toFixed(0)} events/s, ${(toBytes(folder) / EVENTS).toFixed(0)} bytes per event, ` +
      `at most ${usage?.memoryMb} MB, ${perEvent(usage?.processorMs ?? NaN)} of its process ` +
      `and ${perEvent(clock() - beforeMs)} of Postgres per event`,
  )
  await sql.end()
  await dropDatabase(url)
}

type Figures = Record<'perSecond' | 'p50Ms' | 'p99Ms', number>
type How = 'beside' | 'alone'

async function runBesideIngest(): Promise<void> {
  const url = await openOldEvents(EVENTS)
  const sql = connect(url, { name: 'bench', max: 1 })
  const { token } = await createKey(sql, {
    projectId: PROJECT,
    name: 'bench',
    limit: 1_000_000_000,
  })
  const server = await startTidings(url, token)
  const loads: Record<string, () => Promise<Figures>> = {
    [`ingest, ${CONNECTIONS} connections`]: () =>
      load({ ...server, connections: CONNECTIONS, seconds: WINDOW_S, keyed: 0 }),
    [`ingest of ${PER_SECOND}/s`]: () => postSteadily(server, PER_SECOND, WINDOW_S),
  }
  const countDeleted = async () => {
    const [row] = await sql<[{ n: string }]>`
      select coalesce(sum(deleted), 0) as n from archive_files where state = 'current'
    `
    return Number(row.n)
  }
  for (const ingest of Object.values(loads)) await ingest()
  const { child, exited } = startArchive(url)
  const all = new Map<string, Record<How, Figures>[]>()
  for (let pair = 0; pair < MAX_PAIRS && child.exitCode === null; pair++) {
    for (const [name, ingest] of Object.entries(loads)) {
      const before = await countDeleted()
      const measured: Partial<Record<How, Figures>> = {}
      // Neither of both is always the first one.
      for (const how of pair % 2 === 0 ? HOWS : HOWS.toReversed()) {
        child.kill(how === 'beside' ? 'SIGCONT' : 'SIGSTOP')
        measured[how] = await ingest()
      }
      if (child.exitCode !== null) break
      const deleted = (await countDeleted()) - before
      const label = `${name}, while the archive ${deleted > 0 ? 'deletes rows' : 'writes a file'}`
      // The loop has measured both.
      all.set(label, [...(all.get(label) ?? []), measured as Record<How, Figures>])
    }
  }
  const deleted = await countDeleted()
  child.kill('SIGCONT')
  child.kill('SIGTERM')
  await exited
  console.log(`${deleted} events of ${EVENTS} were deleted meanwhile`)
  for (const [label, pairs] of all) print(label, pairs)
  await stopCandidates([server])
  await sql.end()
}

function print(label: string, pairs: readonly Record<How, Figures>[]): void {
  const toText = (how: How) => {
    const of = (name: keyof Figures) => median(pairs.map(pair => pair[how][name]))
    return `${of('perSecond').toFixed(0)}/s, p50 ${of('p50Ms').toFixed(1)} ms, p99 ${of('p99Ms').toFixed(1)} ms`
  }
  const ratio = (name: keyof Figures) =>
    median(pairs.map(({ beside, alone }) => beside[name] / alone[name])).toFixed(2)
  console.log(
    `${label}: ${toText('beside')}; without it ${toText('alone')}; ratios ${ratio('perSecond')}, ` +
      `${ratio('p50Ms')} and ${ratio('p99Ms')} (medians of ${pairs.length} pairs)`,
  )
}

function startArchive(url: string) {
  const folder = makeFolder()
  const child = spawn(process.execPath, [MAIN, 'archive', '--json'], {
    env: { ...process.env, DATABASE_URL: url, ARCHIVE_DIR: folder, ARCHIVE_AFTER_DAYS: '1' },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  return { child, folder, exited: once(child, 'exit') }
}

function toBytes(folder: string): number {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map(name => statSync(join(folder, name)))
    .reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0)
}

interface Usage {
  memoryMb: number
  processorMs: number
}

/** Returns the highest resident memory of a process so far, and its processor time. */
function readUsage({ pid = 0 }: ChildProcess): Usage | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const [, kilobytes] = /^VmHWM:\s+(\d+)/m.exec(status) ?? []
    if (kilobytes === undefined) return undefined
    return { memoryMb: Math.round(Number(kilobytes) / 1_000), processorMs: readProcessMs(pid) }
  } catch {
    return undefined
  }
}
