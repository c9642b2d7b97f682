import { afterAll, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { connect, type Sql } from '../../src/db/sql.ts'
import { appendRows, number, type AppendJob } from '../../src/events/append-statement.ts'
import { toNewEvent } from '../../src/events/new-event.ts'
import { findEventJson, listEventsJson, type PageQuery } from '../../src/events/read.ts'
import { indexNextEvents } from '../../src/events/search-index.ts'
import { toListCursor } from '../../src/events/seq-ranges.ts'
import { parseSearch } from '../../src/events/search-query.ts'
import { readSlices } from '../../src/feed/read-events.ts'
import { listUsersJson } from '../../src/identities/users.ts'
import { NIL_UUID, toId } from '../../src/ids.ts'
import { cloneDatabase, closeCluster } from '../support/postgres.ts'

afterAll(closeCluster)

const PROJECT = '00000000-0000-7000-8000-000000000001'
const OTHER = '00000000-0000-7000-8000-000000000002'
const COUNT = 2_000
const LIMIT = 10

/** Fills a project. Ten channels have a tenth of the events each, and each tag half of them. */
const fill = (project: string) => `
  insert into organizations (id, name) values ('${project}', 'o');
  insert into projects (id, organization_id, name) values ('${project}', '${project}', 'p');
  insert into channels (project_id, id, public_id, slug, name, created_at)
    select '${project}', md5('channel' || n)::uuid, 'chn_' || n, 'channel-' || n, 'Channel ' || n, now()
    from generate_series(0, 199) as n;
  insert into identities (project_id, user_id, id, public_id, properties, created_at, updated_at)
    select '${project}', 'user-' || n, md5('user' || n)::uuid, 'idn_' || n, '{}', now(), now()
    from generate_series(1, 500) as n;
  insert into aliases (project_id, alias, user_id, created_at)
    select project_id, '@' || user_id, user_id, now() from identities where project_id = '${project}';
  insert into event_logs (project_id, last_seq) values ('${project}', ${COUNT});
  insert into event_segments (project_id, segment, first_at, last_at)
    values ('${project}', 0, hour_of(now()) - interval '3 hours', hour_of(now()) + interval '1 hour');
  insert into events (
    project_id, id, channel_id, seq, occurred_at, created_at, title, tags, metadata, user_ref, source, notify
  )
  select
    '${project}', ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, md5('channel' || n % 10)::uuid, n,
    now() - interval '2 hours' + n * interval '1 second', now(), 'title ' || n,
    case when n % 2 = 0 then '{even}'::text[] else '{odd}'::text[] end, '{}',
    case when n % 4 < 2 then '@' else '' end || 'user-' || n % 500 + 1, 'api', true
  from generate_series(1, ${COUNT}) as n;
`

/** Makes projects with one event each. */
const FILL_MANY = `
  with made as (
    insert into organizations (id, name) select gen_random_uuid(), 'o' from generate_series(1, 1500) returning id
  ), projects as (
    insert into projects (id, organization_id, name) select id, id, 'p' from made returning id
  ), channels as (
    insert into channels (project_id, id, public_id, slug, name, created_at)
    select id, id, 'chn_' || id, 'c', 'c', now() from projects
  ), logs as (
    insert into event_logs (project_id, last_seq) select id, 1 from projects
  )
  insert into events (
    project_id, id, channel_id, seq, occurred_at, created_at, title, tags, metadata, user_ref, source, notify
  )
  select id, id, id, 1, now(), now(), 'title', '{}', '{}', 'user', 'api', true from projects;
`

const page = (text: string, query: PageQuery = {}) => ({
  name: `a page of "${text}" with ${JSON.stringify(query)}`,
  events: LIMIT,
  read: async (sql: Sql) => {
    const { filters } = parseSearch(text)
    const json = await listEventsJson(sql, PROJECT, filters, { limit: LIMIT, ...query })
    return (JSON.parse(json) as { items: unknown[] }).items.length
  },
})
/** The same, read by the search index. */
const indexed = (text: string, query: PageQuery = {}) => ({
  name: `a page of "${text}" from the index with ${JSON.stringify(query)}`,
  events: LIMIT,
  read: async (sql: Sql) => {
    const limits = { candidatesBeforeIndex: 0 }
    const { filters } = parseSearch(text)
    const json = await listEventsJson(sql, PROJECT, filters, { limit: LIMIT, ...query }, limits)
    return (JSON.parse(json) as { items: unknown[] }).items.length
  },
})
const middle = toListCursor({ direction: 'older', seq: BigInt(COUNT / 2) })

const READS = [
  page(''),
  page('', { cursor: middle }),
  page('', { after: COUNT / 2 }),
  page('channel:channel-3'),
  page('channel:channel-3', { cursor: middle }),
  page('channel:channel-3', { after: COUNT / 2 }),
  page('channel:channel-4 tag:even', { cursor: middle }),
  page('tag:even', { cursor: middle }),
  page('source:api'),
  page('title', { cursor: middle }),
  page('tag:even title', { after: COUNT / 2 }),
  indexed('title 77'),
  indexed('tag:odd title', { after: 0 }),
  indexed('tag:odd title 1', { after: 0 }),
  {
    name: 'the events of a user',
    events: 4,
    read: async (sql: Sql) => {
      const { filters } = parseSearch('user:@user-7')
      const json = await listEventsJson(sql, PROJECT, filters, { limit: LIMIT })
      return (JSON.parse(json) as { items: unknown[] }).items.length
    },
  },
  {
    name: 'an event by its id',
    events: 1,
    read: async (sql: Sql) => {
      const id = toId('evt', `00000000-0000-7000-8000-${'7'.padStart(12, '0')}`)
      return (await findEventJson(sql, PROJECT, id)) === undefined ? 0 : 1
    },
  },
  {
    name: 'new events for the feed',
    events: LIMIT,
    read: async (sql: Sql) => {
      const slice = {
        ...{ projectId: PROJECT, after: COUNT - LIMIT, until: COUNT },
        ...{ userNames: ['@user-1'], wantsText: true },
      }
      const bounds = { each: 200, most: 500, maxBytes: 1024 * 1024 }
      return (await readSlices(sql, [slice], bounds)).events.length
    },
  },
]

/** A search for users, by their index. */
const users = (search: string, count: number) => ({
  name: `the users of "${search}"`,
  events: count,
  read: async (sql: Sql) => {
    const json = await listUsersJson(sql, PROJECT, { search, limit: LIMIT })
    return (JSON.parse(json) as { items: unknown[] }).items.length
  },
})
READS.push(users('user-77', 1), users('@user-123', 1), users('nobody', 0), users('user', LIMIT))

/**
 * Appends an event of each of these users, in a channel of its own and with its own
 * Idempotency-Key.
 */
async function append(sql: Sql, names: readonly string[]): Promise<(number | null)[]> {
  const jobs = names.map((name): AppendJob => {
    const event = toNewEvent({ channelName: `New ${name}`, title: name, userId: `@${name}` })
    const claim = { key: `key-${name}`, fingerprint: Buffer.from('01', 'hex') }
    return { projectId: PROJECT, event, requestId: randomUUID(), claim, admission: undefined }
  })
  const channels = jobs.map(() => undefined)
  const projects = number(jobs.map(({ projectId }) => projectId))
  const batch = { jobs, channels, projects, keys: number([]) }
  return (await appendRows(sql, batch)).seqs
}

test('plans that were made on empty tables read no more rows than they need', async () => {
  const url = await cloneDatabase()
  const early = connect(url, { name: 'test', max: 1 })
  for (const { read } of READS) for (let n = 0; n < 7; n++) expect(await read(early)).toBe(0)
  // Without the project nothing is appended, but every statement is planned.
  expect(await append(early, ['user-1', 'user-2'])).toEqual([null, null])
  await early.unsafe(fill(PROJECT) + fill(OTHER))
  await checkRows(early)
  await early.end()
})

test.each([
  ['full tables', `${fill(PROJECT)} ${fill(OTHER)}`, ''],
  ['tables whose statistics know another project only', fill(OTHER), fill(PROJECT)],
  ['tables whose statistics know many small projects', FILL_MANY, fill(PROJECT)],
])('plans that were made on %s read no more rows than they need', async (_, known, added) => {
  const sql = connect(await cloneDatabase(), { name: 'test', max: 1 })
  await sql`alter table events set (autovacuum_enabled = off)`
  await sql.unsafe(known)
  await sql.unsafe('vacuum analyze')
  await sql.unsafe(added)
  await checkRows(sql)
  await sql.end()
})

async function checkRows(sql: Sql): Promise<void> {
  const repeated = ['user-1', 'user-2', 'user-3']
  expect(await append(sql, repeated)).toEqual([1, 2, 3].map(n => COUNT + n))
  for (const names of [repeated, ['user-4', 'user-5'], ['user-6', 'user-1']]) {
    const before = await countRows(sql)
    await append(sql, names)
    for (const [table, rows] of await countRows(sql)) {
      const counted = rows - (before.get(table) ?? 0)
      expect([names, table, counted, counted <= 30]).toEqual([names, table, counted, true])
    }
  }
  await indexNextEvents(sql, PROJECT, { minEvents: 1 })
  await indexUsers(sql)
  for (const { name, events, read } of READS) {
    const before = await countRows(sql)
    expect([name, await read(sql)]).toEqual([name, events])
    const after = await countRows(sql)
    for (const [table, rows] of after) {
      const counted = rows - (before.get(table) ?? 0)
      // A tag needs twice as many candidates, and each event up to two look-ups for its user. A
      // scan for words begins with 256 candidates. A search for users reads all matches of their
      // index, and 20 of these users.
      const isFrequent = table === 'user_words' && name.includes('"user"')
      const most = isFrequent ? 520 : name.includes('title') ? 320 : 120
      expect([name, table, counted, counted <= most]).toEqual([name, table, counted, true])
    }
  }
}

/** Indexes all users, as servers do. */
async function indexUsers(sql: Sql): Promise<void> {
  for (let after = NIL_UUID, isMore = true; isMore;) {
    const [row] = await sql<[{ last: string | null }]>`
      select index_users(${PROJECT}, ${after}, 1000) as last
    `
    isMore = row.last !== null || after !== NIL_UUID
    after = row.last ?? NIL_UUID
  }
}

/** Returns how many rows of each table have been read, from it or from its indexes. */
async function countRows(sql: Sql): Promise<Map<string, number>> {
  await sql`select pg_stat_force_next_flush()`
  const rows = await sql<{ name: string; n: string }[]>`
    select t.relname as name, t.seq_tup_read + sum(i.idx_tup_read) as n
    from pg_stat_user_tables t
      join pg_stat_user_indexes i using (relid)
    where t.relname in ('events', 'channels', 'aliases', 'identities', 'idempotency_keys', 'user_words')
    group by t.relname, t.seq_tup_read
  `
  return new Map(rows.map(({ name, n }) => [name, Number(n)]))
}
