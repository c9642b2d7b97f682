import type { Socket } from 'node:net'
import postgres from 'postgres'
import { Fault, toReason } from '../base/errors.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { logger } from '../base/log.ts'
import { CONNECTION_REFUSALS, explainRefusal } from './explanation.ts'
import { primaryOf } from './primary.ts'
import { describeHosts, parseUrl, type DatabaseAddress } from '../base/database-url.ts'
import { toDriverOptions, toSession, type SessionSettings } from './session.ts'
import { openOrFail, openSocket } from './socket.ts'

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
  /** Postgres settings of each connection. They override those of `toSession`. */
  settings?: SessionSettings
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

/**
 * Creates a pool. It connects at the first statement. With several hosts in the URL, it connects to
 * the primary.
 */
export function connect(
  url: string,
  { name, max, settings, listener, openSocket }: ConnectOptions,
): Sql {
  const address = parseUrl(url)
  const socket = openSocket ?? primaryOf(url)?.open ?? toOpener(address)
  // The types of postgres.js lack some of these options.
  return postgres({
    ...toDriverOptions(address, name, settings),
    max,
    ...(socket && { socket }),
    connect_timeout: address.connectS ?? CONNECT_S,
    backoff: (attempt: number) => Math.min(0.05 * 2 ** attempt, 1),
    ...(listener && {
      idle_timeout: 0,
      max_lifetime: null,
      onnotify: listener.onNotify,
      onclose: listener.onClose,
    }),
  })
}

/** Returns what opens an encrypted connection. Undefined where postgres.js opens a plain one. */
function toOpener({ hosts: [host], path, tls, connectS }: DatabaseAddress) {
  if (path !== undefined || !host || tls.mode === 'disable') return undefined
  return () => openOrFail(() => openSocket(host, tls, (connectS ?? CONNECT_S) * 1_000))
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
const CONNECT_S = 3
const COMMIT = 'synchronous_commit'
/** The second one is stronger, and DATABASE_URL may ask for it. */
const COMMITS = ['on', 'remote_apply']
const WAIT_MS = 5 * 60_000
const MAX_PAUSE_MS = 2_000
/** Longer than opening a connection takes. */
const RESPONSE_MS = 10_000
/** The interval of log lines while waiting. */
const REMIND_MS = 30_000
const POOLER_REMEDY =
  'A connection pooler probably stands before Postgres. Use the URL of Postgres itself (Neon: without -pooler, Supabase: port 5432). Or append pgbouncer=true to the parameters of DATABASE_URL, and set DATABASE_DIRECT_URL to Postgres itself.'
/** Throws unless the session has the settings that durability and the values of rows rest on. */
async function checkSession(sql: Sql, url: string): Promise<void> {
  const address = parseUrl(url)
  const expected = toSession(address)
  const [row] = await sql<[{ settings: Record<string, string> }]>`
    select json_object_agg(name, setting) as settings
    from pg_settings
    where name in ${sql(Object.keys(expected))}
  `
  for (const [name, value] of Object.entries(expected)) {
    const setting = row.settings[name]
    // Postgres does not list the setting of an extension before its first use.
    if (setting === undefined) continue
    const isStrong = name !== COMMIT || COMMITS.includes(setting)
    if (setting === String(value) && isStrong) continue
    const right = isStrong ? value : COMMITS[0]
    // A pooler that is known passes on all settings, except for those of transactions.
    const remedy = address.isPooled ? `Reset ${name} for the role and the database.` : POOLER_REMEDY
    throw new Error(
      `Sessions of the database have ${name} = ${setting} and not ${right}. ${isStrong ? remedy : ''}`.trim(),
    )
  }
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
      return await Promise.race([checkSession(sql, url), failLate(signal)])
    } catch (error) {
      if (signal?.aborted) throw error
      const refusal = CONNECTION_REFUSALS[sqlState(error) ?? '']
      if (refusal !== undefined) {
        const remedy = explainRefusal(error) ?? 'Correct DATABASE_URL.'
        throw new Error(`Postgres at ${host} ${refusal}. ${remedy}`)
      }
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
