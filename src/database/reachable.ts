import { setTimeout as sleep } from 'node:timers/promises'
import { describeHosts, parseUrl } from '../base/database-url.ts'
import { toReason } from '../base/errors.ts'
import { logger } from '../base/log.ts'
import { CONNECTION_REFUSALS, explainDatabaseError, explainRefusal } from './explanation.ts'
import { toSession } from './session.ts'
import { connect, isTemporary, sqlState, type Sql } from './sql.ts'

const log = logger('db')
/** A pooler rejects a connection with unknown settings with it. */
const PROTOCOL_VIOLATION = '08P01'
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
 * Does `work` anew while the database fails it, for up to five minutes, as after a reboot or on a
 * machine that is busy. Rejects when `signal` aborts, and at once for errors that waiting does not
 * change, such as a wrong password.
 */
export async function retryWhileUnavailable<Result>(
  work: () => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  const startedMs = performance.now()
  let pauseMs = 100
  let remindedMs = -Infinity
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (signal?.aborted || !isTemporary(error) || performance.now() - startedMs > WAIT_MS)
        throw error
      if (performance.now() - remindedMs > REMIND_MS) {
        remindedMs = performance.now()
        const reason = explainDatabaseError(error) ?? toReason(error)
        log.warning('Waiting for the database: {reason}', { reason })
      }
    }
    await sleep(pauseMs, undefined, { signal })
    pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)
  }
}

/** Waits until the database responds. Throws for sessions in which events would not be safe. */
export async function waitUntilReachable(url: string, signal?: AbortSignal): Promise<void> {
  await retryWhileUnavailable(() => tryOnce(url, signal), signal)
}

async function tryOnce(url: string, signal: AbortSignal | undefined): Promise<void> {
  // A database that does not respond never ends the statement, so each try has its connection.
  const sql = connect(url, { name: 'start', max: 1 })
  try {
    await Promise.race([checkSession(sql, url), failLate(signal)])
  } catch (error) {
    const host = describeHosts(url)
    const refusal = CONNECTION_REFUSALS[sqlState(error) ?? '']
    if (refusal !== undefined) {
      const remedy = explainRefusal(error) ?? 'Correct DATABASE_URL.'
      throw new Error(`Postgres at ${host} ${refusal}. ${remedy}`)
    }
    if (sqlState(error) === PROTOCOL_VIOLATION)
      throw new Error(
        `The server at ${host} rejects the settings of a session (${toReason(error)}). ${POOLER_REMEDY}`,
      )
    throw error
  } finally {
    void sql.end({ timeout: 0 }).catch(() => {})
  }
}

/** Rejects when the database has not responded in time, or when the signal aborts. */
async function failLate(signal: AbortSignal | undefined): Promise<never> {
  await sleep(RESPONSE_MS, undefined, { signal, ref: false })
  throw Object.assign(new Error('It does not respond'), { code: 'CONNECT_TIMEOUT' })
}
