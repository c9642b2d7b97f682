import { createHash } from 'node:crypto'
import { compareVersions } from '../base/version.ts'
import { adaptFunctions, DISTRIBUTED, isDistributed } from './distribute.ts'
import type { Queryable, Tx } from './sql.ts'
import type { FunctionSet } from './sql-files.ts'
import { keepSearchPath } from './tables.ts'

/** The set of functions that a database has. */
export interface StoredFunctions {
  version: string
  checksum: string
  /** They work on the tables beside them. A schema that was renamed has its former name in them. */
  find_tables: boolean
}

/** Reads which functions the database has. Undefined if none of sql/functions were applied. */
export async function readFunctions(sql: Queryable): Promise<StoredFunctions | undefined> {
  const [found] = await sql<[{ name: string | null }]>`
    select to_regclass('function_sets')::text as name
  `
  if (!found.name) return undefined
  const [stored] = await sql<StoredFunctions[]>`
    select
      version, checksum,
      exists (
        select
        from pg_class c
          join pg_proc p on p.pronamespace = c.relnamespace and p.proname = 'append_batch'
          cross join unnest(p.proconfig) as setting
        where c.oid = 'function_sets'::regclass
          and starts_with(setting || ',', 'search_path=' || c.relnamespace::regnamespace || ',')
      ) as find_tables
    from function_sets
  `
  return stored
}

/** Returns whether the functions lack what this version needs. Those of a newer one have it all. */
export function isOlder(stored: StoredFunctions | undefined, { version }: FunctionSet): boolean {
  return stored === undefined || compareVersions(stored.version, version) < 0
}

/**
 * Returns whether a program replaces the functions by its own. It never puts them back over those
 * of a newer version. Two builds of one version, as in development, replace those of each other.
 */
export function isReplaced(stored: StoredFunctions | undefined, own: FunctionSet): boolean {
  if (stored === undefined || isOlder(stored, own)) return true
  if (stored.version !== own.version) return false
  return !stored.find_tables || stored.checksum !== toChecksum(own)
}

const TRIGGER = /^create or replace trigger (\w+)[^;]* on (\w+)[^;]*;$/gm

/**
 * Replaces all functions, triggers and views in one transaction, and records it. Its search_path
 * begins with the schema of the tables.
 */
export async function replaceFunctions(tx: Tx, functions: FunctionSet): Promise<void> {
  const isSpread = await isDistributed(tx)
  // A function may call one of a later file.
  await tx.unsafe('set local check_function_bodies = off; set local client_min_messages = warning')
  for (const { text } of functions.files) await tx.unsafe(text.replace(TRIGGER, ''))
  await replaceTriggers(tx, functions, isSpread ? DISTRIBUTED : [])
  await tx.unsafe(functions.dropped)
  await (isSpread ? adaptFunctions(tx) : keepSearchPath(tx))
  await tx`
    create table if not exists function_sets (
      singleton boolean primary key default true check (singleton),
      version text not null, checksum text not null
    )
  `
  await tx`
    insert into function_sets (version, checksum)
    values (${functions.version}, ${toChecksum(functions)})
    on conflict (singleton) do update set version = excluded.version, checksum = excluded.checksum
  `
}

/**
 * Creates the triggers that are missing or different. Any other one stays, because its replacement
 * would lock its table, and wait for a vacuum of it.
 */
async function replaceTriggers(
  tx: Tx,
  { files }: FunctionSet,
  tablesWithout: readonly string[],
): Promise<void> {
  const rows = await tx<{ definition: string }[]>`
    select pg_get_triggerdef(t.oid, true) as definition
    from pg_trigger t
      join pg_class c on c.oid = t.tgrelid and c.relnamespace = quote_ident(current_schema())::regnamespace
    where not t.tgisinternal
  `
  const existing = new Set(rows.map(({ definition }) => definition.toLowerCase()))
  const wanted = files.flatMap(({ text }) => [...text.matchAll(TRIGGER)])
  for (const [text, , table = ''] of wanted) {
    const definition = text
      .replace(/^create or replace/, 'create')
      .replace(/\s+/g, ' ')
      .slice(0, -1)
    if (!existing.has(definition) && !tablesWithout.includes(table)) await tx.unsafe(text)
  }
}

/** Returns the SHA-256 of the texts in hex. */
function toChecksum({ files, dropped }: FunctionSet): string {
  const text = [...files.map(one => one.text), dropped].join('')
  return createHash('sha256').update(text).digest('hex')
}
