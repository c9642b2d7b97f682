import type { Socket } from 'node:net'
import postgres from 'postgres'
import { Fault, toReason } from '../errors.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { logger } from '../log.ts'
import { CONNECTION_REFUSALS } from './explanation.ts'
import { primaryOf } from './primary.ts'
import { describeHosts, parseUrl } from '../database-url.ts'

/** A pool of connections. Each statement runs in its own transaction. */
export type Sql = postgres.Sql
/** An open transaction. */
export type Tx = postgres.TransactionSql
/** A pool or a transaction. */
export type Queryable = postgres.ISql

/** A part of a statement. Awaiting it, or returning it from an async function, would execute it. */
export type Fragment = postgres.PendingQuery<postgres.Row[]>

export interface ConnectOptions {
  /** Becomes the application_name `tidings <name>`. */
  name: string
  max: number
  /** Postgres settings of each connection. They override the defaults below. */
  settings?: Record<string, string | number>
  /** A LISTEN connection, exempt from `max_lifetime`. */
  listener?: {
    onNotify(channel: string, payload: string): void
    /**
     * Called when the connection has ended. The next statement opens one that listens to nothing.
     */
    onClose(): void
  }
  /** Opens the sockets, which the caller may destroy. */
  openSocket?: () => Promise<Socket>
}

/** Settings of each session. The server checks at its start that Postgres has them. */
const SESSION_SETTINGS = {
  // Dates are sent as text. JavaScript cannot parse offsets with seconds, as used before 1900.
  TimeZone: 'UTC',
  statement_timeout: 5_000,
  lock_timeout: 2_000,
  idle_in_transaction_session_timeout: 10_000,
  // For small statements, starting parallel workers or the JIT costs more than it saves.
  max_parallel_workers_per_gather: 0,
  jit: 'off',
  // A 201 response and append_events rely on these two settings.
  synchronous_commit: 'on',
  default_transaction_isolation: 'read committed',
} as const

/**
 * Creates a pool. It connects at the first statement. With several hosts in the URL, it connects to
 * the primary.
 */
export function connect(
  url: string,
  { name, max, settings, listener, openSocket }: ConnectOptions,
): Sql {
  const { address, path, literal, commit, isPooled } = parseUrl(url)
  const socket = openSocket ?? primaryOf(url)?.open
  const session = {
    ...SESSION_SETTINGS,
    ...(commit !== null && { synchronous_commit: commit }),
    // A client that loses power or network sends no FIN. Between a statement and its commit no
    // time-out above applies. Without keepalives it would hold its locks for hours.
    tcp_keepalives_idle: 10,
    tcp_keepalives_interval: 5,
    tcp_keepalives_count: 3,
    tcp_user_timeout: 25_000,
    ...settings,
  }
  // The types of postgres.js lack these options.
  const extras: object = {
    ...(socket && { socket }),
    ...(isPooled && { prelude: toPrelude(session), prepare: false }),
  }
  return postgres(address, {
    max,
    ...(path !== undefined && { path }),
    ...literal,
    ...extras,
    fetch_types: false,
    connect_timeout: 3,
    backoff: attempt => Math.min(0.05 * 2 ** attempt, 1),
    onnotice: () => {},
    ...(listener && {
      idle_timeout: 0,
      max_lifetime: null,
      onnotify: listener.onNotify,
      onclose: listener.onClose,
    }),
    // As text, because postgres.js drops falsy values, and a 0 removes a limit of the database.
    connection: {
      application_name: `tidings ${name}`,
      ...(!isPooled && mapToText(session)),
    },
  })
}

/**
 * Returns a statement that applies settings to one transaction. A pooler in transaction mode passes
 * on no settings of a session. postgres.js sends this with each statement, without a round trip.
 */
function toPrelude(settings: Readonly<Record<string, string | number>>): string {
  const calls = Object.entries(mapToText(settings))
    // The pooler is their TCP client.
    .filter(([name]) => !name.startsWith('tcp_'))
    .map(([name, value]) => `set_config('${name}', '${value.replaceAll("'", "''")}', true)`)
  return `select ${calls.join(', ')}`
}

function mapToText(settings: Readonly<Record<string, string | number>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(settings).map(([setting, value]) => [setting, String(value)]),
  )
}

