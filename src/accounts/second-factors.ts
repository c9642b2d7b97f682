import type { Tx } from '../db/sql.ts'

/** Removes the authenticator app and the recovery codes of an account. */
export async function removeSecondFactor(tx: Tx, accountId: string): Promise<void> {
  await tx`delete from totp_secrets where account_id = ${accountId}`
  await tx`delete from recovery_codes where account_id = ${accountId}`
}
