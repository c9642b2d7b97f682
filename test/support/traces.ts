import type { Sql } from '../../src/db/sql.ts'

/** Returns the tables of the database in which `text` occurs. */
export async function listTraces(sql: Sql, text: string): Promise<string[]> {
  const tables = await sql<{ name: string }[]>`
    select table_name as name
    from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE'
  `
  const found: string[] = []
  for (const { name } of tables) {
    const rows = await sql`
      select from ${sql(name)} as t where strpos(t::text, ${text}) > 0 limit 1
    `
    if (rows.length > 0) found.push(name)
  }
  return found
}
