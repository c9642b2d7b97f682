import { existsSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { startEmbedded } from '../../src/database/embedded/embedded.ts'
import { listClusterProcesses } from '../../src/database/embedded/processes.ts'
import type { Sql } from '../../src/database/sql.ts'
import { makeFolder } from '../support/scratch.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import {
  startProgram,
  toEmbeddedUrl,
  type Program,
  type Runtime,
} from '../support/servers/process.ts'
import { newProject } from '../support/worlds/project.ts'
import { checkLedger, type RemovedEvents, type RunResult } from './ledger-check.ts'
import { startLoad, type Load, type LoadOptions } from './ledger.ts'
import { openSql } from '../support/sql.ts'

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
  /** The data folder of that Postgres; by default a new one. */
  dataDir?: string
  /**
   * Returns the database URL of a server, for a proxy between them; this process then runs the
   * embedded Postgres.
   */
  between?(databaseUrl: string, index: number): Promise<string>
  /** The URL of an empty database that the caller runs. */
  databaseUrl?: string
  /** Requests per 60 s of each project's key. */
  limit?: number
  /** A test program instead of the server, with its environment. */
  program?: string
  env?: Record<string, string>
  /** Processes per server; WORKERS by default. */
  workers?: number | undefined
  /** The runtime of each server; Bun by default. */
  runtimes?: readonly Runtime[]
  /**
   * Returns the database URL of a server's LISTEN connection, for a proxy. Needs a separate
   * Postgres, which this process runs.
   */
  listenBetween?(databaseUrl: string, index: number): Promise<string>
}

export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const {
    isEmbedded = false,
    limit = 1_000_000_000,
    between = async (url: string) => url,
    workers = process.env['WORKERS'],
  } = options
  const dataDir =
    options.dataDir ?? (isEmbedded || options.listenBetween ? makeFolder() : undefined)
  const isOwn = options.listenBetween ?? (isEmbedded && options.between)
  const own = dataDir !== undefined && isOwn ? await startEmbedded({ dataDir }) : undefined
  const given = own?.url ?? options.databaseUrl ?? (dataDir ? undefined : await cloneDatabase())
  const start = async (_: unknown, index: number) => {
    const env: Record<string, string> = {
      ...(workers !== undefined && { WORKERS: String(workers) }),
      ...options.env,
      ...(given ? { DATABASE_URL: await between(given, index) } : { DATA_DIR: dataDir ?? '' }),
    }
    if (given && options.listenBetween)
      env['DATABASE_DIRECT_URL'] = await options.listenBetween(given, index)
    const { program, runtimes } = options
    return startProgram({
      env,
      runtime: runtimes?.[index] ?? 'bun',
      ...(program !== undefined && { program }),
    })
  }
  const programs = await Promise.all(Array.from({ length: options.servers }, start))
  const databaseUrl = given ?? toEmbeddedUrl(dataDir ?? '')
  const sql = openSql(databaseUrl, { max: 4 })
  const projects: Fleet['projects'] = []
  for (let made = 0; made < options.projects; made++)
    projects.push(await newProject({ sql, url: '' }, { limit }))
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
