import { toArray } from './arrays.ts'
import { MIGRATIONS, type Migration } from './sql-files.ts'
import type { Queryable, Tx } from './sql.ts'

export interface Table {
  name: string
  /** All columns except generated ones. */
  columns: string[]
  /** False for an unlogged table, which a crash empties. */
  isLogged: boolean
}

/**
 * Sets the search_path of the transaction: first the schema of the tables, or the one where the
 * session would create them, then the others that the session finds. New tables join the former
 * ones, and functions with `set search_path from current` find them for every role.
 */
export async function fixSearchPath(tx: Tx): Promise<void> {
  await tx`
    select set_config('search_path', coalesce(string_agg(quote_ident(name), ', ' order by place), ''), true)
    from (
      select name, min(place) as place
      from (
        select n.nspname, 0
        from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.oid = to_regclass('migrations')
        union all
        select * from unnest(current_schemas(false)) with ordinality
      ) found (name, place)
      group by name
    ) s
  `
}

/**
 * Gives the functions in PL/pgSQL that the transaction has made its search_path, so that they find
 * the tables for every role. Immutable ones read no tables, and run for each row. Citus does not
 * know `from current` here.
 */
export async function keepSearchPath(tx: Tx): Promise<void> {
  await tx.unsafe(`
    do $$
    declare
      made record;
    begin
      for made in
        select p.oid::regprocedure as signature
        from pg_proc p
          join pg_language l on l.oid = p.prolang and l.lanname = 'plpgsql'
        where p.xmin = pg_current_xact_id()::xid and p.provolatile <> 'i'
      loop
        execute format('alter function %s set search_path to %s', made.signature, current_setting('search_path'));
      end loop;
    end
    $$
  `)
}

const CREATE_TABLE = /^create (?:unlogged )?table (\w+)/gm

/** Returns the names of the tables that migrations create. */
export function listCreated(migrations: readonly Migration[]): string[] {
  return migrations.flatMap(({ text }) =>
    [...text.matchAll(CREATE_TABLE)].map(([, name = '']) => name),
  )
}

/**
 * Lists the tables of this program's migrations that exist, and the existing ones of `others`.
 * Tables come after those that their foreign keys reference. Any other table in the schema is
 * ignored.
 */
export async function listTables(sql: Queryable, others: readonly string[] = []): Promise<Table[]> {
  const rows = await sql<{ name: string; columns: string; is_logged: boolean }[]>`
    with recursive ours as (
      select c.oid, c.relname::text as name, c.relpersistence = 'p' as is_logged
      from unnest(${toArray([...listCreated(MIGRATIONS), ...others])}::text[]) as n (name)
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
