import { existsSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { startEmbedded } from '../../src/embedded/embedded.ts'
import { listClusterProcesses } from '../../src/embedded/processes.ts'
import { connect, type Sql } from '../../src/db/sql.ts'
import { cloneDatabase } from '../support/postgres.ts'
import { startProgram, toEmbeddedUrl, type Program, type Runtime } from '../support/process.ts'
import { newProject } from '../support/project.ts'
import { makeFolder } from '../support/scratch.ts'
import { checkLedger, type Leavers, type Verdict } from './check.ts'
import { startLoad, type Load, type LoadOptions } from './ledger.ts'

/** Real servers, each a process, on one database. */
export interface Fleet {
  programs: Program[]
  databaseUrl: string
  /** Of an embedded database. */
  dataDir: string | undefined
  sql: Sql
  projects: { id: string; key: string }[]
  /** The URLs of the servers of the moment. */
  urls(): string[]
  /** Lets clients post to the servers of the moment, until the fleet closes. */
  load(options: Pick<LoadOptions, 'clients' | 'random' | 'total' | 'pauseMs'>): Load
  /** Ends the load, and compares what its clients were told with what is stored. A server may not have ended by itself. */
  check(leavers?: Leavers): Promise<Verdict>
  /** Starts a server in the place of one that has ended. */
  restart(index: number): Promise<Program>
  close(): Promise<void>
}

export interface FleetOptions {
  servers: number
  projects: number
  /** A Postgres of the servers' own, which may be killed; else a database in the tests' cluster. */
  isEmbedded?: boolean
  /** Where that Postgres keeps its data; else in a folder of its own. */
  dataDir?: string
  /** What stands between each server and its Postgres, by the database's URL; an embedded one is then kept running by this process. */
  between?(databaseUrl: string, index: number): Promise<string>
  /** Requests per 60 s of each project's key. */
  limit?: number
  /** A program of the tests' own in place of the server's, and what it is told. */
  program?: string
  env?: Record<string, string>
  /** How many processes each server is; by default what WORKERS says. */
  workers?: number | undefined
  /** What each server runs on; Bun where nothing is said. */
  runtimes?: readonly Runtime[]
  /** What stands between each server and its LISTEN alone; needs a Postgres of its own, which this process keeps running. */
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
  const given = own?.url ?? (dataDir ? undefined : await cloneDatabase())
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
  const sql = connect(databaseUrl, {
    name: 'test',
    max: 4,
    settings: { statement_timeout: 60_000 },
  })
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

/** The processes of the Postgres in a DATA_DIR, the first one first. */
export function listPostgres(dataDir: string): number[] {
  const folder = join(dataDir, 'postgres', 'data')
  if (!existsSync(folder)) return []
  const data = realpathSync(folder)
  return listClusterProcesses({ data, clusterName: data }).sort((a, b) => a - b)
}
