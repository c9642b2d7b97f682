import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ensureBinaries } from '../../../src/database/embedded/binaries.ts'
import { findPostgresUser } from '../../../src/database/embedded/folders.ts'
import { sendSignal } from '../../../src/database/embedded/processes.ts'
import { connect, type Sql } from '../../../src/database/sql.ts'
import { findFreePort } from '../loopback.ts'
import { makeFolder } from '../scratch.ts'
import { until } from '../until.ts'

/** A Postgres of the pair. */
interface Node {
  name: string
  port: number
  data: string
  child: ChildProcess | undefined
}

/** A primary and a standby with streaming replication, whose roles a promotion swaps. */
export interface Pair extends AsyncDisposable {
  /** The URL of the database with both hosts. */
  url: string
  /** The URL of the database on the host that is the primary now. */
  readonly primaryUrl: string
  /** The URL of the database on the host that is the standby now. */
  readonly standbyUrl: string
  /**
   * Creates the standby from the primary, and waits until it has replayed everything. Kills a
   * former primary in its place.
   */
  addStandby(): Promise<void>
  /** Makes commits wait for the standby, or not. */
  setSynchronous(isSynchronous: boolean): Promise<void>
  /** Sends a signal to all processes of the primary or of the standby. */
  signal(node: 'primary' | 'standby', name: NodeJS.Signals): void
  /** Kills the primary with all its processes. */
  killPrimary(): Promise<void>
  /** Promotes the standby. Resolves when it accepts writes. A former primary that runs goes on. */
  promote(): Promise<void>
}

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  shared_buffers: '64MB',
  max_connections: '300',
  dynamic_shared_memory_type: 'mmap',
  // A copy of the primary needs the WAL since its beginning.
  wal_keep_size: '1GB',
  hot_standby_feedback: 'on',
}
/** Files of a running Postgres that its copy must not have. */
const LIVE_FILES = ['pg_wal', 'postmaster.pid', 'postmaster.opts', 'standby.signal', 'pg_dynshmem']

/**
 * Starts a Postgres on loopback with an empty database for Tidings. POSTGRES_BIN names the folder
 * of its programs; by default they are the bundled ones.
 */
