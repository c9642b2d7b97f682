import type { Sql } from '../../src/database/sql.ts'

/** Returns the tables in which `text` occurs, also as bytes. Refuses what a random id can have. */
export async function listTraces(sql: Sql, text: string): Promise<string[]> {
  if (!/[^a-z0-9]/i.test(text)) throw new Error(`A random id can contain ${text}.`)
  const tables = await sql<{ name: string }[]>`
    select table_name as name
    from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE'
  `
  // One statement for all tables, because each round trip takes longer than most of the scans.
  const scans = tables.map(
    ({ name }) =>
      `select '${name}' as name where exists (
        select from "${name}" t where strpos(t::text, $1) > 0 or strpos(t::text, $2) > 0
      )`,
  )
  const hex = Buffer.from(text).toString('hex')
  const found = await sql.unsafe<{ name: string }[]>(scans.join(' union all '), [text, hex])
  return found.map(({ name }) => name)
}
