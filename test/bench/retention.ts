import { connect, type Sql } from '../../src/database/sql.ts'
import { closeCluster, ensureDatabase } from '../support/servers/postgres.ts'
import { createKey } from '../support/worlds/keys.ts'
import { openPostgresClock } from './processor-time.ts'
import { reportFill, takeIndexes, useDatabase } from './read-data.ts'
import { startTidings, stopCandidates, type Candidate } from './server.ts'
import { sendSteadily } from './steady.ts'
import { ARGUMENTS, readEvents, SHARE, toShare } from './table.ts'
import { load, median, requireWrk } from './wrk.ts'

const EVENTS = toShare(readEvents(20_000_000))
const STEP = 500_000
const SECONDS = Math.ceil(Math.max(10, 20 * SHARE))
const ROUNDS = 3
/** The fixed rate of ingest, a small part of the highest one. */
const PER_SECOND = 500
const ORGANIZATION = '00000000-0000-7000-8000-00000000000a'
/** The project of all events. */
const PROJECT = '00000000-0000-7000-8000-000000000001'
const CHANNEL = '00000000-0000-7000-8000-0000000000cc'

/** The least number of days, and the most events of a day. A month has 1.5 million at most. */
const MIN_DAYS = 20
const PER_DAY = 50_000

/** Returns the statement for events of one channel, of which the last was accepted 40 days ago. */
const toInsert = (events: number, days = Math.max(MIN_DAYS, Math.ceil(events / PER_DAY))) => `
  insert into events (
    project_id, id, channel_id, seq, occurred_at, created_at, title, description, icon, tags, metadata, user_ref,
    source, notify
  )
  select
    '${PROJECT}', gen_random_uuid(), '${CHANNEL}', n, at, at, 'New payment ' || n, 'A customer paid for a plan', null,
    '{billing,plan}', '{"amount":42,"plan":"pro","currency":"EUR"}', 'user_' || n % 1000, 'api', true
  from (
    select n, now() - interval '40 days' - (${events} - n) * (interval '${days} days' / ${events}) as at
    from generate_series($1::bigint, $2::bigint) as g (n)
  ) rows
`

/** Runs without ingest, at a fixed rate of events per second, and as fast as possible. */
const LOADS: { name: string; perSecond?: number; connections?: number }[] = [
  { name: 'no ingest' },
  { name: `ingest of ${PER_SECOND}/s`, perSecond: PER_SECOND },
  { name: 'ingest, 128 connections', connections: 128 },
]

type Figures = Record<'deleted' | 'micros' | 'ingested' | 'p50Ms' | 'p99Ms', number>

/**
 * Measures how fast the server deletes millions of expired events of one channel, alone and beside
 * ingest into the same project, and what ingest loses by it. Rounds with and without retention
 * alternate.
 */
export async function benchRetention(): Promise<void> {
  requireWrk()
  if (ARGUMENTS.values['fill']) {
    await ensureOldEvents(EVENTS)
    return closeCluster()
  }
  const url = await openOldEvents(EVENTS)
  for (const load of LOADS) {
    const isAlone = load.name === 'no ingest'
    const [kept, expired]: Figures[][] = [[], []]
    for (let round = 0; round < ROUNDS; round++) {
      if (!isAlone) kept?.push(await run(url, load, null))
      expired?.push(await run(url, load, 30))
    }
    for (const [how, all = []] of [
      ['events kept', kept],
      ['kept for 30 days', expired],
    ] as const)
      if (all.length > 0) console.log(`${load.name}, ${how}: ${toText(all)}`)
  }
  await closeCluster()
}

/** Returns a database to change, with this many events of one channel, 40 days old and older. */
async function openOldEvents(events: number): Promise<string> {
  return useDatabase(await ensureOldEvents(events))
}

/** Returns the database of these events that is kept. */
function ensureOldEvents(events: number): Promise<string> {
  return ensureDatabase(`bench_retention_${events}`, {
    replaces: 'bench_retention_',
    fill: url => fill(url, events),
  })
}

function toText(all: readonly Figures[]): string {
  const of = (name: keyof Figures) => median(all.map(figures => figures[name]))
  const ingest = `${of('ingested').toFixed(0)}/s ingested, p50 ${of('p50Ms').toFixed(1)} ms, p99 ${of('p99Ms').toFixed(0)} ms`
  return (
    `${of('deleted').toFixed(0)} events/s deleted` +
    (of('ingested') > 0 ? `; ${ingest}` : ` for ${of('micros').toFixed(0)} µs of Postgres each`)
  )
}

