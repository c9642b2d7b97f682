import type { Pool } from '../db/pool.ts'
import type { Queryable, Tx } from '../db/sql.ts'
import { transact } from '../db/transaction.ts'
import { Fault } from '../errors.ts'
import { verifyPassword } from './passwords.ts'
import { hashSecret } from './secret.ts'
import { giveTryBack, takeTry, type Lane } from './throttle.ts'

/** With what somebody signs in; a person who never chose a password has no hash. */
export interface Credentials {
  personId: string
  email: string
  hash: string | null
}

/** The credentials of whoever has this e-mail address, and the lane in which a try at them counts. */
export async function findCredentials(
  sql: Queryable,
  { email, address, device }: { email: string; address: string; device: string | undefined },
): Promise<{ found: Credentials | undefined; lane: Lane }> {
  const deviceHash = device === undefined ? null : hashSecret(device)
  const [row] = await sql<{ id: string; password_hash: string | null; device_id: string | null }[]>`
    select p.id, p.password_hash, d.id as device_id
    from people p
      left join known_devices d on d.hash = decode(${deviceHash}, 'hex') and d.person_id = p.id
    where p.email = ${email}
  `
  const found = row && { personId: row.id, email, hash: row.password_hash }
  const lane: Lane = row?.device_id
    ? { kind: 'device', deviceId: row.device_id }
    : { kind: 'account', email, address }
  return { found, lane }
}

/** The credentials of a person. */
export async function getCredentials(sql: Queryable, personId: string): Promise<Credentials> {
  const [row] = await sql<{ email: string; password_hash: string | null }[]>`
    select email, password_hash from people where id = ${personId}
  `
  if (!row) throw new Fault('signed_out', 'Sign in first')
  return { personId, email: row.email, hash: row.password_hash }
}

/**
 * Whether the password is that of `credentials`; nobody's is right, which takes as long to say. The try counts as a
 * failure until `forgetTries`. Throws `rate_limited` without a look at the password, and `unavailable`.
 */
export async function tryPassword(
  pool: Pool,
  lane: Lane,
  { password, credentials }: { password: string; credentials: Credentials | undefined },
): Promise<boolean> {
  await transact(pool, tx => takeTry(tx, lane))
  try {
    return await verifyPassword(password, credentials?.hash ?? null)
  } catch (error) {
    await transact(pool, tx => giveTryBack(tx, lane))
    throw error
  }
}

/**
 * Holds the person's row until the transaction ends, first of all. Throws `wrong_credentials` when the password that
 * was right has been changed meanwhile.
 */
export async function lockCredentials(tx: Tx, { personId, hash }: Credentials): Promise<void> {
  const locked = await tx`
    select from people where id = ${personId} and password_hash = ${hash} for no key update
  `
  if (locked.count === 0) throw wrongCredentials()
}

/** One answer for an unknown address, an account without a password, and a wrong one. */
export function wrongCredentials(): Fault {
  return new Fault('wrong_credentials', 'The e-mail address or the password is wrong')
}
