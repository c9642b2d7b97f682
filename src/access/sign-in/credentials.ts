import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import type { Pool } from '../../database/pool.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { Fault } from '../../base/errors.ts'
import { invalidField } from '../../http/validation.ts'
import {
  findPasswordProblem,
  normalizePassword,
  type PasswordOwner,
} from '../../base/passwords/policy.ts'
import * as platform from '../../base/platform.ts'
import { createSemaphore, tooManyAtOnce } from '../../base/semaphore.ts'
import { toNetwork } from '../../http/limits/failed-authentications.ts'
import { hashSecret } from '../guard/secret.ts'
import { attempt, type ThrottleScope } from './throttle.ts'

// Limits for the whole process: each hash takes a processor and 19 MiB of memory. Known browsers,
// sessions and holders of links do not wait behind strangers, who leave a processor to others. A
// newcomer does not wait behind a crowd of networks from which nobody has tried before, nor an
// account behind another one.
const hashing = createSemaphore({ total: 4, maxWaiting: 32, maxWaitingTotal: 512 })
const hashingForStrangers = createSemaphore({
  total: Math.max(1, availableParallelism() - 1),
  maxWaitingTotal: 512,
  isNewestFirst: true,
})
// The attempts of strangers. Each network makes one at a time.
const turns = createSemaphore({ perKey: 1, maxWaiting: 16, maxWaitingTotal: 512 })
/** How long a wrong password keeps the turn of its network, so that guessing takes little time. */
const WRONG_TURN_MS = 100
// The hash to verify against if an account has none. Its random digest matches no known password.
const DUMMY_HASH = `$argon2id$v=19$m=19456,t=2,p=1$${randomBase64(32)}$${randomBase64(32)}`

/** The e-mail address and password of an account. The hash is null until a password is chosen. */
export interface Credentials {
  accountId: string
  email: string
  hash: string | null
}

/** Throws `InvalidRequest` for `field` if the password policy rejects the password. */
export function checkPassword(password: string, owner: PasswordOwner, field = 'password'): void {
  const problem = findPasswordProblem(password, owner)
  if (problem) throw invalidField(field, problem.code, problem.message)
}

/**
 * Returns the argon2id hash of a password. Keys, such as the e-mail address of the account, take
 * turns. Throws `unavailable` if too many callers of the key wait.
 */
export function hashPassword(password: string, key: string): Promise<string> {
  return hashing.run(key, () => platform.hashPassword(normalizePassword(password)))
}

/**
 * Returns whether a password matches a hash. A null hash matches nothing, but takes as long, so
 * that timing does not reveal which accounts exist.
 */
export async function verifyPassword(password: string, hash: string | null): Promise<boolean> {
  const isMatch = await platform.verifyPassword(normalizePassword(password), hash ?? DUMMY_HASH)
  return isMatch && hash !== null
}

/**
 * Returns the credentials of the account with this e-mail address, and where its failed attempts
 * count.
 */
export async function findCredentials(
  sql: Queryable,
  { email, address, device }: { email: string; address: string; device: string | undefined },
): Promise<{ found: Credentials | undefined; scope: ThrottleScope }> {
  const deviceHash = device === undefined ? null : hashSecret(device)
  const [row] = await sql<{ id: string; password_hash: string | null; device_id: string | null }[]>`
    select p.id, p.password_hash, d.id as device_id
    from accounts p
      left join known_devices d on d.hash = decode(${deviceHash}, 'hex') and d.account_id = p.id
    where p.email = ${email}
  `
  const found = row && { accountId: row.id, email, hash: row.password_hash }
  const lane: ThrottleScope['lane'] = row?.device_id
    ? { kind: 'device', deviceId: row.device_id }
    : { kind: 'network', address }
  return { found, scope: { email, factor: 'password', lane } }
}