export async function startPair(): Promise<Pair> {
  const home = makeFolder()
  const osUser = findPostgresUser(home)
  if (osUser) chownSync(home, osUser.uid, osUser.gid)
  const bin = process.env['POSTGRES_BIN'] ?? join(await ensureBinaries(home), 'bin')
  const makeNode = async (name: string): Promise<Node> => ({
    name,
    port: await findFreePort(),
    data: join(home, name),
    child: undefined,
  })
  let primary = await makeNode('one')
  let standby = await makeNode('two')
  const options = { ...osUser, env: { LC_ALL: 'C', TZ: 'UTC' }, cwd: home }
  execFileSync(
    join(bin, 'initdb'),
    ['-D', primary.data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync'],
    { ...options, stdio: 'ignore' },
  )

  const toUrl = (nodes: readonly Node[], user: string, database: string) =>
    `postgres://${user}@${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${database}`

  async function asSuperuser<Result>(node: Node, work: (sql: Sql) => Promise<Result>) {
    const sql = connect(toUrl([node], 'postgres', 'postgres'), {
      name: 'admin',
      max: 1,
      settings: { statement_timeout: 60_000, synchronous_commit: 'local' },
    })
    try {
      return await work(sql)
    } finally {
      await sql.end({ timeout: 1 })
    }
  }

  async function start(node: Node): Promise<void> {
    const settings = { ...SETTINGS, port: String(node.port), cluster_name: node.name }
    const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const child = spawn(join(bin, 'postgres'), ['-D', node.data, ...args], {
      ...options,
      detached: true,
      stdio: ['ignore', 'ignore', process.env['TIDINGS_TEST_LOG'] ? 'inherit' : 'ignore'],
    })
    node.child = child
    await until(() =>
      asSuperuser(node, sql => sql`select 1`).then(
        () => true,
        () => false,
      ),
    )
  }

  function signal({ child }: Node, name: NodeJS.Signals): void {
    // The backends of Postgres are in groups of their own.
    const pids = child?.pid === undefined ? [] : [child.pid, ...listChildren(child.pid)]
    for (const pid of pids) sendSignal(pid, name)
  }

  async function kill(node: Node): Promise<void> {
    const { child } = node
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    signal(node, 'SIGKILL')
    await exited
    node.child = undefined
  }

  /** Copies the files of the running primary, as pg_basebackup does. */
  async function copy(from: Node, to: Node): Promise<void> {
    rmSync(to.data, { recursive: true, force: true })
    const own = (path: string) => osUser && chownSync(path, osUser.uid, osUser.gid)
    mkdirSync(to.data, { mode: 0o700 })
    await asSuperuser(from, async sql => {
      await sql`select pg_backup_start('standby', true)`
      const names = readdirSync(from.data).filter(name => !LIVE_FILES.includes(name))
      try {
        execFileSync('cp', ['-a', ...names, to.data], { cwd: from.data, stdio: 'ignore' })
      } catch {
        // Temporary files vanish meanwhile.
      }
      const [label] = await sql<
        [{ labelfile: string }]
      >`select labelfile from pg_backup_stop(false)`
      const conninfo = `host=127.0.0.1 port=${from.port} user=postgres application_name=${to.name}`
      const files = {
        backup_label: label.labelfile,
        'postgresql.auto.conf': `primary_conninfo = '${conninfo}'\nwal_retrieve_retry_interval = 100ms\n`,
        'standby.signal': '',
      }
      for (const [name, text] of Object.entries(files)) {
        writeFileSync(join(to.data, name), text)
        own(join(to.data, name))
      }
      for (const name of ['pg_wal', 'pg_wal/archive_status', 'pg_wal/summaries', 'pg_dynshmem']) {
        mkdirSync(join(to.data, name), { mode: 0o700 })
        own(join(to.data, name))
      }
      own(to.data)
    })
  }

  async function reload(node: Node, setting: string, value: string): Promise<void> {
    await asSuperuser(node, async sql => {
      await sql.unsafe(`alter system set ${setting} = '${value}'`)
      await sql`select pg_reload_conf()`
    })
  }

  const pair: Pair = {
    url: toUrl([primary, standby], 'tidings', 'tidings'),
    get primaryUrl() {
      return toUrl([primary], 'tidings', 'tidings')
    },
    get standbyUrl() {
      return toUrl([standby], 'tidings', 'tidings')
    },
    async addStandby() {
      await kill(standby)
      await copy(primary, standby)
      await start(standby)
      await until(() =>
        asSuperuser(primary, async sql => {
          const [row] = await sql<[{ is_there: boolean }]>`
            select exists (
              select from pg_stat_replication
              where state = 'streaming' and replay_lsn >= pg_current_wal_flush_lsn()
            ) as is_there
          `
          return row.is_there
        }),
      )
    },
    setSynchronous: isSynchronous =>
      reload(primary, 'synchronous_standby_names', isSynchronous ? '*' : ''),
    signal: (node, name) => signal(node === 'primary' ? primary : standby, name),
    killPrimary: () => kill(primary),
    async promote() {
      await asSuperuser(standby, sql => sql`select pg_promote(true, 60)`)
      ;[primary, standby] = [standby, primary]
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([kill(primary), kill(standby)])
      rmSync(home, { recursive: true, force: true })
    },
  }
  await start(primary)
  await asSuperuser(primary, async sql => {
    await sql`create role tidings login in role pg_monitor`
    await sql`create database tidings owner tidings`
  })
  return pair
}

/** Lists the processes that a process has started. */
export function listChildren(pid: number): number[] {
  try {
    return execFileSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' })
      .trim()
      .split(/\s+/)
      .map(Number)
  } catch {
    return []
  }
}
