import { newId } from '../../src/ids.ts'
import { createAuthenticator, type Authenticator } from './authenticator.ts'
import type { Booted } from './server.ts'
import type { SignedInAccount } from './signed-in-account.ts'

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

/** Returns the body of a request that only the account's own authenticator can make. */
export async function signOwnBody(
  server: Booted,
  person: SignedInAccount,
  action: string,
): Promise<object | undefined> {
  const authenticator = createAuthenticator(toOrigin(server))
  if (action === 'passkeys.add') {
    const { status, body } = await person.post('/api/passkeys/options')
    return status === 200
      ? { name: 'A passkey', credential: authenticator.create(body.data) }
      : undefined
  }
  if (action !== 'account.verifyByPasskey') return undefined
  await insertPasskey(server, person, authenticator)
  const { body } = await person.post('/api/session/verify/passkey/options')
  return { credential: authenticator.get(body.data) }
}
