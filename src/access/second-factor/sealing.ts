import { toArray } from '../../database/arrays.ts'
import type { SecretLoss } from '../../database/secrets/reset.ts'
import type { SealedCell } from '../../database/secrets/secrets.ts'

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

/** Returns the cell that a secret is sealed for. It can be opened only there. */
export function toSealedCell(rowId: string): SealedCell {
  return { table: SEALED_TOTP_SECRETS.table, column: SEALED_TOTP_SECRETS.columns[0], rowId }
}
