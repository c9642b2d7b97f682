import { Secret, TOTP } from 'otpauth'
import { newId } from '../../../src/base/ids.ts'
import { newTotpSecret } from '../../../src/access/second-factor/totp.ts'
import { toSealedCell } from '../../../src/access/second-factor/authenticator-app.ts'
import { testSecrets } from '../secret.ts'
import type { Booted } from '../servers/server.ts'
import type { SignedInAccount } from './signed-in-account.ts'

/** Returns the code that an authenticator app shows, `aheadS` seconds from now. */
export function toTotpCode(secret: string, aheadS = 0): string {
  const timestamp = Date.now() + aheadS * 1000
  return new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp })
}

/** Inserts a confirmed authenticator app of an account. Returns its secret in base32. */
export async function insertTotpSecret(
  { sql }: Pick<Booted, 'sql'>,
  { uuid: accountId }: Pick<SignedInAccount, 'uuid'>,
): Promise<string> {
  const { uuid } = newId('otp')
  const secret = newTotpSecret()
  await sql`
    insert into totp_secrets (id, account_id, secret_sealed, confirmed_at)
    values (${uuid}, ${accountId}, ${testSecrets().seal(secret, toSealedCell(uuid))}, now())
  `
  return secret
}
