import { execFileSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { distribute } from '../../../src/database/distribute.ts'
import { migrate } from '../../../src/database/migrate.ts'
import { makeFolder } from '../scratch.ts'
import { openSql } from '../sql.ts'
import { createNode, type PostgresNode } from './postgres-node.ts'

/** A coordinator and worker nodes on loopback. */
export interface CitusCluster extends AsyncDisposable {
  /** Returns the URL of a new distributed database at the current schema. */
  createDatabase(): Promise<string>
  /** Kills a node with all its processes: 0 is the coordinator, 1 the first worker node. */
  kill(nth: number): Promise<void>
  /** Starts a node again. Resolves when it accepts connections. */
  start(nth: number): Promise<void>
}

const SETTINGS = {
  shared_preload_libraries: 'citus',
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
  const nodes: PostgresNode[] = []
  const run = (node: PostgresNode, database: string, ...statements: string[]) =>
    node.ask(async sql => {
      for (const statement of statements) await sql.unsafe(statement)
    }, database)
  const toNode = (nth: number): PostgresNode => {
    const node = nodes[nth]
    if (!node) throw new Error(`There is no node ${nth}`)
    return node
  }

  for (let nth = 0; nth <= workers; nth++) {
    const node = await createNode({ bin, home, name: `node${nth}`, settings: SETTINGS })
    nodes.push(node)
    node.initialize('C.UTF-8')
    await node.start()
    await run(node, 'postgres', `create role ${ROLE} login in role pg_monitor`)
  }
  const coordinator = toNode(0)
  let made = 0

  return {
    async createDatabase() {
      const name = `test_${++made}`
      const url = coordinator.toUrl(ROLE, name)
      for (const node of nodes) {
        await run(node, 'postgres', `create database ${name} owner ${ROLE}`)
        await run(node, name, 'create extension citus')
      }
      await run(
        coordinator,
        name,
        `select citus_set_coordinator_host('127.0.0.1', ${coordinator.port})`,
        ...nodes.slice(1).map(({ port }) => `select citus_add_node('127.0.0.1', ${port})`),
      )
      await migrate(url)
      await distribute(url)
      return url
    },
    kill: nth => toNode(nth).kill(),
    start: nth => toNode(nth).start(),
    async [Symbol.asyncDispose]() {
      await Promise.all(nodes.map(node => node.kill()))
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
