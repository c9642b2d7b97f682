import { connect } from '../../src/db/sql.ts'
import { cloneDatabase } from './postgres.ts'
import { boot } from './server.ts'
import type { Lane } from './sweep.ts'
import { startTcpProxy } from './tcp-proxy.ts'

/** A server with a database of its own. */
export interface ServerLane extends Lane {
  url: string
  close(): Promise<void>
}

/** Opens servers, each behind a proxy of its own. */
export function openLanes(count: number): Promise<ServerLane[]> {
  return Promise.all(Array.from({ length: count }, openLane))
}

async function openLane(): Promise<ServerLane> {
  const databaseUrl = await cloneDatabase()
  const proxy = await startTcpProxy(databaseUrl)
  const server = await boot({ databaseUrl: proxy.url })
  const sql = connect(databaseUrl, { name: 'test', max: 2 })
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
