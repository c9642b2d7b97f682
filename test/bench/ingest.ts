import { once } from 'node:events'
import { connect } from '../../src/db/sql.ts'
import { cloneDatabase, closeCluster } from '../support/postgres.ts'
import { makeKey, startCandidate, startTidings, type Candidate } from './server.ts'
import { load, median, requireWrk, type Measured } from './wrk.ts'

const ROUNDS = 3
const SECONDS = 6

/** Durable events over HTTP against the same route without a database, and against one INSERT + NOTIFY each. */
export async function benchIngest(): Promise<void> {
  requireWrk()
  const databaseUrl = await cloneDatabase()
  const key = await makeKey(databaseUrl)
  const candidates = [
    await startTidings(databaseUrl, key),
    await startCandidate('no database', 'nothing', databaseUrl, key),
    await startCandidate('INSERT + NOTIFY', 'insert-notify', databaseUrl, key),
  ]
  try {
    const crowd = await measure(candidates, 128)
    const lone = await measure(candidates, 1)
    print('128 connections, 30 % with an Idempotency-Key', crowd)
    print('1 connection', lone)
    const ours = crowd.get('tidings')!
    console.log(`\nof «no database»       ${ratio(ours, crowd.get('no database')!)}   (aim 0.45)`)
    console.log(`of «INSERT + NOTIFY»   ${ratio(ours, crowd.get('INSERT + NOTIFY')!)}   (aim 5)`)
    console.log(
      `p99 ${ours.p99Ms.toFixed(1)} ms (aim 15), alone p50 ${lone.get('tidings')!.p50Ms.toFixed(2)} ms (aim 1.5)`,
    )
    await verify(databaseUrl)
  } finally {
    for (const { child } of candidates) child.kill('SIGTERM')
    await Promise.all(candidates.map(({ child }) => child.exitCode === null && once(child, 'exit')))
    await closeCluster()
  }
}

/** Rounds of all candidates in turn, so that a slow minute of the machine meets all of them; medians. */
export async function measure(
  candidates: Candidate[],
  connections: number,
): Promise<Map<string, Measured>> {
  const all = new Map<string, Measured[]>(candidates.map(({ name }) => [name, []]))
  for (let round = 0; round < ROUNDS; round++) {
    for (const { name, url, key } of candidates) {
      all.get(name)?.push(await load({ url, key, connections, seconds: SECONDS, keyed: 0.3 }))
    }
  }
  return new Map(
    [...all].map(([name, rounds]) => [
      name,
      {
        perSecond: median(rounds.map(round => round.perSecond)),
        p50Ms: median(rounds.map(round => round.p50Ms)),
        p99Ms: median(rounds.map(round => round.p99Ms)),
        failed: rounds.reduce((sum, round) => sum + round.failed, 0),
      },
    ]),
  )
}

export function print(title: string, results: Map<string, Measured>): void {
  console.log(`\n${title} (medians of ${ROUNDS} interleaved rounds of ${SECONDS} s)`)
  for (const [name, { perSecond, p50Ms, p99Ms, failed }] of results) {
    const columns = [
      name.padEnd(18),
      `${perSecond.toFixed(0).padStart(7)}/s`,
      `p50 ${p50Ms.toFixed(2)} ms`,
      `p99 ${p99Ms.toFixed(2)} ms`,
      `failed ${failed}`,
    ]
    console.log(columns.join('   '))
  }
}

export function ratio(ours: Measured, other: Measured): string {
  return (ours.perSecond / other.perSecond).toFixed(2)
}

/** A figure counts only when the log is right. */
export async function verify(databaseUrl: string): Promise<void> {
  const sql = connect(databaseUrl, { name: 'bench', max: 1, settings: { statement_timeout: 0 } })
  const [row] = await sql<[{ events: string; head: string; keys: string; size: string }]>`
    select (select count(*) from events) as events, (select max(last_seq) from event_logs) as head,
      (select count(*) from idempotency_keys) as keys, pg_size_pretty(pg_database_size(current_database())) as size
  `
  await sql.end()
  console.log(`log: ${row.events} events, head ${row.head}, ${row.keys} keys, ${row.size}`)
  if (row.events !== row.head) throw new Error('seq is not dense')
}
