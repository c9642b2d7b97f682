import postgres from 'postgres'
import { Fault, toReason } from '../errors.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { logger } from '../log.ts'

/** A pool: its statements run each in a transaction of its own. */
export type Sql = postgres.Sql
/** An open transaction. */
export type Tx = postgres.TransactionSql
/** Either: for functions that need not care. */
export type Queryable = postgres.ISql

/** A piece of a statement. Never await one, nor return it from an async function: that would run it. */
export type Fragment = postgres.PendingQuery<postgres.Row[]>

export interface ConnectOptions {
  /** Shown by Postgres as `tidings <name>`. */
  name: string
  max: number
  /** Server settings of each connection, over the defaults below. */
  settings?: Record<string, string | number>
  /** A LISTEN connection, exempt from `max_lifetime`. */
  listener?: {
    onNotify(channel: string, payload: string): void
    /** A connection has ended; the next statement opens another, which listens to nothing. */
    onClose(): void
  }
}

/** Opens a pool lazily: nothing is dialled before the first statement. */
export function connect(url: string, { name, max, settings, listener }: ConnectOptions): Sql {
  const session = {
    application_name: `tidings ${name}`,
    // Dates travel as text, and JavaScript reads no offset with seconds, as zones had before 1900.
    TimeZone: 'UTC',
    statement_timeout: 5_000,
    lock_timeout: 2_000,
    idle_in_transaction_session_timeout: 10_000,
    // Requests are many and small: starting parallel workers or the compiler costs more than the work itself.
    max_parallel_workers_per_gather: 0,
    jit: 'off',
    // A 201 response and append_events rely on these two, whatever the database's defaults are.
    synchronous_commit: 'on',
    default_transaction_isolation: 'read committed',
    // A client that vanishes (power, network) sends no FIN, and between a statement and its commit no time-out above
    // runs: by default it would keep its locks, and so a project's log, for hours.
    tcp_keepalives_idle: 10,
    tcp_keepalives_interval: 5,
    tcp_keepalives_count: 3,
    tcp_user_timeout: 25_000,
    ...settings,
  }
  return postgres(url, {
    max,
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
    // As text, because postgres.js drops what is falsy: a 0 lifts a limit that the database may set.
    connection: Object.fromEntries(
      Object.entries(session).map(([setting, value]) => [setting, String(value)]),
    ),
  })
}

/** The five-character SQLSTATE when Postgres itself refused the statement: then nothing of it was committed. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof postgres.PostgresError ? error.code : undefined
}

// Temporary SQLSTATE classes: connection, resources, locks and time-outs, operator intervention, system errors.
const TEMPORARY_STATES = /^(08|53|55|57|58)/

/** Whether the database could not be reached or could not serve in time: the caller may try again. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof Fault) return error.code === 'unavailable'
  const state = sqlState(error)
  if (state !== undefined) return TEMPORARY_STATES.test(state) || state === '25006'
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return /^(CONNECTION_|CONNECT_TIMEOUT|ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_)/.test(code)
}

export const UNIQUE_VIOLATION = '23505'
export const FOREIGN_KEY_VIOLATION = '23503'
export const DEADLOCK = '40P01'
export const LOCK_TIMEOUT = '55P03'

const log = logger('db')
const WAIT_MS = 5 * 60_000
const PAUSE_MAX_MS = 2_000
/** The time between two log lines about waiting. */
const REMIND_MS = 30_000
/** Reasons why the database refuses the address, by SQLSTATE. */
const CONNECTION_REFUSALS: Record<string, string> = {
  '28P01': 'does not take this user with this password',
  '28000': 'does not let this user in from here',
  '3D000': 'has no database of this name',
}

/**
 * Waits for a database that is not up yet, as after a restart of the whole machine: up to five minutes, or until `signal`.
 * Throws at once what waiting does not change, like a wrong password.
 */
export async function waitUntilReachable(url: string, signal?: AbortSignal): Promise<void> {
  const startedMs = performance.now()
  let pauseMs = 100
  let remindedMs = -Infinity
  const { host } = new URL(url)
  const sql = connect(url, { name: 'start', max: 1 })
  try {
    for (;;) {
      try {
        return void (await sql`select 1`)
      } catch (error) {
        const refusal = CONNECTION_REFUSALS[sqlState(error) ?? '']
        if (refusal !== undefined)
          throw new Error(`Postgres at ${host} ${refusal}: correct DATABASE_URL.`)
        if (!isUnavailable(error) || performance.now() - startedMs > WAIT_MS) throw error
        if (performance.now() - remindedMs > REMIND_MS) {
          remindedMs = performance.now()
          log.warning('Waiting for the database at {host}: {reason}', {
            host,
            reason: toReason(error),
          })
        }
      }
      await sleep(pauseMs, undefined, { signal })
      pauseMs = Math.min(2 * pauseMs, PAUSE_MAX_MS)
    }
  } finally {
    await sql.end({ timeout: 1 })
  }
}
