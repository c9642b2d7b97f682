import { createHash } from 'node:crypto'
import type { Fragment, Tx } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import { toNetwork } from '../limits/failed-authentications.ts'

/**
 * Selects the counters that a failed attempt increments. Sessions and known browsers have their own
 * counters, so that guesses from elsewhere do not delay them.
 */
export type ThrottleScope =
  | { kind: 'account'; email: string; address: string }
  | { kind: 'device'; deviceId: string }
  | { kind: 'session'; sessionId: string }

/** Identifies one counter of failed attempts. */
interface Subject {
  kind: ThrottleScope['kind'] | 'network'
  name: string
}

/**
 * Counts an attempt as a failure before the password is checked, so that concurrent attempts cannot
 * bypass the delay. Throws `rate_limited` during a delay. The caller must then roll `tx` back, so
 * that nothing is counted.
 */
export async function countAttempt(tx: Tx, scope: ThrottleScope): Promise<void> {
  for (const subject of toSubjects(scope)) await increment(tx, subject)
}

/** Subtracts an attempt from the counters, because its password was not checked. */
export async function uncountAttempt(tx: Tx, scope: ThrottleScope): Promise<void> {
  for (const subject of toSubjects(scope)) await decrement(tx, subject)
}

/**
 * Resets the counters of a scope and of the account after a successful sign-in. The counter of the
 * network loses only this attempt.
 */
export async function clearAttempts(tx: Tx, scope: ThrottleScope, email: string): Promise<void> {
  await clearAccountFailures(tx, email)
  for (const subject of toSubjects(scope)) {
    if (subject.kind === 'network') await decrement(tx, subject)
    else if (subject.kind !== 'account') await clear(tx, subject)
  }
}

/** Resets the counter of an account. */
export async function clearAccountFailures(tx: Tx, email: string): Promise<void> {
  await clear(tx, { kind: 'account', name: email })
}

/**
 * Lists the counters of a scope. The order is always the same, so that attempts cannot deadlock.
 */
function toSubjects(scope: ThrottleScope): Subject[] {
  if (scope.kind === 'device') return [{ kind: 'device', name: scope.deviceId }]
  if (scope.kind === 'session') return [{ kind: 'session', name: scope.sessionId }]
  return [
    { kind: 'account', name: scope.email },
    { kind: 'network', name: toNetwork(scope.address) },
  ]
}

async function increment(tx: Tx, subject: Subject): Promise<void> {
  const { isExpired, nextAttemptAt } = toRule(tx, subject)
  const counted = await tx`
    insert into sign_in_failures as f (subject, failures, first_at, last_at)
    values (decode(${toHash(subject)}, 'hex'), 1, clock_timestamp(), clock_timestamp())
    on conflict (subject) do update set
      failures = case when ${isExpired} then 1 else least(f.failures + 1, 1000) end,
      first_at = case when ${isExpired} then clock_timestamp() else f.first_at end,
      last_at = clock_timestamp()
    where ${nextAttemptAt} <= clock_timestamp()
  `
  if (counted.count > 0) return
  const [row] = await tx<{ seconds: number }[]>`
    select extract(epoch from ${nextAttemptAt} - clock_timestamp())::float8 as seconds
    from sign_in_failures f
    where f.subject = decode(${toHash(subject)}, 'hex')
  `
  const seconds = Math.max(1, Math.ceil(row?.seconds ?? 1))
  throw new Fault(
    'rate_limited',
    `Too many attempts with a wrong password. Try again in ${seconds} s.`,
    { 'Retry-After': String(seconds) },
  )
}

/**
 * SQL for the row `f`: whether its failures have expired, and the time of the next allowed attempt.
 */
function toRule(tx: Tx, { kind }: Subject): { isExpired: Fragment; nextAttemptAt: Fragment } {
  if (kind === 'network') {
    // Many accounts share a network, so the first 20 failures within 10 minutes cause no delay.
    return {
      isExpired: tx`f.first_at <= clock_timestamp() - interval '10 minutes'`,
      nextAttemptAt: tx`
        case when f.failures < 20 then '-infinity' else f.first_at + interval '10 minutes' end
      `,
    }
  }
  return {
    isExpired: tx`f.last_at < clock_timestamp() - interval '1 day'`,
    nextAttemptAt: tx`f.last_at + sign_in_delay(f.failures)`,
  }
}

async function decrement(tx: Tx, subject: Subject): Promise<void> {
  await tx`
    update sign_in_failures set failures = greatest(failures - 1, 0)
    where subject = decode(${toHash(subject)}, 'hex')
  `
}

async function clear(tx: Tx, subject: Subject): Promise<void> {
  await tx`delete from sign_in_failures where subject = decode(${toHash(subject)}, 'hex')`
}

function toHash({ kind, name }: Subject): string {
  return createHash('sha256').update(`${kind} ${name}`).digest('hex')
}
