import { Fault } from '../../base/errors.ts'
import { newId, toId } from '../../base/ids.ts'
import { toArray } from '../../database/arrays.ts'
import type { SecretLoss } from '../../database/secrets/reset.ts'
import type { SealedCell, Secrets } from '../../database/secrets/secrets.ts'
import { transact, type Pool } from '../../database/pool.ts'
import type { Tx } from '../../database/sql.ts'
import { writeAudit, type Actor } from '../audit/audit.ts'
import { attempt, clearAttempts, type ThrottleScope } from '../sign-in/throttle.ts'
import { acceptRecoveryCode } from './recovery-codes.ts'
import { findTotpStep, newTotpSecret } from './totp.ts'

/** The sealed columns, for the rotation of APP_SECRET. */
export const SEALED_TOTP_SECRETS = {
  table: 'totp_secrets',
  columns: ['secret_sealed'],
} as const

/** Removes authenticator apps whose secrets cannot be opened. */
export const TOTP_LOSS: SecretLoss = {
  ...SEALED_TOTP_SECRETS,
  describe: count =>
    `Authenticator apps removed: ${count}. These accounts sign in with their password alone until they set up the app again`,
  async drop(tx, ids) {
    await tx`delete from totp_secrets where id = any(${toArray(ids)}::uuid[])`
  },
}

/**
 * Creates the secret of an authenticator app, in base32. It replaces one that was never confirmed.
 * Throws `conflict` if the account has an app, or has no password. The caller has locked the
 * account.
 */
export async function createTotpSecret(
  tx: Tx,
  secrets: Pick<Secrets, 'seal'>,
  accountId: string,
): Promise<string> {
  const [account] = await tx<{ has_password: boolean }[]>`
    select password_hash is not null as has_password from accounts where id = ${accountId}
  `
  if (!account?.has_password) {
    throw new Fault('conflict', 'Codes belong to a password. Set a password first.')
  }
  await tx`delete from totp_secrets where account_id = ${accountId} and confirmed_at is null`
  const { uuid } = newId('otp')
  const secret = newTotpSecret()
  const created = await tx`
    insert into totp_secrets (id, account_id, secret_sealed)
    values (${uuid}, ${accountId}, ${secrets.seal(secret, toSealedCell(uuid))})
    on conflict (account_id) do nothing
  `
  if (created.count === 1) return secret
  throw new Fault('conflict', 'Your account has an authenticator app. Remove it first.')
}

/**
 * Turns the second factor on with the first code of the app. Returns false for a wrong code. Throws
 * `conflict` if no app waits for its code. The caller has locked the account.
 */
export async function confirmTotpSecret(
  tx: Tx,
  secrets: Pick<Secrets, 'open'>,
  { accountId, code, actor }: { accountId: string; code: string; actor: Actor },
): Promise<boolean> {
  const waiting = await tx`
    select from totp_secrets where account_id = ${accountId} and confirmed_at is null
  `
  if (waiting.count === 0) throw new Fault('conflict', 'Scan the code with your app first')
  if (!(await acceptTotpCode(tx, secrets, { accountId, code }))) return false
  await tx`update totp_secrets set confirmed_at = now() where account_id = ${accountId}`
  await writeAudit(tx, actor, { action: 'secondFactor.added', target: toId('per', accountId) })
  return true
}

/**
 * Uses up a code of the app or a recovery code. Returns its kind, or undefined if it is wrong or
 * was used. The caller has locked the account.
 */
export async function acceptCode(
  tx: Tx,
  secrets: Pick<Secrets, 'open'>,
  { accountId, code }: { accountId: string; code: string },
): Promise<'totp' | 'recovery' | undefined> {
  const digits = code.replaceAll(/\s/g, '')
  if (/^\d{6}$/.test(digits)) {
    const isAccepted = await acceptTotpCode(tx, secrets, { accountId, code: digits })
    return isAccepted ? 'totp' : undefined
  }
  return (await acceptRecoveryCode(tx, accountId, code)) ? 'recovery' : undefined
}

/**
 * Runs `accept` in a transaction, and returns its result. Undefined stands for a wrong code: it
 * counts as a failure of the scope, and throws `wrong_credentials`. Throws `rate_limited` without
 * a try after too many failures.
 */
export async function tryCode<Result>(
  pool: Pool,
  scope: ThrottleScope,
  accept: (tx: Tx) => Promise<Result | undefined>,
): Promise<Result> {
  let result: Result | undefined
  await attempt(pool, scope, async () => {
    result = await transact(pool, async tx => {
      const accepted = await accept(tx)
      if (accepted !== undefined) await clearAttempts(tx, scope)
      return accepted
    })
    return result !== undefined
  })
  if (result !== undefined) return result
  throw new Fault(
    'wrong_credentials',
    'The code is wrong or was already used. Enter the newest one of your app. If it is refused again, let your phone set its clock by itself.',
  )
}

async function acceptTotpCode(
  tx: Tx,
  secrets: Pick<Secrets, 'open'>,
  { accountId, code }: { accountId: string; code: string },
): Promise<boolean> {
  const [row] = await tx<{ id: string; secret_sealed: string; last_step: string; now: Date }[]>`
    select id, secret_sealed, last_step, clock_timestamp() as now
    from totp_secrets
    where account_id = ${accountId}
    for update
  `
  if (!row) return false
  const secret = secrets.open(row.secret_sealed, toSealedCell(row.id))
  const step = findTotpStep(secret, {
    code: code.replaceAll(/\s/g, ''),
    lastStep: Number(row.last_step),
    nowMs: row.now.getTime(),
  })
  if (step === undefined) return false
  await tx`update totp_secrets set last_step = ${step} where id = ${row.id}`
  return true
}

/** Returns the cell that a secret is sealed for. It can be opened only there. */
export function toSealedCell(rowId: string): SealedCell {
  return { table: SEALED_TOTP_SECRETS.table, column: SEALED_TOTP_SECRETS.columns[0], rowId }
}
