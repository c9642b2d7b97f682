import { newId } from '../../../src/base/ids.ts'
import { createSecrets, toAppKey } from '../../../src/database/secrets/secrets.ts'
import { APP_SECRET } from '../secret.ts'
import type { Booted } from '../servers/server.ts'

const secrets = createSecrets(() => [toAppKey(APP_SECRET)])

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

/** Makes the provider `company` the only one that an operator has added. Returns its name. */
export async function insertProvider({ sql }: Pick<Booted, 'sql'>): Promise<string> {
  const { uuid } = newId('con')
  const cell = { table: 'openid_providers', column: 'client_secret', rowId: uuid }
  await sql`delete from openid_providers`
  await sql`
    insert into openid_providers (
      id, name, label, issuer, client_id, client_secret, scopes, groups_claim, is_trusted
    )
    values (
      ${uuid}, 'company', 'Company', 'http://127.0.0.1:9', 'tidings',
      ${secrets.seal('a client secret', cell)}, 'openid', 'groups', false
    )
  `
  return 'company'
}
