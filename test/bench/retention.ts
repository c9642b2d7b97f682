import { connect, type Sql } from '../../src/db/sql.ts'
import { createKey } from '../support/keys.ts'
import { closeCluster, copyDatabase, ensureDatabase } from '../support/postgres.ts'
import { openPostgresClock } from './processor-time.ts'
import { takeIndexes } from './read-data.ts'
import { startTidings, stopCandidates } from './server.ts'
import { SHARE, toShare } from './table.ts'
import { load, requireWrk } from './wrk.ts'

const EVENTS = toShare(20_000_000)
const STEP = 500_000
const SECONDS = Math.ceil(Math.max(20, 60 * SHARE))
const ORGANIZATION = '00000000-0000-7000-8000-00000000000a'
const PROJECT = '00000000-0000-7000-8000-000000000001'
const CHANNEL = '00000000-0000-7000-8000-0000000000cc'

/** Events of one channel that were accepted 60 to 40 days ago. */
const INSERT = `
  insert into events (
    project_id, id, channel_id, seq, occurred_at, created_at, title, description, icon, tags, metadata, user_ref,
    source, notify
  )
  select
    '${PROJECT}', gen_random_uuid(), '${CHANNEL}', n, at, at, 'New payment ' || n, 'A customer paid for a plan', null,
    '{billing,plan}', '{"amount":42,"plan":"pro","currency":"EUR"}', 'user_' || n % 1000, 'api', true
  from (
    select n, now() - interval '60 days' + n * interval '20 days' / ${EVENTS} as at
    from generate_series($1::bigint, $2::bigint) as g (n)
  ) rows
`

/**
 * Measures how fast the server deletes 20 million expired events of one channel, alone and beside
 * ingest into the same project, and what ingest loses by it.
 */
export async function benchRetention(): Promise<void> {
  requireWrk()
  const full = await ensureDatabase(`bench_retention_${EVENTS}`, {
    replaces: 'bench_retention_',
    fill,
  })
  const url = await copyDatabase(full)
  for (const connections of [0, 32, 128]) {
    for (const keepDays of connections === 0 ? [30] : [null, 30]) {
      const { deleted, ingested, micros } = await run(url, { connections, keepDays })
      const name = connections === 0 ? 'no ingest' : `ingest, ${connections} connections`
      console.log(
        `${name}, ${keepDays === null ? 'events kept' : `kept for ${keepDays} days`}: ` +
          `${deleted.toFixed(0)} events/s deleted, ${ingested.toFixed(0)}/s ingested` +
          (keepDays === null ? '' : `, Postgres ${micros.toFixed(0)} µs per deleted event`),
      )
    }
  }
  await closeCluster()
}

async function run(
  url: string,
  { connections, keepDays }: { connections: number; keepDays: number | null },
): Promise<{ deleted: number; ingested: number; micros: number }> {
  const sql = connect(url, { name: 'bench', max: 1, settings: { statement_timeout: 0 } })
  const { token } = await createKey(sql, {
    projectId: PROJECT,
    name: 'bench',
    limit: 1_000_000_000,
  })
  await sql`update channels set keep_days = ${keepDays}`
  const server = await startTidings(url, token)
  const clock = await openPostgresClock(sql)
  const [before, beforeMs, startedMs] = [await countOld(sql), clock(), performance.now()]
  const { url: to, headers } = server
  const ingest =
    connections === 0
      ? Bun.sleep(SECONDS * 1_000).then(() => ({ perSecond: 0 }))
      : load({ url: to, headers, connections, seconds: SECONDS, keyed: 0 })
  const { perSecond } = await ingest
  const [deleted, tookS] = [before - (await countOld(sql)), (performance.now() - startedMs) / 1_000]
  const micros = ((clock() - beforeMs) * 1_000) / deleted
  await stopCandidates([server])
  await sql.end()
  return { deleted: deleted / tookS, ingested: perSecond, micros }
}

/** Counts the old events that are left, by the first of them: they are deleted in order. */
async function countOld(sql: Sql): Promise<number> {
  const [row] = await sql<[{ seq: string }]>`
    select coalesce(min(seq), ${EVENTS + 1}) as seq from events where project_id = ${PROJECT}
  `
  return EVENTS + 1 - Number(row.seq)
}

async function fill(url: string): Promise<void> {
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
  for (let first = 1; first < EVENTS; first += STEP) {
    await sql.unsafe(INSERT, [first, Math.min(EVENTS, first + STEP - 1)])
  }
  for (const statement of indexes) await sql.unsafe(statement)
  await sql.unsafe(`
    insert into event_logs select project_id, max(seq) from events group by 1;
    insert into event_counts (project_id, hour, channel_id, n)
      select project_id, hour_of(occurred_at), channel_id, count(*) from events group by 1, 2, 3;
    insert into event_segments (project_id, segment, first_at, last_at)
      select project_id, seq >> 12, min(hour_of(occurred_at)), max(hour_of(occurred_at)) + interval '1 hour'
      from events group by 1, 2;
    insert into search_cursors (project_id, seq) values ('${PROJECT}', ${EVENTS});
  `)
  await sql.unsafe('vacuum analyze')
  await sql.end()
}
