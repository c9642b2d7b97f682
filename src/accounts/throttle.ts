import { createHash } from 'node:crypto'
import type { Tx } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import { toNetwork } from '../limits/strangers.ts'

/**
 * What a try at a password counts under. A browser from which the person has signed in before has a lane of its own, as
 * has a session, so that nobody elsewhere can keep the person out.
 */
export type Lane =
  | { kind: 'account'; email: string; address: string }
  | { kind: 'device'; deviceId: string }
  | { kind: 'session'; sessionId: string }

/**
 * Counts a try as a failure before anybody looks at the password: so tries that come together cannot outrun the delay.
 * Throws `rate_limited` while the lane is delayed, without counting; then `tx` must be rolled back.
 */
export async function takeTry(tx: Tx, lane: Lane): Promise<void> {
  // Always the account before the network: in any order, two tries could deadlock.
  await take(tx, toSubject(lane))
  if (lane.kind === 'account') await takeOfNetwork(tx, toNetworkSubject(lane.address))
}

/** The try was no failure, or nobody could look at it. */
export async function giveTryBack(tx: Tx, lane: Lane): Promise<void> {
  await giveBack(tx, toSubject(lane))
  if (lane.kind === 'account') await giveBack(tx, toNetworkSubject(lane.address))
}

/** Signing in to `email` has succeeded in `lane`: its failures are forgotten, and those of the account. */
export async function forgetTries(tx: Tx, lane: Lane, email: string): Promise<void> {
  await forgetAccount(tx, email)
  if (lane.kind === 'account') await giveBack(tx, toNetworkSubject(lane.address))
  else await forget(tx, toSubject(lane))
}

/** Forgets the failures at an account. */
export async function forgetAccount(tx: Tx, email: string): Promise<void> {
  await forget(tx, toAccountSubject(email))
}

/** One more failure of `subject`, unless it is delayed. A day without a failure forgets those before. */
async function take(tx: Tx, subject: string): Promise<void> {
  const taken = await tx`
    insert into sign_in_failures as f (subject, failures, first_at, last_at)
    values (decode(${subject}, 'hex'), 1, clock_timestamp(), clock_timestamp())
    on conflict (subject) do update set
      failures = case
        when f.last_at < clock_timestamp() - interval '1 day' then 1
        else least(f.failures + 1, 1000)
      end,
      last_at = clock_timestamp()
    where f.last_at + delay_after(f.failures) <= clock_timestamp()
  `
  if (taken.count > 0) return
  const [row] = await tx<{ seconds: number }[]>`
    select extract(epoch from last_at + delay_after(failures) - clock_timestamp())::float8 as seconds
    from sign_in_failures
    where subject = decode(${subject}, 'hex')
  `
  throw tooMany(row?.seconds)
}

/** The same for a network of addresses, many of which may be honest: 20 failures within 10 minutes. */
async function takeOfNetwork(tx: Tx, subject: string): Promise<void> {
  const taken = await tx`
    insert into sign_in_failures as f (subject, failures, first_at, last_at)
    values (decode(${subject}, 'hex'), 1, clock_timestamp(), clock_timestamp())
    on conflict (subject) do update set
      failures = case
        when f.first_at <= clock_timestamp() - interval '10 minutes' then 1
        else f.failures + 1
      end,
      first_at = case
        when f.first_at <= clock_timestamp() - interval '10 minutes' then clock_timestamp()
        else f.first_at
      end,
      last_at = clock_timestamp()
    where f.failures < 20 or f.first_at <= clock_timestamp() - interval '10 minutes'
  `
  if (taken.count > 0) return
  const [row] = await tx<{ seconds: number }[]>`
    select extract(epoch from first_at + interval '10 minutes' - clock_timestamp())::float8 as seconds
    from sign_in_failures
    where subject = decode(${subject}, 'hex')
  `
  throw tooMany(row?.seconds)
}

async function giveBack(tx: Tx, subject: string): Promise<void> {
  await tx`
    update sign_in_failures set failures = greatest(failures - 1, 0)
    where subject = decode(${subject}, 'hex')
  `
}

async function forget(tx: Tx, subject: string): Promise<void> {
  await tx`delete from sign_in_failures where subject = decode(${subject}, 'hex')`
}

function toSubject(lane: Lane): string {
  if (lane.kind === 'account') return toAccountSubject(lane.email)
  return lane.kind === 'session'
    ? toHash('session', lane.sessionId)
    : toHash('device', lane.deviceId)
}

function toAccountSubject(email: string): string {
  return toHash('account', email)
}

function toNetworkSubject(address: string): string {
  return toHash('network', toNetwork(address))
}

function toHash(kind: string, name: string): string {
  return createHash('sha256').update(`${kind} ${name}`).digest('hex')
}

function tooMany(wait = 1): Fault {
  const seconds = Math.max(1, Math.ceil(wait))
  return new Fault(
    'rate_limited',
    `Too many tries with a wrong password, try again in ${seconds} s`,
    {
      'Retry-After': String(seconds),
    },
  )
}
