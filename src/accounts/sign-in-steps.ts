import type { Queryable, Tx } from '../db/sql.ts'
import { hashSecret, newSecret } from './secret.ts'

/** How long a sign-in waits for its code, in seconds. */
export const STEP_AGE_S = 300
const MAX_STEPS = 5

/** Returns whether the password of an account requires a code as a second factor. */
export async function hasSecondFactor(sql: Queryable, accountId: string): Promise<boolean> {
  const [row] = await sql<[{ is_on: boolean }]>`
    select exists (
      select from totp_secrets where account_id = ${accountId} and confirmed_at is not null
    ) as is_on
  `
  return row.is_on
}

/**
 * Begins the second step of a sign-in, after the password was checked. Returns the secret of its
 * cookie. An account has at most 5 open steps. The caller has locked the account.
 */
export async function createStep(
  tx: Tx,
  { accountId, isInstalled }: { accountId: string; isInstalled: boolean },
): Promise<string> {
  const secret = newSecret(256)
  await tx`
    insert into sign_in_steps (hash, account_id, is_installed, expires_at)
    values (
      decode(${hashSecret(secret)}, 'hex'), ${accountId}, ${isInstalled},
      now() + make_interval(secs => ${STEP_AGE_S})
    )
  `
  await tx`
    delete from sign_in_steps
    where hash in (
      select hash
      from sign_in_steps
      where account_id = ${accountId}
      order by expires_at desc, hash
      offset ${MAX_STEPS}
    )
  `
  return secret
}

/** Finds the open step of a cookie's secret. */
export async function findStep(
  sql: Queryable,
  secret: string,
): Promise<{ accountId: string; email: string; isInstalled: boolean } | undefined> {
  const [row] = await sql<{ account_id: string; email: string; is_installed: boolean }[]>`
    select s.account_id, p.email, s.is_installed
    from sign_in_steps s
      join accounts p on p.id = s.account_id
    where s.hash = decode(${hashSecret(secret)}, 'hex') and s.expires_at > now()
  `
  return row && { accountId: row.account_id, email: row.email, isInstalled: row.is_installed }
}

/** Ends a step. Returns false if it has ended before. */
export async function endStep(tx: Tx, secret: string): Promise<boolean> {
  const ended = await tx`
    delete from sign_in_steps
    where hash = decode(${hashSecret(secret)}, 'hex') and expires_at > now()
  `
  return ended.count === 1
}

/** Ends the open steps of an account, whose password has changed. */
export async function endSteps(tx: Tx, accountId: string): Promise<void> {
  await tx`delete from sign_in_steps where account_id = ${accountId}`
}
