import type { DatabaseAddress } from '../base/database-url.ts'

/** Settings of Postgres, with values as `pg_settings` has them. */
export type SessionSettings = Record<string, string | number>

/**
 * Settings that change what a statement reads, writes or returns. A role or a database can have
 * other values of all of them.
 */
const MEANING = {
  client_encoding: 'UTF8',
  // Dates are sent as text. JavaScript cannot parse offsets with seconds, as used before 1900.
  TimeZone: 'UTC',
  DateStyle: 'ISO, MDY',
  IntervalStyle: 'postgres',
  extra_float_digits: 1,
  bytea_output: 'hex',
  xmloption: 'content',
  // `'\d'` in a function is two characters, and `NULL` in the text of an array is no value.
  standard_conforming_strings: 'on',
  backslash_quote: 'safe_encoding',
  array_nulls: 'on',
  transform_null_equals: 'off',
  // The migrator compares definitions as Postgres prints them.
  quote_all_identifiers: 'off',
  // A limit of the results of a search.
  gin_fuzzy_search_limit: 0,
  row_security: 'on',
  default_table_access_method: 'heap',
  default_transaction_isolation: 'read committed',
  default_transaction_deferrable: 'off',
  // A setting of an extension: Postgres shows it only where a function was called.
  'plpgsql.extra_errors': 'none',
} as const

/** Settings that end statements and sessions, or let a commit be lost. */
const LIMITS = {
  statement_timeout: 5_000,
  lock_timeout: 2_000,
  idle_in_transaction_session_timeout: 10_000,
  idle_session_timeout: 0,
  exit_on_error: 'off',
  // A 201 response and append_batch rely on it.
  synchronous_commit: 'on',
  // For small statements, starting parallel workers or the JIT costs more than it saves.
  max_parallel_workers_per_gather: 0,
  jit: 'off',
} as const

/** The default of Postgres. A URL can name other schemas. */
const SEARCH_PATH = '"$user", public'

/** Settings of each session. The server checks at its start that Postgres has them. */
export function toSession({ commit, searchPath }: DatabaseAddress): SessionSettings {
  return {
    ...LIMITS,
    ...MEANING,
    search_path: searchPath ?? SEARCH_PATH,
    ...(commit !== null && { synchronous_commit: commit }),
  }
}

// A client that loses power or network sends no FIN. Between a statement and its commit no
// time-out above applies. Without keepalives it would hold its locks for hours.
const KEEPALIVES = {
  tcp_keepalives_idle: 10,
  tcp_keepalives_interval: 5,
  tcp_keepalives_count: 3,
  tcp_user_timeout: 25_000,
} as const

/**
 * The Postgres settings of the pools that deliver. Their tables are often empty when a plan is
 * made, and large when it runs. So every statement is planned anew, and no plan reads a whole
 * table. The statements of each delivery are functions that pin one plan.
 */
export const WORKER_SETTINGS = {
  plan_cache_mode: 'force_custom_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  jit: 'off',
}

/** Returns the options of postgres.js that open sessions with these settings. */
export function toDriverOptions(
  address: DatabaseAddress,
  name: string,
  settings: SessionSettings = {},
): object {
  const { hosts, path, user, password, database, options, isPooled } = address
  const [{ host, port } = { host: 'localhost', port: 5432 }] = hosts
  const session = { ...toSession(address), ...KEEPALIVES, ...settings }
  // postgres.js would send the CR that shells keep of a file from Windows.
  const secret = password || process.env['PGPASSWORD']?.replace(/\r?\n?$/, '')
  return {
    // Lists, because postgres.js would split an IPv6 address at its colons.
    ...{ host: [host], port: [port] },
    ...(path !== undefined && { path }),
    ...(user !== undefined && { user }),
    ...(secret !== undefined && { password: secret }),
    ...(database !== undefined && { database }),
    // `openSocket` encrypts.
    ssl: false,
    fetch_types: false,
    onnotice: () => {},
    ...(isPooled && { prelude: toPrelude(session), prepare: false }),
    // As text, because postgres.js drops falsy values, and a 0 removes a limit of the database.
    connection: {
      application_name: `tidings ${name}`,
      ...(options !== undefined && { options }),
      ...(!isPooled && mapToText(session)),
    },
  }
}

/**
 * Returns a statement that applies settings to one transaction. A pooler in transaction mode passes
 * on no settings of a session. postgres.js sends this with each statement, without a round trip.
 */
function toPrelude(settings: SessionSettings): string {
  const calls = Object.entries(mapToText(settings))
    // The pooler is their TCP client, and the transaction has already begun.
    .filter(([name]) => !/^(tcp|default_transaction)_/.test(name))
    .map(([name, value]) => `set_config('${name}', '${value.replaceAll("'", "''")}', true)`)
  return `select ${calls.join(', ')}`
}

function mapToText(settings: SessionSettings): Record<string, string> {
  return Object.fromEntries(
    Object.entries(settings).map(([setting, value]) => [setting, String(value)]),
  )
}
