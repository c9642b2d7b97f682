import { logger } from '../log.ts'
import {
  COPY_SETTINGS,
  copyIn,
  copyOut,
  quoteIdentifier,
  toBlocks,
  toCopyTarget,
} from '../db/copy.ts'
import { listMigrations, migrate } from '../db/migrate.ts'
import { connect, type Queryable, type Tx } from '../db/sql.ts'

const log = logger('db')

interface Table {
  name: string
  /** All columns but the generated ones. */
  columns: string[]
}

const LOADING = {
  ...COPY_SETTINGS,
  lock_timeout: 0,
  // Triggers and foreign keys did their work when the rows were made.
  session_replication_role: 'replica',
  maintenance_work_mem: '128MB',
}

/**
 * Copies a snapshot of the database at `from`, with its schema, rows and sequences, into the empty one at `to`. Returns
 * the number of rows. `onRows` receives the progress. Throws with a sentence for people when a row is missing, or when
 * the schema is newer than this program.
 */
export async function copyDatabase(
  from: string,
  to: string,
  onRows: (done: number, all: number) => void,
): Promise<number> {
  const source = connect(from, { name: 'carry', max: 1, settings: COPY_SETTINGS })
  const target = connect(to, { name: 'carry', max: 1, settings: LOADING })
  try {
    const applied = (await listMigrations(source)).filter(one => one.isApplied)
    await migrate(to, applied)
    const failed = Promise.withResolvers<never>()
    const rows = await Promise.race([
      source.begin('isolation level repeatable read read only', old =>
        target
          .begin(async fresh => {
            const count = await copyRows(old, fresh, onRows)
            await copySequences(old, fresh)
            return count
          })
          // After an aborted COPY the connection is unusable, even for a rollback.
          .catch((error: unknown) => {
            failed.reject(error)
            throw error
          }),
      ) as Promise<number>,
      failed.promise,
    ])
    await warnOfForeignObjects(source, target)
    await target`analyze`
    // So that the stop is short.
    await target`checkpoint`
    return rows
  } finally {
    await Promise.all([source.end({ timeout: 0 }), target.end({ timeout: 0 })])
  }
}

async function copyRows(
  old: Tx,
  fresh: Tx,
  onRows: (done: number, all: number) => void,
): Promise<number> {
  const tables = await listTables(fresh)
  const counts = new Map<string, number>()
  for (const { name } of tables) counts.set(name, await countRows(old, name))
  const all = [...counts.values()].reduce((sum, count) => sum + count, 0)
  let done = 0
  // Building an index after the rows takes a fraction of the time.
  const indexes = await listIndexes(fresh)
  for (const { name } of indexes) await fresh.unsafe(`drop index ${name}`)
  await fresh.unsafe(`truncate ${tables.map(({ name }) => quoteIdentifier(name)).join(', ')}`)
  for (const { name, columns } of tables) {
    const target = toCopyTarget(name, columns)
    const rows = copyOut(old, `copy ${target} to stdout`)
    const blocks = toBlocks(rows, count => onRows(done + count, all))
    await copyIn(fresh, `copy ${target} from stdin with (freeze)`, blocks)
    const [expected = 0, found] = [counts.get(name), await countRows(fresh, name)]
    if (found !== expected) {
      throw new Error(`of ${expected} rows of ${name} there are ${found} after the way`)
    }
    done += found
  }
  log.info('All {all} rows are carried over; indexes are being made', { all })
  for (const { text } of indexes) await fresh.unsafe(text)
  return all
}

/** Lists the tables of a database in which only migrations made tables. */
async function listTables(sql: Queryable): Promise<Table[]> {
  const rows = await sql<{ name: string; columns: string }[]>`
    select
      c.relname::text as name,
      (
        select json_agg(a.attname order by a.attnum)::text
        from pg_attribute a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
      ) as columns
    from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
    order by c.relname
  `
  return rows.map(({ name, columns }) => ({ name, columns: JSON.parse(columns) as string[] }))
}

/** Indexes that belong to no constraint, and the statement that creates each. */
function listIndexes(sql: Queryable): PromiseLike<{ name: string; text: string }[]> {
  return sql<{ name: string; text: string }[]>`
    select i.indexrelid::regclass::text as name, pg_get_indexdef(i.indexrelid) as text
    from pg_index i
      join pg_class c on c.oid = i.indrelid
    where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
      and not exists (select from pg_constraint r where r.conindid = i.indexrelid)
    order by i.indexrelid
  `
}

async function countRows(sql: Queryable, name: string): Promise<number> {
  const [row] = await sql.unsafe<[{ rows: number }]>(
    `select count(*)::float8 as rows from ${quoteIdentifier(name)}`,
  )
  return row.rows
}

/** Sets the sequences to their values in the old database. */
async function copySequences(old: Tx, fresh: Tx): Promise<void> {
  const sequences = await old<{ name: string; last: string }[]>`
    select sequencename::text as name, last_value::text as last
    from pg_sequences
    where schemaname = 'public' and last_value is not null
  `
  for (const { name, last } of sequences) {
    await fresh`select setval(to_regclass(${quoteIdentifier(name)}), ${last}::bigint) where to_regclass(${quoteIdentifier(name)}) is not null`
  }
}

/** Logs databases, roles and tables that are not of Tidings: they are not copied. */
async function warnOfForeignObjects(source: Queryable, target: Queryable): Promise<void> {
  const list = (sql: Queryable) => sql<{ name: string }[]>`
    select 'the database ' || datname as name from pg_database where not datistemplate
    union all
    select 'the role ' || rolname from pg_roles where rolname !~ '^pg_'
    union all
    select 'the table ' || c.oid::regclass
    from pg_class c
      join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p', 'm', 'v') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
  `
  const ours = new Set((await list(target)).map(({ name }) => name))
  const left = (await list(source)).map(({ name }) => name).filter(name => !ours.has(name))
  if (left.length === 0) return
  log.warning('Not carried over, because it is not of Tidings: {left}', { left: left.join(', ') })
}
