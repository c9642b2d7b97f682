import type { SearchFilters } from '../../src/log/events/search-filters.ts'
import { matches, prepareFilters, toNeeds } from '../../src/log/feed/filter.ts'
import { readSlices } from '../../src/log/feed/read-events.ts'
import type { Sql } from '../../src/database/sql.ts'

/** A token of an event, as `seq token`. */
export interface IndexDifference {
  /** Tokens of indexed events that the search index does not have. */
  missing: string[]
  /** Tokens in the search index that no event has. Deleted events leave some for a while. */
  excess: string[]
  /** Parts that overlap, or that leave a hole before the next part or the cursor. */
  badParts: string[]
}

/** The tokens of the events of the project $1, as `seq` and `token`. */
const TOKENS_OF_EVENTS = `
  select distinct e.seq, t.token
  from events e
    cross join lateral (
      select unnest(tokens_of_words(words_to_find(fold_text(e.title || ' ' || coalesce(e.description, '')))))
      union all
      select '#' || unnest(e.tags)
      union all
      values ('@' || e.source), ('=' || e.channel_id)
      union all
      select '!' || level_name(e.level) where e.level is not null
      union all
      select '!' || state_name(e.state) where e.state is not null
      union all
      select '%' || e.thread where e.thread is not null
    ) t (token)
  where e.project_id = $1
`

/**
 * Stores the tokens of the events of a project, for many comparisons while its events stay as they
 * are. Returns the query that reads them.
 */
export async function storeTokens(sql: Sql, projectId: string): Promise<string> {
  const table = `tokens_${projectId.replaceAll('-', '')}`
  await sql.unsafe(`create table ${table} (seq bigint, token text)`)
  await sql.unsafe(`insert into ${table} ${TOKENS_OF_EVENTS}`, [projectId])
  return `table ${table}`
}

/** Compares the search index of a project with the events up to its cursor. */
export async function compareIndex(
  sql: Sql,
  projectId: string,
  tokens = TOKENS_OF_EVENTS,
): Promise<IndexDifference> {
  // Most projects have too few events for an index.
  const rows = await sql`
    select from search_cursors where project_id = ${projectId}
    union all
    (select from event_tokens where project_id = ${projectId} limit 1)
  `
  if (rows.count === 0) return { missing: [], excess: [], badParts: [] }
  const compare = `
    with indexed as (
      select t.first_seq + o.n as seq, u.token
      from event_tokens t
        cross join lateral (
          select u.token, u.n, sum(u.n) over (order by u.ord) - u.n as before
          from unnest(t.tokens, t.counts) with ordinality as u (token, n, ord)
        ) u
        cross join lateral unnest(t.offsets[u.before + 1:u.before + u.n]) as o (n)
      where t.project_id = $1 and t.bits is null
      union
      select t.first_seq + b.n, t.first_token
      from event_tokens t
        cross join generate_series(0, 4095) as b (n)
      where t.project_id = $1 and get_bit(t.bits, b.n) = 1
    ), expected as (
      select t.seq, t.token
      from (${tokens}) t
        join search_cursors c on c.project_id = $1 and t.seq <= c.seq
    ), parts as (
      select p.first_seq, p.last_seq, lead(p.first_seq, 1, c.seq + 1) over (order by p.first_seq) as next_seq
      from search_parts p
        join search_cursors c on c.project_id = p.project_id
      where p.project_id = $1
    )
    select
      to_json(array(select seq || ' ' || token from (table expected except table indexed) d)) as missing,
      to_json(array(select seq || ' ' || token from (table indexed except table expected) d)) as excess,
      to_json(array(
        select first_seq || ' to ' || last_seq
        from parts
        where last_seq >= next_seq or first_seq >> 12 <> last_seq >> 12 or exists (
          select from events e where e.project_id = $1 and e.seq > last_seq and e.seq < next_seq
        )
      )) as bad_parts
  `
  const [row] = await sql.begin(async tx => {
    await tx`set local statement_timeout = 0`
    return await tx.unsafe<[{ missing: string[]; excess: string[]; bad_parts: string[] }]>(
      compare,
      [projectId],
    )
  })
  return { missing: row.missing, excess: row.excess, badParts: row.bad_parts }
}

/** Appends events to a project, without a server. `title` is an SQL expression of the seq `n`. */
export async function appendTitles(
  sql: Sql,
  projectId: string,
  { first, last, title }: { first: number; last: number; title: string },
): Promise<void> {
  await sql`
    insert into channels (project_id, id, public_id, slug, name, created_at)
    values (${projectId}, ${projectId}, ${`chn_${projectId}`}, 'test', 'Test', now())
    on conflict do nothing
  `
  await sql.unsafe(
    `
      with added as (
        insert into events (
          project_id, id, channel_id, seq, occurred_at, created_at, title, tags, metadata, source, notify
        )
        select $1, gen_random_uuid(), $1, n, now(), now(), ${title}, array['tag ' || n % 10], '{}', 'test', true
        from generate_series($2::int, $3::int) as n
      ), covered as (
        insert into event_segments (project_id, segment, first_at, last_at)
        select $1, s, hour_of(now()), hour_of(now()) + interval '1 hour'
        from generate_series($2::int >> 12, $3::int >> 12) as s
        on conflict do nothing
      )
      update event_logs set last_seq = $3 where project_id = $1
    `,
    [projectId, first, last],
  )
}

/** Returns the seqs of the events of a project that a subscription with a search gets. */
export async function listLive(sql: Sql, id: string, search: SearchFilters): Promise<number[]> {
  const filters = await prepareFilters(sql, search)
  const slice = { projectId: id, after: 0, until: 1e6, ...toNeeds([filters]) }
  const { events } = await readSlices(sql, [slice], { each: 1_000, most: 1_000, maxBytes: 1e7 })
  return events.filter(({ fields }) => matches(filters, fields)).map(({ seq }) => seq)
}
