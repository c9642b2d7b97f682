import { toArray } from '../db/arrays.ts'
import { MIGRATIONS } from '../db/migrations.ts'
import type { Queryable } from '../db/sql.ts'

export interface Table {
  name: string
  /** All but those that the database computes. */
  columns: string[]
  /** Whether its rows are part of a backup. */
  isKept: boolean
}

/**
 * What ends with a restore: links that let somebody in, because one that was used or withdrawn since would work again;
 * the row that holds an installation to its own APP_SECRET; and what another clock said.
 */
const LEFT_OUT = ['setup_links', 'reset_links', 'invites', 'sealed_canary', 'clock']

const CREATE = /^create (?:unlogged )?table (\w+)/gm

/**
 * The tables that this program's migrations have made here, in an order in which rows can be put in: what is pointed at
 * first. Others in the same schema are not ours.
 */
export async function listTables(sql: Queryable): Promise<Table[]> {
  const names = MIGRATIONS.flatMap(({ text }) => [...text.matchAll(CREATE)].map(([, name]) => name))
  const rows = await sql<{ name: string; columns: string; is_kept: boolean }[]>`
    with recursive ours as (
      select c.oid, c.relname::text as name, c.relpersistence = 'p' and c.relname <> all(${toArray(LEFT_OUT)}::text[]) as is_kept
      from unnest(${toArray(names)}::text[]) as n (name)
        join pg_class c on c.oid = to_regclass(n.name)
    ), pointing as (
      select distinct r.conrelid, r.confrelid
      from pg_constraint r
        join ours o on o.oid = r.conrelid
      where r.contype = 'f' and r.conrelid <> r.confrelid
    ), depths as (
      select o.oid, 0 as depth from ours o
      union
      select p.conrelid, d.depth + 1 from depths d join pointing p on p.confrelid = d.oid where d.depth < 50
    )
    select
      o.name, o.is_kept,
      (
        select json_agg(a.attname order by a.attnum)::text
        from pg_attribute a
        where a.attrelid = o.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
      ) as columns
    from ours o
    order by (select max(d.depth) from depths d where d.oid = o.oid), o.name
  `
  return rows.map(({ name, columns, is_kept }) => ({
    name,
    columns: JSON.parse(columns) as string[],
    isKept: is_kept,
  }))
}
