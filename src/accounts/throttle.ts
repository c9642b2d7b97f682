import { createHash } from 'node:crypto'
import type { Fragment, Tx } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import { toNetwork } from '../limits/failed-authentications.ts'

/**
 * The counter of failed passwords. A session has a lane of its own, and so has a browser that is known for the
 * account: guesses from elsewhere do not delay them.
 */
export type ThrottleScope =
  | { kind: 'account'; email: string; address: string }
  | { kind: 'device'; deviceId: string }
  | { kind: 'session'; sessionId: string }

interface Subject {
  kind: ThrottleScope['kind'] | 'network'
  name: string
}

/**
 * Counts an attempt as a failure before the password is checked, so that concurrent attempts cannot outrun the delay.
 * Throws `rate_limited` while the lane is delayed. The caller then rolls `tx` back, and nothing is counted.
 */
export async function countAttempt(tx: Tx, lane: ThrottleScope): Promise<void> {
  for (const subject of toSubjects(lane)) await take(tx, subject)
}

/** Uncounts an attempt that was no failure, or was never checked. */
export async function uncountAttempt(tx: Tx, lane: ThrottleScope): Promise<void> {
  for (const subject of toSubjects(lane)) await giveBack(tx, subject)
}

/** Forgets the failures of `lane` and of the account, after a successful sign-in. Failures of the network stay. */
export async function clearAttempts(tx: Tx, lane: ThrottleScope, email: string): Promise<void> {
  await clearAccountFailures(tx, email)
  for (const subject of toSubjects(lane)) {
    if (subject.kind === 'network') await giveBack(tx, subject)
    else if (subject.kind !== 'account') await forget(tx, subject)
  }
}

/** Forgets the failures of an account. */
export async function clearAccountFailures(tx: Tx, email: string): Promise<void> {
  await forget(tx, { kind: 'account', name: email })
}

/** The account before the network: in any other order, two attempts could deadlock. */
function toSubjects(lane: ThrottleScope): Subject[] {
  if (lane.kind === 'device') return [{ kind: 'device', name: lane.deviceId }]
  if (lane.kind === 'session') return [{ kind: 'session', name: lane.sessionId }]
  return [
    { kind: 'account', name: lane.email },
    { kind: 'network', name: toNetwork(lane.address) },
  ]
}

async function take(tx: Tx, subject: Subject): Promise<void> {
  const { isForgotten, freeAt } = toRule(tx, subject)
  const taken = await tx`
    insert into sign_in_failures as f (subject, failures, first_at, last_at)
    values (decode(${toHash(subject)}, 'hex'), 1, clock_timestamp(), clock_timestamp())
    on conflict (subject) do update set
      failures = case when ${isForgotten} then 1 else least(f.failures + 1, 1000) end,
      first_at = case when ${isForgotten} then clock_timestamp() else f.first_at end,
      last_at = clock_timestamp()
    where ${freeAt} <= clock_timestamp()
  `
  if (taken.count > 0) return
  const [row] = await tx<{ seconds: number }[]>`
    select extract(epoch from ${freeAt} - clock_timestamp())::float8 as seconds
    from sign_in_failures f
    where f.subject = decode(${toHash(subject)}, 'hex')
  `
  const seconds = Math.max(1, Math.ceil(row?.seconds ?? 1))
  throw new Fault(
    'rate_limited',
    `Too many tries with a wrong password, try again in ${seconds} s`,
    { 'Retry-After': String(seconds) },
  )
}

/** When the failures `f` of a subject are forgotten, and when its next attempt is allowed. */
function toRule(tx: Tx, { kind }: Subject): { isForgotten: Fragment; freeAt: Fragment } {
  if (kind === 'network') {
    // Many accounts share a network: it has 20 failures within 10 minutes.
    return {
      isForgotten: tx`f.first_at <= clock_timestamp() - interval '10 minutes'`,
      freeAt: tx`
        case when f.failures < 20 then '-infinity' else f.first_at + interval '10 minutes' end
      `,
    }
  }
  return {
    isForgotten: tx`f.last_at < clock_timestamp() - interval '1 day'`,
    freeAt: tx`f.last_at + sign_in_delay(f.failures)`,
  }
}

async function giveBack(tx: Tx, subject: Subject): Promise<void> {
  await tx`
    update sign_in_failures set failures = greatest(failures - 1, 0)
    where subject = decode(${toHash(subject)}, 'hex')
  `
}

async function forget(tx: Tx, subject: Subject): Promise<void> {
  await tx`delete from sign_in_failures where subject = decode(${toHash(subject)}, 'hex')`
}

function toHash({ kind, name }: Subject): string {
  return createHash('sha256').update(`${kind} ${name}`).digest('hex')
}
