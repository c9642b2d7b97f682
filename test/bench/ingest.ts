import { connect, type Sql } from '../../src/db/sql.ts'
import { cloneDatabase, closeCluster, createEmptyDatabase } from '../support/postgres.ts'
import {
  makeKey,
  startCandidate,
  startParseServer,
  startTidings,
  stopCandidates,
  type Candidate,
} from './server.ts'
import { interleaveFigures, printTable, SHARE, type Line } from './table.ts'
import { load, requireWrk, type Measured } from './wrk.ts'

const ROUNDS = 3
const SECONDS = Math.ceil(6 * SHARE)
const CROWD = 128

type Results = Record<string, Measured>

/** A candidate with a count of stored events, unless it stores none. */
type Contender = Candidate & { countStored?: () => Promise<number> }

/**
 * Compares durable events over HTTP with a bare Elysia route, our route without a database, INSERT
 * + NOTIFY, and parse-server.
 */
export async function benchIngest(): Promise<void> {
  const { crowd, lone, log } = await runIngest()
  print(`${CROWD} connections, 30 % with an Idempotency-Key`, crowd)
  print('1 connection', lone)
  console.log(`log: ${log}\nTidings' aims: p99 of the crowd 15 ms, p50 alone 1.5 ms\n`)
  printTable(toLines(crowd, lone))
}

/** The same comparison, as lines of the table. */
export async function compareIngest(): Promise<Line[]> {
  const { crowd, lone } = await runIngest()
  return toLines(crowd, lone)
}

/** No reference deduplicates or limits; the candidates without lookups accept one key. */
async function runIngest(): Promise<{ crowd: Results; lone: Results; log: string }> {
  requireWrk()
  const databaseUrl = await cloneDatabase()
  const parseUrl = await createEmptyDatabase()
  const sql = connect(databaseUrl, { name: 'bench', max: 1 })
  const parseSql = connect(parseUrl, { name: 'bench', max: 1 })
  const contenders: Contender[] = []
  try {
    const key = await makeKey(databaseUrl)
    contenders.push(
      await startCandidate('bare Elysia', 'bare', databaseUrl, key),
      { ...(await startTidings(databaseUrl, key)), countStored: () => count(sql, 'events') },
      await startCandidate('no database', 'nothing', databaseUrl, key),
      {
        ...(await startCandidate('INSERT + NOTIFY', 'insert-notify', databaseUrl, key)),
        countStored: () => count(sql, 'plain_events'),
      },
      { ...(await startParseServer(parseUrl)), countStored: () => count(parseSql, 'Event') },
    )
    // JIT compilers need time: parse-server's first seconds are a third as fast as later ones.
    for (const one of contenders) await runRound(one, CROWD)
    const crowd = await measure(contenders, CROWD)
    const lone = await measure(contenders, 1)
    return { crowd, lone, log: await verify(databaseUrl) }
  } finally {
    await stopCandidates(contenders)
    await Promise.all([sql.end(), parseSql.end()])
    await closeCluster()
  }
}

function toLines(crowd: Results, lone: Results): Line[] {
  const line = (
    what: string,
    results: Results,
    figure: 'perSecond' | 'p50Ms' | 'p99Ms',
    reference: string,
    aim?: number,
  ): Line => ({
    subject: 'ingest',
    what,
    ours: results['tidings']?.[figure] ?? NaN,
    reference,
    theirs: results[reference]?.[figure] ?? NaN,
    better: figure === 'perSecond' ? 'more' : 'less',
    ...(aim === undefined ? {} : { aim }),
  })
  const rate = `events/s, ${CROWD} connections`
  const stores = ['INSERT + NOTIFY', 'parse-server']
  return [
    line(rate, crowd, 'perSecond', 'bare Elysia', 0.4),
    {
      ...line(`${rate}, no database`, crowd, 'perSecond', 'bare Elysia', 0.65),
      ours: crowd['no database']?.perSecond ?? NaN,
    },
    line(rate, crowd, 'perSecond', 'no database', 0.45),
    line(rate, crowd, 'perSecond', 'INSERT + NOTIFY', 5),
    line(rate, crowd, 'perSecond', 'parse-server'),
    ...stores.map(name => line(`ms p99, ${CROWD} connections`, crowd, 'p99Ms', name)),
    ...stores.map(name => line('ms p50, 1 connection', lone, 'p50Ms', name)),
  ]
}

/**
 * Runs rounds of all contenders in turn; returns medians. Throws unless every acknowledged event of
 * a round is stored after it.
 */
export async function measure(contenders: Contender[], connections: number): Promise<Results> {
  return interleaveFigures(
    Object.fromEntries(contenders.map(one => [one.name, () => runRound(one, connections)])),
    ROUNDS,
  )
}

async function runRound(contender: Contender, connections: number): Promise<Measured> {
  const { name, url, headers, countStored } = contender
  const run = () => load({ url, headers, connections, seconds: SECONDS, keyed: 0.3 })
  if (!countStored) return run()
  const before = await countStored()
  const round = await run()
  const { acknowledged, failed } = round
  const stored = (await countSettled(countStored)) - before
  // Some requests in flight at the end are stored and not acknowledged.
  if (stored < acknowledged || stored > acknowledged + connections + failed)
    throw new Error(`${name} acknowledged ${acknowledged} events and stored ${stored}`)
  return round
}

/** Counts once no request is in flight any more. */
async function countSettled(countStored: () => Promise<number>): Promise<number> {
  for (let last = await countStored(); ;) {
    await Bun.sleep(100)
    const now = await countStored()
    if (now === last) return now
    last = now
  }
}

async function count(sql: Sql, table: string): Promise<number> {
  const [row] = await sql<[{ events: string }]>`select count(*) as events from ${sql(table)}`
  return Number(row.events)
}

export function print(title: string, results: Results): void {
  console.log(`\n${title} (medians of ${ROUNDS} interleaved rounds of ${SECONDS} s)`)
  for (const [name, { perSecond, p50Ms, p99Ms, failed }] of Object.entries(results)) {
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

/** Describes the log. Throws if the log has holes: figures count only for a correct log. */
export async function verify(databaseUrl: string): Promise<string> {
  const sql = connect(databaseUrl, { name: 'bench', max: 1, settings: { statement_timeout: 0 } })
  const [row] = await sql<[{ events: string; head: string; keys: string; size: string }]>`
    select (select count(*) from events) as events, (select max(last_seq) from event_logs) as head,
      (select count(*) from idempotency_keys) as keys, pg_size_pretty(pg_database_size(current_database())) as size
  `
  await sql.end()
  if (row.events !== row.head) throw new Error('seq is not dense')
  return `${row.events} events, head ${row.head}, ${row.keys} keys, ${row.size}`
}
