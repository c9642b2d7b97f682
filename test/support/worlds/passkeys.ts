import { newId } from '../../../src/base/ids.ts'
import { createAuthenticator, type Authenticator } from '../clients/authenticator.ts'
import type { Booted } from '../servers/server.ts'
import type { SignedInAccount } from './signed-in-account.ts'
import { insertTotpSecret, toTotpCode } from './totp.ts'

/** Inserts a passkey of an account, without its ceremony. Returns its id (`pky_…`). */
export async function insertPasskey(
  { sql }: Pick<Booted, 'sql'>,
  { uuid: accountId }: Pick<SignedInAccount, 'uuid'>,
  authenticator: Pick<Authenticator, 'id' | 'publicKey'> = createAuthenticator(''),
): Promise<string> {
  const { uuid, id } = newId('pky')
  const bytes = (data: Buffer) => sql`decode(${data.toString('hex')}, 'hex')`
  await sql`
    insert into passkeys (
      id, account_id, credential_id, public_key, counter, name, transports, is_synced
    )
    values (
      ${uuid}, ${accountId}, ${bytes(Buffer.from(authenticator.id, 'base64url'))},
      ${bytes(authenticator.publicKey)}, 0, 'A passkey', '[]', false
    )
  `
  return id
}

/** Returns the origin of a server's pages. A passkey needs a name instead of an address. */
export function toOrigin({ url }: Pick<Booted, 'url'>): string {
  return url.replace('127.0.0.1', 'localhost')
}

/** Prepares an action on the account's own credentials. */
export async function prepareOwn(
  server: Booted,
  account: SignedInAccount,
  action: string,
): Promise<object | undefined> {
  const authenticator = createAuthenticator(toOrigin(server))
  if (action === 'passkeys.add') {
    const { status, body } = await account.post('/api/passkeys/options')
    return status === 200
      ? { name: 'A passkey', credential: authenticator.create(body.data) }
      : undefined
  }
  if (action === 'secondFactor.confirm') {
    const { body } = await account.post('/api/second-factor')
    return body.success ? { code: toTotpCode(body.data.secret) } : undefined
  }
  if (action.startsWith('secondFactor.') && action !== 'secondFactor.create') {
    await insertTotpSecret(server, account)
  }
  if (action === 'account.addSecondFactor') {
    return { code: toTotpCode(await insertTotpSecret(server, account)) }
  }
  if (action !== 'account.verifyByPasskey') return undefined
  await insertPasskey(server, account, authenticator)
  const { body } = await account.post('/api/session/verify/passkey/options')
  return { credential: authenticator.get(body.data) }
}
