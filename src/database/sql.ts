import type { Socket } from 'node:net'
import postgres from 'postgres'
import { DAMAGED, Fault, isDamage } from '../base/errors.ts'
import { primaryOf } from './primary.ts'
import { parseUrl, type DatabaseAddress } from '../base/database-url.ts'
import { toDriverOptions, type SessionSettings } from './session.ts'
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

/** Transaction resolution unknown, and statement completion unknown. */
const UNKNOWN_OUTCOMES = ['08007', '40003']

/**
 * The SQLSTATE of an error from Postgres, which committed nothing. Undefined for other errors, and
 * where Postgres does not know what was committed, as if the connection had been lost.
 */
export function sqlState(error: unknown): string | undefined {
  const state = error instanceof postgres.PostgresError ? error.code : undefined
  return state === undefined || UNKNOWN_OUTCOMES.includes(state) ? undefined : state
}

// SQLSTATE classes: connections, rollbacks, resources, locks and time-outs, operator intervention,
// system.
const TEMPORARY_STATES = /^(08|40|53|55|57|58)/

/** Returns true when a later try may succeed without a repair. */
export function isTemporary(error: unknown): boolean {
  return isUnavailable(error) && !isDamage(error)
}

/** Returns true when the database was unreachable, too slow or damaged. The work is undone. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof Fault) return error.code === 'unavailable'
  if (isDamage(error)) return true
  if (error instanceof postgres.PostgresError)
    return TEMPORARY_STATES.test(error.code) || error.code === READ_ONLY
  const { code = '', syscall } = error instanceof Error ? (error as NodeJS.ErrnoException) : {}
  // A Unix socket is absent until Postgres has started.
  if (code === 'ENOENT') return syscall === 'connect'
  return /^(CONNECTION_|CONNECT_TIMEOUT|ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_)/.test(code)
}

/**
 * Returns true when the database was not reached, so that the same work may succeed later. A
 * statement or a wait for a lock that was ended has reached it.
 */
export function isUnreachable(error: unknown): boolean {
  const state = sqlState(error)
  return state === undefined ? isUnavailable(error) : /^(08|53300|57P)/.test(state)
}

/**
 * Returns why the database did not do its work, without a full stop. It names no detail of the
 * installation.
 */
export function describeUnavailable(error: unknown): string {
  if (isDamage(error)) return DAMAGED.slice(0, -1)
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

const CONNECT_S = 3
const DISK_FULL = '53100'
const TOO_MANY_CONNECTIONS = '53300'
/** A standby was asked to write, or the database is read-only by its settings. */
export const READ_ONLY = '25006'
export const UNIQUE_VIOLATION = '23505'
export const FOREIGN_KEY_VIOLATION = '23503'
export const SERIALIZATION_FAILURE = '40001'
export const DEADLOCK = '40P01'
export const LOCK_TIMEOUT = '55P03'
/** A statement timeout, or a cancel request. */
export const QUERY_CANCELED = '57014'
