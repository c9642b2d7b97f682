import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chownSync } from 'node:fs'
import { join } from 'node:path'
import { findPostgresUser } from '../../../src/database/embedded/folders.ts'
import { sendSignal } from '../../../src/database/embedded/processes.ts'
import type { Sql } from '../../../src/database/sql.ts'
import { listChildren } from '../leftovers.ts'
import { findFreePort } from '../loopback.ts'
import { openSql } from '../sql.ts'
import { until } from '../until.ts'

/** A Postgres on loopback, with the programs of any folder. */
export interface PostgresNode {
  port: number
  data: string
  toUrl(user: string, database: string): string
  /** Gives a file to the user of Postgres. */
  own(path: string): void
  /** Creates its files, with the superuser `postgres`. */
  initialize(locale: string): void
  /** Starts it. Resolves when it accepts connections. */
  start(): Promise<void>
  /** Connects as the superuser for `work`. */
  ask<Result>(work: (sql: Sql) => Promise<Result>, database?: string): Promise<Result>
  /** Sends a signal to all its processes. */
  signal(name: NodeJS.Signals): void
  /** Kills all its processes. */
  kill(): Promise<void>
  /** Ends it as `pg_ctl stop` does. */
  stop(): Promise<void>
}

interface NodeOptions {
  /** The folder of the programs. */
  bin: string
  /** The parent of its files. */
  home: string
  name: string
  settings?: Readonly<Record<string, string>>
}

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  shared_buffers: '64MB',
  max_connections: '300',
  dynamic_shared_memory_type: 'mmap',
}

/** Returns a Postgres that has no files yet. */
export async function createNode(options: NodeOptions): Promise<PostgresNode> {
  const { bin, home, name } = options
  const port = await findFreePort()
  const data = join(home, name)
  const osUser = findPostgresUser(home)
  const own = (path: string) => osUser && chownSync(path, osUser.uid, osUser.gid)
  own(home)
  const how = { ...osUser, cwd: home, env: { LC_ALL: 'C', TZ: 'UTC', LOCPATH: home } }
  const settings = { ...SETTINGS, ...options.settings, port: String(port), cluster_name: name }
  let child: ChildProcess | undefined
  const isRunning = () => child && child.exitCode === null && child.signalCode === null
  const node: PostgresNode = {
    port,
    data,
    toUrl: (user, database) => `postgres://${user}@127.0.0.1:${port}/${database}`,
    own,
    initialize(locale) {
      const args = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', `--locale=${locale}`]
      execFileSync(join(bin, 'initdb'), ['-D', data, ...args, '--no-sync'], {
        ...how,
        stdio: 'ignore',
      })
    },
    async start() {
      const args = Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`])
      child = spawn(join(bin, 'postgres'), ['-D', data, ...args], {
        ...how,
        detached: true,
        stdio: ['ignore', 'ignore', process.env['TIDINGS_TEST_LOG'] ? 'inherit' : 'ignore'],
      })
      await until(() =>
        node
          .ask(sql => sql`select 1`)
          .then(
            () => true,
            () => false,
          ),
      )
    },
    async ask(work, database = 'postgres') {
      const url = node.toUrl('postgres', database)
      await using sql = openSql(url, { settings: { synchronous_commit: 'local' } })
      return await work(sql)
    },
    signal(name) {
      // The backends of Postgres are in groups of their own.
      const pids = child?.pid && isRunning() ? [child.pid, ...listChildren(child.pid)] : []
      for (const pid of pids) sendSignal(pid, name)
    },
    async kill() {
      if (!child || !isRunning()) return
      const exited = once(child, 'exit')
      node.signal('SIGKILL')
      await exited
    },
    async stop() {
      if (!child || !isRunning()) return
      const exited = once(child, 'exit')
      child.kill('SIGINT')
      await exited
    },
  }
  return node
}