/** Returns the credentials of an account. Throws `signed_out` if it was deleted. */
export async function getCredentials(sql: Queryable, accountId: string): Promise<Credentials> {
  const [row] = await sql<{ email: string; password_hash: string | null }[]>`
    select email, password_hash from accounts where id = ${accountId}
  `
  if (!row) throw new Fault('signed_out', 'Sign in first')
  return { accountId, email: row.email, hash: row.password_hash }
}

/**
 * Returns whether the password matches `credentials`. The attempt counts as a failure until
 * `clearAttempts`. Throws `rate_limited` without checking the password, or `unavailable` if too
 * many callers wait.
 */
export async function tryPassword(
  pool: Pool,
  scope: ThrottleScope,
  { password, credentials }: { password: string; credentials: Credentials | undefined },
): Promise<boolean> {
  const check = () => verifyPassword(password, credentials?.hash ?? null)
  if (scope.lane.kind !== 'network') {
    // An attempt without a chance of a slot costs no transaction.
    if (!hashing.hasRoom(scope.email)) throw tooManyAtOnce()
    return attempt(pool, scope, () => hashing.run(scope.email, check))
  }
  const network = toNetwork(scope.lane.address, 48)
  return takeTurn(network, () =>
    attempt(pool, scope, () => hashingForStrangers.run(network, check)),
  )
}

/** Runs `work` in the turn of a network. A wrong password ends the turn 100 ms after its start. */
async function takeTurn(network: string, work: () => Promise<boolean>): Promise<boolean> {
  const release = await turns.acquire(network)
  if (!release) throw tooManyAtOnce()
  const startMs = performance.now()
  let isWrong = false
  try {
    const isMatch = await work()
    isWrong = !isMatch
    return isMatch
  } finally {
    const leftMs = WRONG_TURN_MS - (performance.now() - startMs)
    if (isWrong && leftMs > 0) setTimeout(release, leftMs)
    else release()
  }
}

/**
 * Locks the account until the transaction ends. Call it before other locks. Throws
 * `wrong_credentials` if the password has changed since it was checked.
 */
export async function lockCredentials(tx: Tx, { accountId, hash }: Credentials): Promise<void> {
  const locked = await tx`
    select from accounts
    where id = ${accountId} and password_hash is not distinct from ${hash}
    for no key update
  `
  if (locked.count === 0) throw wrongCredentials()
}

/**
 * Returns one error for an unknown address, an account without a password, and a wrong password.
 */
export function wrongCredentials(): Fault {
  return new Fault('wrong_credentials', 'The e-mail address or the password is wrong')
}

/**
 * Stores whether passwords are off, as the setting PASSWORDS says. While they are off, only
 * passwords of owners and operators that were set from the machine can be used.
 */
export async function storePasswordSwitch(sql: Queryable, arePasswordsOff: boolean): Promise<void> {
  await sql`
    update installation set are_passwords_off = ${arePasswordsOff}
    where are_passwords_off <> ${arePasswordsOff}
  `
}

/** Returns whether passwords are off. */
export async function arePasswordsOff(sql: Queryable): Promise<boolean> {
  const [row] = await sql<[{ off: boolean }]>`select are_passwords_off as off from installation`
  return row.off
}

/** Throws `forbidden` if passwords are off. */
export async function requirePasswords(sql: Queryable): Promise<void> {
  if (await arePasswordsOff(sql)) throw passwordsOff()
}

/** Returns whether the password of an account can be used. */
export async function isPasswordUsable(sql: Queryable, accountId: string): Promise<boolean> {
  const [row] = await sql<[{ is_usable: boolean }]>`
    select is_password_usable(${accountId}) as is_usable
  `
  return row.is_usable
}

/** Throws `forbidden` unless the password of an account can be used. */
export async function requireUsablePassword(sql: Queryable, accountId: string): Promise<void> {
  if (!(await isPasswordUsable(sql, accountId))) throw passwordsOff()
}

function passwordsOff(): Fault {
  return new Fault(
    'forbidden',
    'Passwords are off on this server. Sign in with a passkey, or at a provider.',
  )
}

function randomBase64(bytes: number): string {
  return randomBytes(bytes).toString('base64').replaceAll('=', '')
}
