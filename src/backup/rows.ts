import { toArray } from '../db/arrays.ts'
import { MIGRATIONS } from '../db/migrate.ts'
import type { Queryable } from '../db/sql.ts'
import type { SealedTable } from '../secrets/rotation.ts'
import type { Secrets } from '../secrets/secrets.ts'

export interface Table {
  name: string
  /** All columns but the generated ones. */
  columns: string[]
  /** Whether its rows are part of a backup. */
  isIncluded: boolean
}

/**
 * Tables that a backup leaves out: sign-in links, because a used or withdrawn one would work again; the canary of the
 * installation's own APP_SECRET; and the state of another clock.
 */
const EXCLUDED_TABLES = ['setup_links', 'reset_links', 'invites', 'sealed_canary', 'clock']

const CREATE = /^create (?:unlogged )?table (\w+)/gm

/**
 * Lists the tables of this program's migrations, those that foreign keys refer to first. Other tables in the same schema
 * are ignored.
 */
export async function listTables(sql: Queryable): Promise<Table[]> {
  const names = MIGRATIONS.flatMap(({ text }) => [...text.matchAll(CREATE)].map(([, name]) => name))
  const rows = await sql<{ name: string; columns: string; is_included: boolean }[]>`
    with recursive ours as (
      select c.oid, c.relname::text as name, c.relpersistence = 'p' and c.relname <> all(${toArray(EXCLUDED_TABLES)}::text[]) as is_included
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
      o.name, o.is_included,
      (
        select json_agg(a.attname order by a.attnum)::text
        from pg_attribute a
        where a.attrelid = o.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
      ) as columns
    from ours o
    order by (select max(d.depth) from depths d where d.oid = o.oid), o.name
  `
  return rows.map(({ name, columns, is_included }) => ({
    name,
    columns: JSON.parse(columns) as string[],
    isIncluded: is_included,
  }))
}

/** The keys that open and seal. */
export interface KeyChange {
  from: Secrets
  to: Secrets
}

/**
 * Returns a function that seals the sealed columns of a COPY row anew. Sealed texts and ids have no characters that COPY
 * escapes.
 */
export function createResealer(
  { table, columns: sealed }: SealedTable,
  columns: readonly string[],
  { from, to }: KeyChange,
): (row: string) => string {
  const idAt = columns.indexOf('id')
  const places = sealed.map(column => ({ column, at: columns.indexOf(column) }))
  return row => {
    const fields = row.split('\t')
    for (const { column, at } of places) {
      const text = fields[at]
      if (text === undefined || text === '\\N') continue
      const place = { table, column, rowId: fields[idAt] ?? '' }
      fields[at] = to.seal(from.open(text, place), place)
    }
    return fields.join('\t')
  }
}

/** Applies `reseal` to blocks of whole lines. */
export async function* resealRows(
  blocks: AsyncIterable<Buffer>,
  reseal: (row: string) => string,
): AsyncGenerator<Buffer> {
  for await (const block of blocks) {
    const rows = block.toString('utf8').split('\n').slice(0, -1)
    yield Buffer.from(rows.map(row => `${reseal(row)}\n`).join(''))
  }
}
