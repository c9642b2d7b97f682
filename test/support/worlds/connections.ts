import type { ProviderSettings } from '../../../src/base/config/openid.ts'
import { newId } from '../../../src/base/ids.ts'
import type { Booted } from '../servers/server.ts'

/** Connects an account with an identity that nobody has. Returns the public id. */
export async function insertConnection(
  { sql }: Pick<Booted, 'sql'>,
  { uuid }: { uuid: string },
): Promise<string> {
  const connection = newId('con')
  await sql`
    insert into openid_connections (id, issuer, subject, account_id, provider)
    values (${connection.uuid}, ${`https://${connection.id}.example`}, 'a', ${uuid}, 'company')
  `
  return connection.id
}

/** A provider that is never reached. */
export const COMPANY: ProviderSettings = {
  name: 'company',
  label: 'Company',
  issuer: 'http://127.0.0.1:9',
  clientId: 'tidings',
  clientSecret: 'a client secret',
  scopes: 'openid',
  groupsClaim: 'groups',
  isTrusted: false,
}