async function run(
  url: string,
  { perSecond, connections }: (typeof LOADS)[number],
  keepDays: number | null,
): Promise<Figures> {
  const sql = connect(url, { name: 'bench', max: 1, settings: { statement_timeout: 0 } })
  const { token } = await createKey(sql, {
    projectId: PROJECT,
    name: 'bench',
    limit: 1_000_000_000,
  })
  await sql`update channels set keep_days = ${keepDays}`
  const server = await startTidings(url, token)
  // The channels of the load exist, and the retention has begun.
  await postSteadily(server, 100, 1)
  const clock = await openPostgresClock(sql)
  const [before, beforeMs, startedMs] = [await countOld(sql), clock(), performance.now()]
  const ingest = perSecond
    ? await postSteadily(server, perSecond, SECONDS)
    : connections
      ? await load({ ...server, connections, seconds: SECONDS, keyed: 0 })
      : await Bun.sleep(SECONDS * 1_000)
  const [deleted, tookS] = [before - (await countOld(sql)), (performance.now() - startedMs) / 1_000]
  const micros = ((clock() - beforeMs) * 1_000) / deleted
  await stopCandidates([server])
  await sql.end()
  return {
    deleted: deleted / tookS,
    micros,
    ingested: ingest?.perSecond ?? 0,
    p50Ms: ingest?.p50Ms ?? NaN,
    p99Ms: ingest?.p99Ms ?? NaN,
  }
}

/** Posts at a fixed rate. Times count from when a post was due. */
async function postSteadily(
  { url, headers }: Candidate,
  perSecond: number,
  seconds: number,
): Promise<{ perSecond: number; p50Ms: number; p99Ms: number }> {
  const { origin, pathname } = new URL(url)
  const took: number[] = []
  const startedMs = performance.now()
  const total = perSecond * seconds
  await sendSteadily({ origin, perSecond, total }, async (client, nth, dueMs) => {
    const body = JSON.stringify({
      channelName: `channel ${nth % 20}`,
      title: `New payment ${nth}`,
      description: 'A customer paid for a plan',
      tags: ['billing', 'plan'],
      userId: `user_${nth % 100}`,
    })
    const { status } = await client.request('POST', pathname, {
      headers: { ...headers, 'content-type': 'application/json' },
      body,
    })
    if (status !== 201) throw new Error(`A post was answered ${status}`)
    took.push(performance.now() - dueMs)
  })
  const tookS = (performance.now() - startedMs) / 1_000
  const at = (share: number) =>
    took.sort((a, b) => a - b)[Math.floor(share * (took.length - 1))] ?? NaN
  return { perSecond: total / tookS, p50Ms: at(0.5), p99Ms: at(0.99) }
}

/** Counts the old events that are left, by the first of them: they are deleted in order. */
async function countOld(sql: Sql): Promise<number> {
  const [row] = await sql<[{ seq: string }]>`
    select coalesce(min(seq), ${EVENTS + 1}) as seq from events where project_id = ${PROJECT}
  `
  return EVENTS + 1 - Number(row.seq)
}

async function fill(url: string, events: number): Promise<void> {
  const startedMs = performance.now()
  const sql = connect(url, {
    name: 'bench',
    max: 1,
    settings: { statement_timeout: 0, maintenance_work_mem: '1GB', work_mem: '256MB', jit: 'off' },
  })
  await sql`insert into organizations (id, name) values (${ORGANIZATION}, 'Bench')`
  await sql`insert into projects (id, organization_id, name) values (${PROJECT}, ${ORGANIZATION}, 'Bench')`
  await sql`
    insert into channels (project_id, id, public_id, slug, name, created_at)
    values (${PROJECT}, ${CHANNEL}, 'chn_bench', 'old', 'Old', now())
  `
  const indexes = await takeIndexes(sql)
  for (let first = 1; first < events; first += STEP) {
    await sql.unsafe(toInsert(events), [first, Math.min(events, first + STEP - 1)])
  }
  for (const statement of indexes) await sql.unsafe(statement)
  await sql.unsafe(`
    insert into event_logs select project_id, max(seq) from events group by 1;
    insert into event_counts (project_id, hour, channel_id, n)
      select project_id, hour_of(occurred_at), channel_id, count(*) from events group by 1, 2, 3;
    insert into event_segments (project_id, segment, first_at, last_at)
      select project_id, seq >> 12, min(hour_of(occurred_at)), max(hour_of(occurred_at)) + interval '1 hour'
      from events group by 1, 2;
    insert into search_cursors (project_id, seq) values ('${PROJECT}', ${events});
  `)
  await sql.unsafe('vacuum analyze')
  await reportFill(sql, events, startedMs)
  await sql.end()
}
