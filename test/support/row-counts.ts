import type { Sql } from '../../src/database/sql.ts'

/** The events of a filled project. */
export const COUNT = 2_000

/** Returns statements that fill a project. */
export const fillProject = (project: string) => `
  insert into organizations (id, name) values ('${project}', 'o');
  insert into projects (id, organization_id, name) values ('${project}', '${project}', 'p');
  insert into channels (project_id, id, public_id, slug, name, created_at)
    select '${project}', ('00000000-0000-7000-8001-' || lpad(n::text, 12, '0'))::uuid, 'chn_' || n, 'channel-' || n, 'Channel ' || n, now()
    from generate_series(0, 199) as n;
  insert into identities (project_id, user_id, id, public_id, properties, created_at, updated_at)
    select '${project}', 'user-' || n, md5('user' || n)::uuid, 'idn_' || n, '{}', now(), now()
    from generate_series(1, 500) as n;
  insert into unindexed_users (project_id, id, changed_at)
    select project_id, id, updated_at from identities where project_id = '${project}';
  insert into aliases (project_id, alias, user_id, created_at)
    select project_id, '@' || user_id, user_id, now() from identities where project_id = '${project}';
  insert into event_logs (project_id, last_seq) values ('${project}', ${COUNT});
  insert into event_segments (project_id, segment, first_at, last_at)
    values ('${project}', 0, hour_of(now()) - interval '3 hours', hour_of(now()) + interval '1 hour');
  insert into events (
    project_id, id, channel_id, seq, occurred_at, created_at, title, tags, metadata, user_ref, source, notify
  )
  select
    '${project}', ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, ('00000000-0000-7000-8001-' || lpad((n % 10)::text, 12, '0'))::uuid, n,
    now() - interval '2 hours' + n * interval '1 second', now(), 'title ' || n,
    case when n % 2 = 0 then '{even}'::text[] else '{odd}'::text[] end, '{}',
    case when n % 4 < 2 then '@' else '' end || 'user-' || n % 500 + 1, 'api', true
  from generate_series(1, ${COUNT}) as n;
`

/** A statement that makes projects with one event each. */
export const FILL_MANY = `
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

/** Keeps statistics as they are: a server analyzes tables at any time, and then plans anew. */
export async function stopAutovacuum(sql: Sql): Promise<void> {
  const tables = await sql<{ name: string }[]>`select relname as name from pg_stat_user_tables`
  for (const { name } of tables) await sql`alter table ${sql(name)} set (autovacuum_enabled = off)`
}

/**
 * Returns how many rows of each table have been read, from it or from its indexes. Of `outbox` it
 * counts the present versions, because each delivery leaves former ones. Indexes keep those until
 * every transaction of the cluster that is older has ended.
 */
export async function countRows(sql: Sql): Promise<Map<string, number>> {
  await sql`select pg_stat_force_next_flush()`
  const rows = await sql<{ name: string; n: string }[]>`
    select
      t.relname as name,
      coalesce(t.seq_tup_read, 0) + case when t.relname = 'outbox' then t.idx_tup_fetch else sum(i.idx_tup_read) end as n
    from pg_stat_user_tables t
      join pg_stat_user_indexes i using (relid)
    group by t.relname, t.seq_tup_read, t.idx_tup_fetch
  `
  return new Map(rows.map(({ name, n }) => [name, Number(n)]))
}
