import { connect, type Sql } from '../../src/database/sql.ts'
import { indexNextEvents, MIN_EVENTS } from '../../src/log/events/search-index.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'

/** Half of them are in one project. `BENCH_EVENTS` takes another number. */
export const EVENTS = Number(process.env['BENCH_EVENTS'] ?? 2_000_000)
const STEP = 250_000
const USERS = 100_000
export const BIG_PROJECT = '00000000-0000-7000-8000-000000000001'
/** The time of the last event: the same in every run. */
const END_MS = Date.parse('2026-11-20T00:00:00Z')

// Words are made of syllables; common words are shorter, and `bench_word(0)` is the most common
// one.
const FUNCTIONS = `
  create function bench_uuid(kind text, n bigint) returns uuid language sql immutable
    return (kind || '000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid;
  create function bench_syllable(n int) returns text language sql immutable
    return substr('babebibobudadedidodufafefifofugagegigogukakekikokulalelilolumamemimomunanenino', 1 + 2 * n, 2);
  create function bench_word(n int) returns text language sql immutable
    return bench_syllable(n % 39)
      || case when n >= 39 then bench_syllable(n / 39 % 39) else '' end
      || case when n >= 1521 then bench_syllable(n / 1521) else '' end;
`

const toRows = (events: number) => `
  insert into events (
    project_id, id, channel_id, seq, occurred_at, created_at, title, description, icon, tags, metadata, user_ref,
    source, notify
  )
  select
    bench_uuid('00', p), gen_random_uuid(),
    bench_uuid('cc', 1000 * p + (case when p = 1 then 20 else 10 end * power(random(), 3))::int),
    case when p = 1 then n / 2 + 1 else n / 2 / 99 + 1 end,
    at - case when random() < 0.02 then random() * interval '1 hour' else interval '0' end, at,
    bench_word(a) || ' ' || bench_word(b) || ' ' || (n % 997),
    bench_word(c) || ' ' || bench_word(d) || ' ' || bench_word(e) || ' ' || bench_word(f) || ' ' || bench_word(g)
      || case when n / 2 % 2 = 0 then ' alpha' else ' omega' end
      || case when n % 50000 < 2 then ' quicksilver' else '' end,
    case when random() < 0.5 then '💰' end,
    array_remove(array[
      case when random() < 0.5 then 'common' end,
      case when random() < 0.01 then 'medium' end,
      case when random() < 0.0001 then 'rare' end,
      case when n < ${events} / 10 and random() < 0.001 then 'old' end
    ], null),
    '{"amount":42,"plan":"pro","currency":"EUR"}',
    case
      when random() < 0.2 then null
      when random() < 0.5 then 'user_' || u
      else 'u' || u || '@example.com'
    end,
    case when s < 0.7 then 'api' when s < 0.9 then 'web' when s < 0.999 then 'stripe' else 'cron' end, true
  from (
    select
      n, case when n % 2 = 0 then 1 else 2 + n / 2 % 99 end as p,
      to_timestamp(${END_MS / 1000}) - (${events} - n) * interval '3.15 seconds' as at,
      (20000 * power(random(), 4))::int as a, (20000 * power(random(), 4))::int as b,
      (20000 * power(random(), 4))::int as c, (20000 * power(random(), 4))::int as d,
      (20000 * power(random(), 4))::int as e, (20000 * power(random(), 4))::int as f,
      (20000 * power(random(), 4))::int as g,
      1 + (${USERS - 1} * power(random(), 2))::int as u, random() as s
    from generate_series($1::bigint, $2::bigint) as g (n)
    offset 0
  ) rows
`

const REST = `
  insert into event_logs select project_id, max(seq) from events group by 1;
  insert into event_counts (project_id, hour, channel_id, n)
    select project_id, hour_of(occurred_at), channel_id, count(*) from events group by 1, 2, 3;
  insert into event_segments (project_id, segment, first_at, last_at)
    select project_id, seq >> 12, min(hour_of(occurred_at)), max(hour_of(occurred_at)) + interval '1 hour'
    from events group by 1, 2;
`

const TENANTS = `
  insert into organizations (id, name) values (bench_uuid('aa', 1), 'Bench');
  insert into projects (id, organization_id, name)
    select bench_uuid('00', p), bench_uuid('aa', 1), 'Bench ' || p from generate_series(1, 100) p;
  insert into channels (project_id, id, public_id, slug, name, created_at)
    select bench_uuid('00', p), bench_uuid('cc', 1000 * p + c), 'chn_' || p || '_' || c, 'channel-' || c, 'Channel ' || c,
      now()
    from generate_series(1, 100) p, generate_series(0, 20) c;
  insert into identities (project_id, user_id, id, public_id, properties, created_at, updated_at)
    select bench_uuid('00', p), 'user_' || u, gen_random_uuid(), 'idn_' || u, '{}', now(), now()
    from generate_series(1, 100) p, generate_series(1, case when p = 1 then ${USERS} else 1000 end) u;
  insert into unindexed_users (project_id, id, changed_at) select project_id, id, updated_at from identities;
  insert into aliases (project_id, alias, user_id, created_at)
    select project_id, 'u' || substr(user_id, 6) || '@example.com', user_id, now() from identities;
`

/** Returns a database with events of a hundred projects, half of them in the biggest one. */
export async function makeBenchDatabase(): Promise<string> {
  const url = await cloneDatabase()
  const sql = connect(url, {
    name: 'bench',
    max: 1,
    settings: { statement_timeout: 0, maintenance_work_mem: '1GB', work_mem: '256MB', jit: 'off' },
  })
  const startedAt = performance.now()
  const say = (what: string) =>
    console.log(`  ${((performance.now() - startedAt) / 1000).toFixed(0)} s  ${what}`)
  await sql.unsafe(FUNCTIONS)
  await sql.unsafe(TENANTS)
  for (let first = 0; first < EVENTS; first += STEP) {
    await sql.unsafe(toRows(EVENTS), [first, Math.min(EVENTS, first + STEP) - 1])
    if (first % 1_000_000 === 0) say(`${first} events`)
  }
  await sql.unsafe(REST)
  const projects = await sql<{ id: string }[]>`select id from projects`
  for (const { id } of projects) await indexAll(sql, id)
  say('search index')
  await sql.unsafe('vacuum analyze')
  say(`${EVENTS} events, with indexes`)
  await sql.end()
  return url
}

/** Indexes a project's log for search, as its indexer would have. */
async function indexAll(sql: Sql, projectId: string): Promise<void> {
  for (let left = Infinity; left >= MIN_EVENTS;) {
    const result = await indexNextEvents(sql, projectId)
    left = result ? Number(result.lastSeq - result.indexedSeq) : 0
  }
}
