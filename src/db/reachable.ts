import { setTimeout as sleep } from 'node:timers/promises'
import { toReason } from '../errors.ts'
import { logger } from '../log.ts'
import { connect, isUnavailable, sqlState } from './sql.ts'

const log = logger('db')
const WAIT_MS = 5 * 60_000
const PAUSE_MAX_MS = 2_000
/** How often it is said that we still wait. */
const REMIND_MS = 30_000
/** What is wrong with an address, by SQLSTATE. */
const REFUSALS: Record<string, string> = {
  '28P01': 'does not take this user with this password',
  '28000': 'does not let this user in from here',
  '3D000': 'has no database of this name',
}

/**
 * Waits for a database that is not up yet, as after a restart of the whole machine: up to five minutes, or until `signal`.
 * Throws at once what waiting does not change, like a wrong password.
 */
export async function untilReachable(url: string, signal?: AbortSignal): Promise<void> {
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
        const refusal = REFUSALS[sqlState(error) ?? '']
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
