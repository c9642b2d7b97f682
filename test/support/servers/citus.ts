import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { distribute } from '../../../src/database/distribute.ts'
import { findPostgresUser } from '../../../src/database/embedded/folders.ts'
import { sendSignal } from '../../../src/database/embedded/processes.ts'
import { migrate } from '../../../src/database/migrate.ts'
import { findFreePort } from '../loopback.ts'
import { makeFolder } from '../scratch.ts'
import { until } from '../until.ts'
import { listChildren } from './standby.ts'
import { openSql } from '../sql.ts'

/** A Postgres with Citus. The first node is the coordinator. */
interface Node {
  port: number
  data: string
  child: ChildProcess | undefined
}

/** A coordinator and worker nodes on loopback. */
export interface CitusCluster extends AsyncDisposable {
  /** Returns the URL of a new database at the current schema, distributed or on the coordinator. */
  createDatabase(options?: { isDistributed: boolean }): Promise<string>
  /** Kills a node with all its processes: 0 is the coordinator, 1 the first worker node. */
  kill(nth: number): Promise<void>
  /** Starts a node again. Resolves when it accepts connections. */
  start(nth: number): Promise<void>
  /** Returns the process ids of the coordinator and of each worker node. */
  pids(): number[]
}

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  shared_preload_libraries: 'citus',
  shared_buffers: '64MB',
  max_connections: '300',
  max_prepared_transactions: '300',
  // The nodes have a connection for each connection of the coordinator that uses them.
  'citus.max_client_connections': '-1',
  'citus.enable_statistics_collection': 'off',
}
const ROLE = 'tidings'

/** Returns the folder of the programs of a Postgres with Citus. Throws if it is unknown. */
function findCitus(): string {
  const bin = process.env['CITUS_BIN']
  const problem =
    'Set CITUS_BIN to the folder of the programs of a PostgreSQL 15 or 16 with Citus, such as ' +
    '/usr/lib/postgresql/15/bin. docs/scaling.md says how to build Citus.'
  if (!bin) throw new Error(problem)
  const share = execFileSync(join(bin, 'pg_config'), ['--sharedir'], { encoding: 'utf8' }).trim()
  if (!existsSync(join(share, 'extension', 'citus.control')))
    throw new Error(`The PostgreSQL in ${bin} has no Citus. ${problem}`)
  return bin
}

/** Starts a coordinator and worker nodes. */
export async function startCitus({ workers }: { workers: number }): Promise<CitusCluster> {
  const bin = findCitus()
  const home = makeFolder()
  const osUser = findPostgresUser(home)
  if (osUser) chownSync(home, osUser.uid, osUser.gid)
  const options = { ...osUser, env: { LC_ALL: 'C', TZ: 'UTC' }, cwd: home }
  const nodes: Node[] = []

  const toUrl = ({ port }: Node, user: string, database: string) =>
    `postgres://${user}@127.0.0.1:${port}/${database}`

  async function asSuperuser(node: Node, database: string, ...statements: string[]) {
    const sql = openSql(toUrl(node, 'postgres', database))
    try {
      for (const statement of statements) await sql.unsafe(statement)
    } finally {
      await sql.end({ timeout: 1 })
    }
  }

  async function start(node: Node): Promise<void> {
    const args = Object.entries({ ...SETTINGS, port: String(node.port) })
    node.child = spawn(
      join(bin, 'postgres'),
      ['-D', node.data, ...args.flatMap(([name, value]) => ['-c', `${name}=${value}`])],
      {
        ...options,
        detached: true,
        stdio: ['ignore', 'ignore', process.env['TIDINGS_TEST_LOG'] ? 'inherit' : 'ignore'],
      },
    )
    await until(() =>
      asSuperuser(node, 'postgres', 'select 1').then(
        () => true,
        () => false,
      ),
    )
  }

  async function kill(node: Node): Promise<void> {
    const { child } = node
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    for (const pid of [child.pid, ...listChildren(child.pid)]) sendSignal(pid, 'SIGKILL')
    await exited
  }

  const toNode = (nth: number): Node => {
    const node = nodes[nth]
    if (!node) throw new Error(`There is no node ${nth}`)
    return node
  }

  for (let nth = 0; nth <= workers; nth++) {
    const node = { port: await findFreePort(), data: join(home, `node${nth}`), child: undefined }
    nodes.push(node)
    execFileSync(
      join(bin, 'initdb'),
      [
        '-D',
        node.data,
        '-U',
        'postgres',
        '-A',
        'trust',
        '-E',
        'UTF8',
        '--locale=C.UTF-8',
        '--no-sync',
      ],
      { ...options, stdio: 'ignore' },
    )
    await start(node)
    await asSuperuser(node, 'postgres', `create role ${ROLE} login in role pg_monitor`)
  }
  const coordinator = toNode(0)
  let made = 0

  return {
    async createDatabase({ isDistributed } = { isDistributed: true }) {
      const name = `test_${++made}`
      const url = toUrl(coordinator, ROLE, name)
      for (const node of isDistributed ? nodes : [coordinator]) {
        await asSuperuser(node, 'postgres', `create database ${name} owner ${ROLE}`)
        if (isDistributed) await asSuperuser(node, name, 'create extension citus')
      }
      if (isDistributed) {
        await asSuperuser(
          coordinator,
          name,
          `select citus_set_coordinator_host('127.0.0.1', ${coordinator.port})`,
          ...nodes.slice(1).map(({ port }) => `select citus_add_node('127.0.0.1', ${port})`),
        )
      }
      await migrate(url)
      if (isDistributed) await distribute(url)
      return url
    },
    kill: nth => kill(toNode(nth)),
    start: nth => start(toNode(nth)),
    pids: () => nodes.map(({ child }) => child?.pid ?? 0),
    async [Symbol.asyncDispose]() {
      await Promise.all(nodes.map(kill))
      rmSync(home, { recursive: true, force: true })
    },
  }
}

/** The part of the events that a worker node has. */
export interface NodeShare {
  shards: number
  events: number
  bytes: number
}

/** Returns the share of each worker node. */
export async function readBalance(databaseUrl: string): Promise<NodeShare[]> {
  const sql = openSql(databaseUrl)
  try {
    const nodes = await sql<Record<keyof NodeShare, string>[]>`
      select
        count(*) as shards, sum(s.shard_size) as bytes,
        sum((
          select r.result::bigint
          from run_command_on_shards('events', 'select count(*) from %s') r
          where r.shardid = s.shardid
        )) as events
      from citus_shards s
      where s.table_name = 'events'::regclass
      group by s.nodeport
      order by s.nodeport
    `
    return nodes.map(({ shards, events, bytes }) => ({
      shards: Number(shards),
      events: Number(events),
      bytes: Number(bytes),
    }))
  } finally {
    await sql.end({ timeout: 1 })
  }
}