/** The SQLSTATE of an error from Postgres, which committed nothing. Undefined for other errors. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof postgres.PostgresError ? error.code : undefined
}

// SQLSTATE classes: connections, resources, locks and time-outs, operator intervention, system.
const TEMPORARY_STATES = /^(08|53|55|57|58)/

/** Returns true when the database was unreachable or too slow, so that the caller can retry. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof Fault) return error.code === 'unavailable'
  const state = sqlState(error)
  if (state !== undefined) return TEMPORARY_STATES.test(state) || state === READ_ONLY
  const { code = '', syscall } = error instanceof Error ? (error as NodeJS.ErrnoException) : {}
  // A Unix socket is absent until Postgres has started.
  if (code === 'ENOENT') return syscall === 'connect'
  return /^(CONNECTION_|CONNECT_TIMEOUT|ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_)/.test(code)
}

/** Returns why the database did not do its work. It names no detail of the installation. */
export function describeUnavailable(error: unknown): string {
  switch (sqlState(error)) {
    case DISK_FULL:
      return 'The disk of the database is full'
    case READ_ONLY:
      return 'The database is read-only'
    case TOO_MANY_CONNECTIONS:
      return 'The database has too many connections'
    case QUERY_CANCELED:
    case LOCK_TIMEOUT:
      return 'The database took too long'
    default:
      return 'The database cannot be reached'
  }
}

/** A pooler rejects a connection with unknown settings with it. */
const PROTOCOL_VIOLATION = '08P01'
const DISK_FULL = '53100'
const TOO_MANY_CONNECTIONS = '53300'
/** A standby was asked to write, or the database is read-only by its settings. */
export const READ_ONLY = '25006'
export const UNIQUE_VIOLATION = '23505'
export const FOREIGN_KEY_VIOLATION = '23503'
export const DEADLOCK = '40P01'
export const LOCK_TIMEOUT = '55P03'
/** A statement timeout, or a cancel request. */
export const QUERY_CANCELED = '57014'

const log = logger('db')
const WAIT_MS = 5 * 60_000
const MAX_PAUSE_MS = 2_000
/** Longer than opening a connection takes. */
const RESPONSE_MS = 10_000
/** The interval of log lines while waiting. */
const REMIND_MS = 30_000
const POOLER_REMEDY =
  'A connection pooler probably stands before Postgres. Append pgbouncer=true to the parameters of DATABASE_URL, and set DATABASE_DIRECT_URL to Postgres itself.'
/** Throws unless the session has the settings that durability and time-outs rest on. */
async function checkSession(sql: Sql): Promise<void> {
  const [row] = await sql<[{ settings: Record<string, string> }]>`
    select json_object_agg(name, setting) as settings
    from pg_settings
    where name in ${sql(Object.keys(SESSION_SETTINGS))}
  `
  // This one is stronger, and DATABASE_URL may ask for it.
  const isStronger = row.settings['synchronous_commit'] === 'remote_apply'
  const wrong = Object.entries(SESSION_SETTINGS).find(
    ([name, value]) =>
      row.settings[name] !== String(value) && !(name === 'synchronous_commit' && isStronger),
  )
  if (!wrong) return
  const [name, value] = wrong
  throw new Error(
    `Sessions of the database have ${name} = ${row.settings[name]} and not ${value}. ${POOLER_REMEDY}`,
  )
}

/**
 * Waits up to five minutes for a database that is still starting, as after a reboot. Rejects when
 * `signal` aborts, and at once for errors that waiting does not change, such as a wrong password.
 */
export async function waitUntilReachable(url: string, signal?: AbortSignal): Promise<void> {
  const startedMs = performance.now()
  let pauseMs = 100
  let remindedMs = -Infinity
  const host = describeHosts(url)
  for (;;) {
    // A database that does not respond never ends the statement, so each try has its connection.
    const sql = connect(url, { name: 'start', max: 1 })
    try {
      return await Promise.race([checkSession(sql), failLate(signal)])
    } catch (error) {
      if (signal?.aborted) throw error
      const refusal = CONNECTION_REFUSALS[sqlState(error) ?? '']
      if (refusal !== undefined)
        throw new Error(`Postgres at ${host} ${refusal}. Correct DATABASE_URL.`)
      if (sqlState(error) === PROTOCOL_VIOLATION)
        throw new Error(
          `The server at ${host} rejects the settings of a session (${toReason(error)}). ${POOLER_REMEDY}`,
        )
      if (!isUnavailable(error) || performance.now() - startedMs > WAIT_MS) throw error
      if (performance.now() - remindedMs > REMIND_MS) {
        remindedMs = performance.now()
        log.warning('Waiting for the database at {host}: {reason}', {
          host,
          reason: toReason(error),
        })
      }
    } finally {
      void sql.end({ timeout: 0 }).catch(() => {})
    }
    await sleep(pauseMs, undefined, { signal })
    pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)
  }
}

/** Rejects when the database has not responded in time, or when the signal aborts. */
async function failLate(signal: AbortSignal | undefined): Promise<never> {
  await sleep(RESPONSE_MS, undefined, { signal, ref: false })
  throw Object.assign(new Error('It does not respond'), { code: 'CONNECT_TIMEOUT' })
}
