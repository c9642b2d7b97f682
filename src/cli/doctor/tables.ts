import { explainDatabaseError } from '../../database/explanation.ts'
import { toReason } from '../../base/errors.ts'
import { toArray } from '../../database/arrays.ts'
import { COPY_SETTINGS, quoteIdentifier } from '../../database/copy.ts'
import {
  checkRows,
  describeWrongCounts,
  findWrongCounts,
  REMEDY_OF_COUNTS,
} from '../../database/damage.ts'
import type { Database } from '../../database/embedded/database.ts'
import { connect, type Sql, type Tx } from '../../database/sql.ts'
import { listTables, type Table } from '../../database/tables.ts'
import { failed, ok, type Finding } from './finding.ts'

/**
 * Reads all tables, and compares them with their indexes and counts. Checks the structure of the
 * indexes where the extension amcheck can be used. It is not left in the database.
 */
export async function checkTables({ sessionUrl, superuserUrl }: Database): Promise<Finding[]> {
  const sql = connect(superuserUrl ?? sessionUrl, {
    name: 'doctor',
    max: 1,
    settings: COPY_SETTINGS,
  })
  try {
    const tables = await listTables(sql, ['migrations'])
    const damaged: Finding[] = []
    const onProblem = (name: string, error: unknown) => {
      damaged.push(failed('tables', `${name}: ${explainDatabaseError(error) ?? toReason(error)}`))
    }
    const check = (name: string, work: (tx: Tx) => Promise<void>) =>
      sql
        .begin('isolation level repeatable read', work)
        .catch((error: unknown) => onProblem(name, error))
    for (const { name } of tables) await check(name, tx => checkTable(tx, name))
    await check('events', async tx => {
      const wrong = describeWrongCounts(await findWrongCounts(tx))
      if (wrong.length > 0) throw new Error(`${wrong.join(' ')} ${REMEDY_OF_COUNTS}`)
    })
    const unchecked = await checkIndexes(sql, { tables, onProblem })
    if (damaged.length > 0) return damaged
    return [
      ok(
        'tables',
        `${tables.length} tables have all rows. ${unchecked ?? 'Their indexes are sound.'}`,
      ),
    ]
  } finally {
    await sql.end({ timeout: 1 })
  }
}

/** Reads all rows with their long values from the file. Then counts them by an index. */
async function checkTable(tx: Tx, name: string): Promise<void> {
  await tx`set local enable_indexonlyscan = off`
  const [row] = await tx.unsafe<[{ n: string }]>(
    `select count(*) as n, sum(octet_length(t::text)) from ${quoteIdentifier(name)} t`,
  )
  await tx`set local enable_indexonlyscan = on`
  await checkRows(tx, { [name]: Number(row.n) })
}

class Undo extends Error {}

/** Checks each B-tree index with amcheck. Returns why it could not. */
async function checkIndexes(
  sql: Sql,
  {
    tables,
    onProblem,
  }: { tables: readonly Table[]; onProblem(name: string, error: unknown): void },
): Promise<string | undefined> {
  const names = toArray(tables.map(({ name }) => name))
  try {
    await sql.begin(async tx => {
      await tx`create extension if not exists amcheck`
      const indexes = await tx<{ name: string; call: string }[]>`
        select
          c.oid::regclass::text as name,
          format('select %I.bt_index_check(%s::oid::regclass, true)', n.nspname, c.oid) as call
        from pg_index i
          join pg_class c on c.oid = i.indexrelid
          join pg_am a on a.oid = c.relam and a.amname = 'btree'
          join pg_class t on t.oid = i.indrelid
          join pg_extension e on e.extname = 'amcheck'
          join pg_namespace n on n.oid = e.extnamespace
        where i.indisvalid and c.relpersistence = 'p' and (
          t.relnamespace = 'pg_catalog'::regnamespace or exists (
            select from unnest(${names}::text[]) as o (name)
              join pg_class u on u.oid = to_regclass(o.name)
            where t.oid in (u.oid, u.reltoastrelid)
          )
        )
      `
      for (const { name, call } of indexes)
        await tx.savepoint(part => part.unsafe(call)).catch(error => onProblem(name, error))
      throw new Undo()
    })
  } catch (error) {
    if (error instanceof Undo) return undefined
    return `Their indexes were not checked, because amcheck cannot be used (${toReason(error)}).`
  }
  return undefined
}
