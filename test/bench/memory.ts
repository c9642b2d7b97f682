import { readFileSync } from 'node:fs'
import { connect } from '../../src/database/sql.ts'
import { cloneDatabase, closeCluster } from '../support/servers/postgres.ts'
import { makeKey, startTidings } from './server.ts'
import { load, requireWrk } from './wrk.ts'

const EVENTS = 1_000_000
const STEP_SECONDS = 5

/** Prints the server's memory while it accepts a million events; without Postgres. */
export async function benchMemory(): Promise<void> {
  requireWrk()
  const databaseUrl = await cloneDatabase()
  const { pid, stop, url, headers } = await startTidings(databaseUrl, await makeKey(databaseUrl))
  const sql = connect(databaseUrl, { name: 'bench', max: 1 })
  try {
    for (let events = 0; events < EVENTS;) {
      await load({ url, headers, connections: 128, seconds: STEP_SECONDS, keyed: 0.3 })
      const [row] = await sql<[{ head: string }]>`select max(last_seq) as head from event_logs`
      events = Number(row.head)
      console.log(`${String(events).padStart(8)} events   RSS ${readRss(pid).toFixed(0)} MB`)
    }
  } finally {
    await stop()
    await sql.end()
    await closeCluster()
  }
}

/** Returns the resident memory of a process, in MB. */
function readRss(pid: number): number {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kilobytes) / 1024
}
