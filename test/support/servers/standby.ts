import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ensureBinaries } from '../../../src/database/embedded/binaries.ts'
import { makeFolder } from '../scratch.ts'
import { until } from '../until.ts'
import { createNode, type PostgresNode } from './postgres-node.ts'

/** A primary and a standby with streaming replication, whose roles a promotion swaps. */
export interface Pair extends AsyncDisposable {
  /** The URL of the database with both hosts. */
  url: string
  /** The URL of the database on the host that is the primary now. */
  readonly primaryUrl: string
  /** The URL of the database on the host that is the standby now. */
  readonly standbyUrl: string
  /** Creates the standby from the primary, and waits until it has replayed everything. */
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
  // A copy of the primary needs the WAL since its beginning.
  wal_keep_size: '1GB',
  hot_standby_feedback: 'on',
}
/** Files of a running Postgres that its copy must not have. */
const LIVE_FILES = ['pg_wal', 'postmaster.pid', 'postmaster.opts', 'standby.signal', 'pg_dynshmem']

/** Starts a Postgres on loopback with an empty database for Tidings. */
export async function startPair(): Promise<Pair> {
  const home = makeFolder()
  const bin = process.env['POSTGRES_BIN'] ?? join(await ensureBinaries(home), 'bin')
  const makeNode = (name: string) => createNode({ bin, home, name, settings: SETTINGS })
  let primary = await makeNode('one')
  let standby = await makeNode('two')
  primary.initialize('C')

  /** Copies the files of the running primary, as pg_basebackup does. */
  async function copy(from: PostgresNode, to: PostgresNode): Promise<void> {
    rmSync(to.data, { recursive: true, force: true })
    mkdirSync(to.data, { mode: 0o700 })
    await from.ask(async sql => {
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
      const conninfo = `host=127.0.0.1 port=${from.port} user=postgres application_name=standby`
      const files = {
        backup_label: label.labelfile,
        'postgresql.auto.conf': `primary_conninfo = '${conninfo}'\nwal_retrieve_retry_interval = 100ms\n`,
        'standby.signal': '',
      }
      for (const [name, text] of Object.entries(files)) {
        writeFileSync(join(to.data, name), text)
        to.own(join(to.data, name))
      }
      for (const name of ['pg_wal', 'pg_wal/archive_status', 'pg_wal/summaries', 'pg_dynshmem']) {
        mkdirSync(join(to.data, name), { mode: 0o700 })
        to.own(join(to.data, name))
      }
      to.own(to.data)
    })
  }

  const pair: Pair = {
    url: `postgres://tidings@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/tidings`,
    get primaryUrl() {
      return primary.toUrl('tidings', 'tidings')
    },
    get standbyUrl() {
      return standby.toUrl('tidings', 'tidings')
    },
    async addStandby() {
      await standby.kill()
      await copy(primary, standby)
      await standby.start()
      await until(() =>
        primary.ask(async sql => {
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
      primary.ask(async sql => {
        const names = isSynchronous ? '*' : ''
        await sql.unsafe(`alter system set synchronous_standby_names = '${names}'`)
        await sql`select pg_reload_conf()`
      }),
    signal: (node, name) => (node === 'primary' ? primary : standby).signal(name),
    killPrimary: () => primary.kill(),
    async promote() {
      await standby.ask(sql => sql`select pg_promote(true, 60)`)
      ;[primary, standby] = [standby, primary]
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([primary.kill(), standby.kill()])
      rmSync(home, { recursive: true, force: true })
    },
  }
  await primary.start()
  await primary.ask(async sql => {
    await sql`create role tidings login in role pg_monitor`
    await sql`create database tidings owner tidings`
  })
  return pair
}
