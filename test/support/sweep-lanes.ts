import { cloneDatabase } from './servers/postgres.ts'
import { boot } from './servers/server.ts'
import { startTcpProxy } from './servers/tcp-proxy.ts'
import type { Lane } from './sweep.ts'
import { scaled } from './until.ts'
import { openSql } from './sql.ts'

/** A server with a database of its own. */
export interface ServerLane extends Lane {
  url: string
  close(): Promise<void>
}

/**
 * Opens servers, each behind a proxy of its own. One after the other, because the metrics of a
 * process are those of its last server.
 */
export async function openLanes(count: number): Promise<ServerLane[]> {
  const lanes: ServerLane[] = []
  while (lanes.length < count) lanes.push(await openLane())
  return lanes
}

async function openLane(): Promise<ServerLane> {
  const databaseUrl = await cloneDatabase()
  const proxy = await startTcpProxy(databaseUrl)
  // Without deliveries, whose timers cost more than the transactions. A deadline would fail one
  // more message on a machine that is very busy; that of a new connection has a limit of its own.
  const url = new URL(proxy.url)
  url.searchParams.set('connect_timeout', '10')
  const server = await boot(
    { databaseUrl: url.href },
    { kinds: [], databaseDeadlineMs: scaled(60_000) },
  )
  const sql = openSql(databaseUrl, { max: 2 })
  return {
    url: server.url,
    proxy,
    sql,
    async close() {
      await server[Symbol.asyncDispose]()
      await sql.end({ timeout: 1 })
      await proxy.close()
    },
  }
}
