import { toArray } from './arrays.ts'
import { MIGRATIONS } from './sql-files.ts'
import type { Queryable, Tx } from './sql.ts'

export interface Table {
  name: string
  /** All columns except generated ones. */
  columns: string[]
  /** False for an unlogged table, which a crash empties. */
  isLogged: boolean
}

/**
 * Sets the search_path of the transaction to the schemas that the session finds. A function made
 * with `set search_path from current` keeps them. Otherwise, it would keep `"$user"`, which is
 * another schema for each role.
 */
export async function fixSearchPath(tx: Tx): Promise<void> {
  await tx`
    select set_config('search_path', string_agg(quote_ident(s.name), ', ' order by s.place), true)
    from unnest(current_schemas(false)) with ordinality as s (name, place)
  `
}

const CREATE_TABLE = /^create (?:unlogged )?table (\w+)/gm

/**
 * Lists the tables of this program's migrations that exist, and the existing ones of `others`.
 * Tables come after those that their foreign keys reference. Any other table in the schema is
 * ignored.
 */
export async function listTables(sql: Queryable, others: readonly string[] = []): Promise<Table[]> {
  const created = MIGRATIONS.flatMap(({ text }) =>
    [...text.matchAll(CREATE_TABLE)].map(([, name]) => name),
  )
  const rows = await sql<{ name: string; columns: string; is_logged: boolean }[]>`
    with recursive ours as (
      select c.oid, c.relname::text as name, c.relpersistence = 'p' as is_logged
      from unnest(${toArray([...created, ...others])}::text[]) as n (name)
        join pg_class c on c.oid = to_regclass(n.name)
    ), foreign_keys as (
      select distinct r.conrelid, r.confrelid
      from pg_constraint r
        join ours o on o.oid = r.conrelid
      where r.contype = 'f' and r.conrelid <> r.confrelid
      union
      -- On Citus, tables on other nodes have no foreign keys to these.
      select o.oid, t.oid
      from ours o
        join pg_attribute a on a.attrelid = o.oid and not a.attisdropped
        join (
          values ('account_id', 'accounts'), ('project_id', 'projects'), ('channel_id', 'channels')
        ) as n (col, name) on n.col = a.attname
        join ours t on t.name = n.name
    ), depths as (
      select o.oid, 0 as depth from ours o
      union
      select k.conrelid, d.depth + 1
      from depths d
        join foreign_keys k on k.confrelid = d.oid
      where d.depth < 50
    )
    select
      o.name, o.is_logged,
      (
        select json_agg(a.attname order by a.attnum)::text
        from pg_attribute a
        where a.attrelid = o.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
      ) as columns
    from ours o
    order by (select max(d.depth) from depths d where d.oid = o.oid), o.name
  `
  return rows.map(({ name, columns, is_logged }) => ({
    name,
    columns: JSON.parse(columns) as string[],
    isLogged: is_logged,
  }))
}
