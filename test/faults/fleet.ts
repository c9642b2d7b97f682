import { existsSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startEmbedded } from '../../src/database/embedded/embedded.ts'
import { listClusterProcesses } from '../../src/database/embedded/processes.ts'
import type { Sql } from '../../src/database/sql.ts'
import { makeFolder } from '../support/scratch.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { startProgram, toEmbeddedUrl, type Program } from '../support/servers/process.ts'
import { newProject } from '../support/worlds/project.ts'
import { checkLedger, type RemovedEvents, type RunResult } from './ledger-check.ts'
import { startLoad, type Load, type LoadOptions } from './ledger.ts'
import { openSql } from '../support/sql.ts'
import { scaled, until } from '../support/until.ts'

/** Real servers, each a process, on one database. */
export interface Fleet {
  programs: Program[]
  databaseUrl: string
  /** The DATA_DIR of an embedded database. */
  dataDir: string | undefined
  sql: Sql
  projects: { id: string; key: string }[]
  /** Returns the URLs of the running servers. */
  urls(): string[]
  /** Starts clients that post to the running servers until the fleet closes. */
  load(options: Pick<LoadOptions, 'clients' | 'random' | 'total' | 'pauseMs'>): Load
  /**
   * Ends the load, and compares the clients' answers with the database. No server may have ended on
   * its own.
   */
  check(leavers?: RemovedEvents): Promise<RunResult>
  /** Restarts a server that has ended. */
  restart(index: number): Promise<Program>
  close(): Promise<void>
}

export interface FleetOptions {
  servers: number
  projects: number
  /** Uses a separate Postgres, which may be killed, instead of a database in the tests' cluster. */
  isEmbedded?: boolean
  /**
   * Returns the database URL of a server, for a proxy between them; this process then runs the
   * embedded Postgres.
   */
  between?(databaseUrl: string, index: number): Promise<string>
  /** The URL of an empty database that the caller runs. */
  databaseUrl?: string
  /** A test program instead of the server, with its environment. */
  program?: string
  env?: Record<string, string>
}

export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const { isEmbedded = false, between = async (url: string) => url } = options
  const { WORKERS } = process.env
  const dataDir = isEmbedded ? makeFolder() : undefined
  const own = dataDir && options.between ? await startEmbedded({ dataDir }) : undefined
  const given = own?.url ?? options.databaseUrl ?? (dataDir ? undefined : await cloneDatabase())
  const start = async (_: unknown, index: number) => {
    const env: Record<string, string> = {
      ...(WORKERS !== undefined && { WORKERS }),
      ...options.env,
      ...(given ? { DATABASE_URL: await between(given, index) } : { DATA_DIR: dataDir ?? '' }),
    }
    const { program } = options
    return startProgram({ env, ...(program !== undefined && { program }) })
  }
  const programs = await Promise.all(Array.from({ length: options.servers }, start))
  const databaseUrl = given ?? toEmbeddedUrl(dataDir ?? '')
  const sql = openSql(databaseUrl, { max: 4 })
  const projects: Fleet['projects'] = []
  for (let made = 0; made < options.projects; made++)
    projects.push(await newProject({ sql, url: '' }, { limit: 1_000_000_000 }))
  const urls = () => programs.map(({ url }) => url)
  let load: Load | undefined
  return {
    programs,
    databaseUrl,
    dataDir,
    sql,
    projects,
    urls,
    load: chosen => (load = startLoad({ ...chosen, servers: urls, projects })),
    async check(leavers) {
      if (!load) throw new Error('There is no load to check')
      await load.stop()
      const ids = projects.map(({ id }) => id)
      const { figures, problems } = await checkLedger(sql, ids, load.ledger, leavers)
      const ended = programs.filter(program => !program.isRunning())
      return {
        figures,
        problems: [
          ...problems,
          ...ended.map(program => `a server ended by itself:\n${program.output().slice(-2_000)}`),
        ],
      }
    },
    async restart(index) {
      const program = await start(undefined, index)
      programs[index] = program
      return program
    },
    async close() {
      load?.abort()
      await load?.finished
      await sql.end({ timeout: 1 })
      await Promise.all(programs.map(program => program.kill('SIGTERM')))
      await own?.stop()
      if (dataDir) rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** Returns the Postgres processes of a DATA_DIR, the first one first. */
export function listPostgres(dataDir: string): number[] {
  const folder = join(dataDir, 'postgres', 'data')
  if (!existsSync(folder)) return []
  const data = realpathSync(folder)
  // Pids begin anew at a limit, so the lowest one can be that of a backend.
  const first = readPid(join(data, 'postmaster.pid'))
  return listClusterProcesses({ data, clusterName: data }).sort(
    (a, b) => Number(b === first) - Number(a === first) || a - b,
  )
}

/** Returns the pid in the first line of a file; undefined without it, as while Postgres stops. */
function readPid(file: string): number | undefined {
  try {
    return Number.parseInt(readFileSync(file, 'utf8'), 10)
  } catch {
    return undefined
  }
}

export async function readStart(sql: Sql): Promise<string> {
  const [row] = await sql<[{ at: string }]>`select pg_postmaster_start_time()::text as at`
  return row.at
}

/** A process of the killed Postgres may still answer for a moment. */
export async function untilStartedAnew(sql: Sql, before: string): Promise<void> {
  await until(async () => {
    const at = await readStart(sql).catch(() => before)
    return at !== before
  }, 60_000)
}

/**
 * Resolves with the milliseconds until every log is dispatched and nothing is pending; undefined on
 * timeout.
 */
export async function untilEmpty(sql: Sql, drainMs = scaled(90_000)): Promise<number | undefined> {
  const startMs = performance.now()
  while (performance.now() - startMs < drainMs) {
    // An attempt that a fault has used up delays the next one.
    await sql`
      update outbox set available_at = now()
      where token is null and available_at > now()
        and (attempts > 0 or available_at > now() + interval '1 minute')
    `
    const [row] = await sql<[{ is_empty: boolean }]>`
      select not exists (select from outbox) and not exists (
        select
        from event_logs l
          left join delivery_cursors c on c.project_id = l.project_id
        where l.last_seq > coalesce(c.seq, 0)
      ) as is_empty
    `
    if (row.is_empty) return performance.now() - startMs
    await sleep(100)
  }
  return undefined
}
