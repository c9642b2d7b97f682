import { connect, type Sql } from '../../src/database/sql.ts'
import { cloneDatabase, closeCluster, toSuperuserUrl } from '../support/servers/postgres.ts'
import { makeKey, startBare, startTidings, stopCandidates, type Candidate } from './server.ts'
import { openPostgresClock, readProcessorMs } from './processor-time.ts'
import { interleaveFigures, SHARE, type Line } from './table.ts'
import { load, requireWrk, type Measured } from './wrk.ts'

const ROUNDS = 3
const SECONDS = Math.ceil(6 * SHARE)
const CROWD = 128
/** The first reference, and the ceiling. */
const [BATCH, CEILING] = ['plainest batch', 'bare Elysia']
/** The share of requests with an Idempotency-Key. */
const KEYED = 0.3

/** A measurement with the processor time of each event, in µs. */
type Round = Measured & Record<'serverUs' | 'postgresUs', number>
type Results = Record<string, Round>

/** A candidate with a count of stored events, unless it stores none. */
type Contender = Candidate & { countStored?: () => Promise<number> }

/** The medians of the rounds with a crowd of connections, without and with keys, and with one. */
type IngestFigures = Record<'plain' | 'crowd' | 'lone', Results>

/**
 * Compares durable events over HTTP with the plainest durable batch: a bare route, and one INSERT
 * and one commit for all requests that wait. The bare route without a database is the ceiling. No
 * reference authenticates, deduplicates or limits.
 */
export async function compareIngest(): Promise<Line[]> {
  requireWrk()
  const databaseUrl = await cloneDatabase()
  const sql = connect(databaseUrl, { name: 'bench', max: 1 })
  const contenders: Contender[] = []
  try {
    const key = await makeKey(databaseUrl)
    contenders.push(
      {
        ...(await startBare(BATCH, 'batch', databaseUrl)),
        countStored: () => count(sql, 'plain_events'),
      },
      await startBare(CEILING, 'nothing', databaseUrl),
      { ...(await startTidings(databaseUrl, key)), countStored: () => count(sql, 'events') },
    )
    const measure = await createMeasure(databaseUrl)
    // JIT compilers need time.
    await measure(contenders, { connections: CROWD, keyed: KEYED, rounds: 1 })
    const withKeys = { connections: CROWD, keyed: KEYED }
    const crowd = await measure(contenders, withKeys)
    const plain = await measure(contenders, { connections: CROWD, keyed: 0 })
    const lone = await measure(contenders, { connections: 1, keyed: KEYED })
    await verify(sql)
    return toLines({ plain, crowd, lone })
  } finally {
    await stopCandidates(contenders)
    await sql.end()
    await closeCluster()
  }
}

function toLines({ plain, crowd, lone }: IngestFigures): Line[] {
  const line = (
    what: string,
    results: Results,
    figure: 'perSecond' | 'p50Ms' | 'p99Ms' | 'serverUs' | 'postgresUs',
    { reference = BATCH, aim }: { reference?: string; aim?: number } = {},
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
  const cost = 'µs of processor time per event, none with a key, in'
  return [
    line(`${rate}, none with a key`, plain, 'perSecond', { aim: 0.55 }),
    line(`${rate}, 30 % with a key`, crowd, 'perSecond', { aim: 0.5 }),
    line(`${cost} the server`, plain, 'serverUs'),
    line(`${cost} Postgres`, plain, 'postgresUs'),
    line(`ms p99, ${CROWD} connections, none with a key`, plain, 'p99Ms'),
    line('ms p50, 1 connection', lone, 'p50Ms', { aim: 0.7 }),
    line(`${rate}, none with a key`, plain, 'perSecond', { reference: CEILING, aim: 0.4 }),
  ]
}

interface Conditions {
  connections: number
  /** The share of requests with an Idempotency-Key. */
  keyed: number
  rounds?: number
}

/**
 * Returns a function that runs rounds of all contenders in turn, and returns medians. It throws
 * unless every acknowledged event of a round is stored after it.
 */
async function createMeasure(databaseUrl: string) {
  const sql = connect(databaseUrl, { name: 'bench', max: 1 })
  const readPostgresMs = await openPostgresClock(sql).finally(() => sql.end())
  const superuserUrl = await toSuperuserUrl(databaseUrl)
  async function runRound(contender: Contender, conditions: Conditions): Promise<Round> {
    const { name, url, headers, countStored, pid } = contender
    const { connections, keyed } = conditions
    // Postgres uses WAL files again after a checkpoint, as in an older database.
    const admin = connect(superuserUrl, { name: 'bench', max: 1 })
    await admin`checkpoint`.finally(() => admin.end())
    const run = async (): Promise<Round> => {
      const [serverMs, postgresMs] = [readProcessorMs(pid), readPostgresMs()]
      const measured = await load({ url, headers, connections, seconds: SECONDS, keyed })
      const toUs = (ms: number) => (ms * 1000) / measured.acknowledged
      return {
        ...measured,
        serverUs: toUs(readProcessorMs(pid) - serverMs),
        postgresUs: toUs(readPostgresMs() - postgresMs),
      }
    }
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

  return (contenders: readonly Contender[], conditions: Conditions): Promise<Results> =>
    interleaveFigures(
      Object.fromEntries(contenders.map(one => [one.name, () => runRound(one, conditions)])),
      conditions.rounds ?? ROUNDS,
    )
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

/** Throws if the log has holes: figures count only for a correct log. */
async function verify(sql: Sql): Promise<void> {
  const [row] = await sql<[{ events: string; head: string }]>`
    select (select count(*) from events) as events, (select max(last_seq) from event_logs) as head
  `
  if (row.events !== row.head) throw new Error('seq is not dense')
}
