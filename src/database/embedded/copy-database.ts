import { logger } from '../../base/log.ts'
import {
  COPY_SETTINGS,
  copyIn,
  copyOut,
  quoteIdentifier,
  readSnapshot,
  toBlocks,
  toCopyTarget,
} from '../copy.ts'
import { listMigrations, migrate, MIGRATIONS_TABLE, refuseNewerSchema } from '../migrate.ts'
import { connect, type Queryable, type Tx } from '../sql.ts'
import { listTables } from '../tables.ts'

const log = logger('db')

const LOAD_SETTINGS = {
  ...COPY_SETTINGS,
  lock_timeout: 0,
  // The rows already satisfy the foreign keys and contain the results of the triggers.
  session_replication_role: 'replica',
  maintenance_work_mem: '128MB',
}

/**
 * Copies a snapshot of the database at `from` into the empty one at `to`: schema, rows and
 * sequences. Returns the number of rows. Calls `onRows` with the number of copied rows and of all
 * rows. Throws when a row is missing, or when the schema is newer than this program.
 */
export async function copyDatabase(
  from: string,
  to: string,
  onRows: (done: number, all: number) => void,
): Promise<number> {
  const source = connect(from, { name: 'upgrade', max: 1, settings: COPY_SETTINGS })
  const target = connect(to, { name: 'upgrade', max: 1, settings: LOAD_SETTINGS })
  try {
    await refuseNewerSchema(source)
    const applied = (await listMigrations(source)).filter(one => one.isApplied)
    await migrate(to, applied)
    const rows = await readSnapshot(source, old =>
      target.begin(async fresh => {
        const count = await copyRows(old, fresh, onRows)
        await copySequences(old, fresh)
        return count
      }),
    )
    await warnOfForeignObjects(source, target)
    await target`analyze`
    // A checkpoint now makes the later shutdown of the cluster faster.
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
  const tables = await listTables(fresh, [MIGRATIONS_TABLE])
  const counts = new Map<string, number>()
  for (const { name } of tables) counts.set(name, await countRows(old, name))
  const all = [...counts.values()].reduce((sum, count) => sum + count, 0)
  let done = 0
  // Indexes are built after the load, which is much faster than updating them for each row.
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
      throw new Error(`The new database has ${found} of ${expected} rows of ${name}.`)
    }
    done += found
  }
  log.info('Copied all {all} rows. Building the indexes.', { all })
  for (const { text } of indexes) await fresh.unsafe(text)
  return all
}

/** Lists the indexes that belong to no constraint, with the statement that creates each. */
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

/** Logs databases, roles and tables that are not copied because they do not belong to Tidings. */
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
  const foreign = (await list(source)).map(({ name }) => name).filter(name => !ours.has(name))
  if (foreign.length === 0) return
  log.warning('Not copied, because Tidings did not create it: {foreign}', {
    foreign: foreign.join(', '),
  })
}
