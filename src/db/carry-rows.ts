import { logger } from '../log.ts'
import { COPY_SETTINGS, copyIn, copyOut, quote, toBlocks, toCopyTarget } from './copy.ts'
import { listMigrations, migrate } from './migrate.ts'
import { connect, type Queryable, type Tx } from './sql.ts'

const log = logger('db')

interface Table {
  name: string
  /** All but those that the database computes. */
  columns: string[]
}

const LOADING = {
  ...COPY_SETTINGS,
  lock_timeout: 0,
  // What triggers and foreign keys would do and ask was done and asked when the rows were made.
  session_replication_role: 'replica',
  maintenance_work_mem: '128MB',
}

/**
 * Copies the database at `from` as of one moment, rows and the ids that come next, into the empty one at `to`, with the schema
 * that it has. Returns the number of rows. `onRows` is told how many there are of all. Throws with a sentence for people where
 * not every row has arrived, and where the schema is newer than this program.
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
          // A COPY that is broken off leaves its connection good for nothing, a rollback included.
          .catch((error: unknown) => {
            failed.reject(error)
            throw error
          }),
      ) as Promise<number>,
      failed.promise,
    ])
    await warnOfStrangers(source, target)
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
  // Made whole at the end, an index takes a fraction of the time.
  const indexes = await listIndexes(fresh)
  for (const { name } of indexes) await fresh.unsafe(`drop index ${name}`)
  await fresh.unsafe(`truncate ${tables.map(({ name }) => quote(name)).join(', ')}`)
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

/** The tables of a database that has nothing but what migrations made. */
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

/** Those that no constraint rests upon, and what makes each of them. */
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
    `select count(*)::float8 as rows from ${quote(name)}`,
  )
  return row.rows
}

/** Lets the ids that the database gives go on where they were. */
async function copySequences(old: Tx, fresh: Tx): Promise<void> {
  const sequences = await old<{ name: string; last: string }[]>`
    select sequencename::text as name, last_value::text as last
    from pg_sequences
    where schemaname = 'public' and last_value is not null
  `
  for (const { name, last } of sequences) {
    await fresh`select setval(to_regclass(${quote(name)}), ${last}::bigint) where to_regclass(${quote(name)}) is not null`
  }
}

/** Names what others have put into our Postgres: it stays behind. */
async function warnOfStrangers(source: Queryable, target: Queryable): Promise<void> {
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
