import { DEFAULT_GROUPS_CLAIM, toScopes, type ProviderSettings } from '../../base/config/openid.ts'
import { Fault } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import type { SecretLoss } from '../../database/secrets/reset.ts'
import type { SealedCell, Secrets } from '../../database/secrets/secrets.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { SERVER, writeAudit, type Actor } from '../audit/audit.ts'
import type { ProviderBody, ProviderChange } from './schema.ts'

const MAX_PROVIDERS = 20

/** The sealed column, for the rotation of APP_SECRET. */
export const SEALED_PROVIDERS = { table: 'openid_providers', columns: ['client_secret'] } as const

/** Deletes providers whose client secret cannot be opened. */
export const PROVIDER_LOSS: SecretLoss = {
  ...SEALED_PROVIDERS,
  describe: count =>
    `OpenID Connect providers deleted: ${count}. Their client secrets are lost. Add them again under the same names`,
  async drop(tx, ids) {
    for (const id of ids) {
      const [lost] = await tx<{ name: string }[]>`
        delete from openid_providers where id = ${id} returning name
      `
      if (!lost) continue
      await writeAudit(tx, SERVER, { action: 'provider.deleted', details: { provider: lost.name } })
    }
  },
}

/** The providers of variables, and the secrets that open those of the table. */
export interface ProviderSource {
  settings: readonly ProviderSettings[]
  secrets: Pick<Secrets, 'seal' | 'open'>
}

interface Row extends Omit<ProviderSettings, 'clientSecret'> {
  id: string
  clientSecret: string
}

/** Returns all providers, ordered by label. Those of variables replace others of the same name. */
export async function listProviders(
  sql: Queryable,
  { settings, secrets }: ProviderSource,
): Promise<(ProviderSettings & { isFromSettings: boolean })[]> {
  const rows = await sql<Row[]>`
    select
      id, name, label, issuer, client_id as "clientId", client_secret as "clientSecret", scopes,
      groups_claim as "groupsClaim", is_trusted as "isTrusted"
    from openid_providers
  `
  const names = new Set(settings.map(({ name }) => name))
  const added = rows
    .filter(({ name }) => !names.has(name))
    .map(({ id, clientSecret, ...row }) => ({
      ...row,
      clientSecret: secrets.open(clientSecret, toCell(id)),
      isFromSettings: false,
    }))
  return [...settings.map(one => ({ ...one, isFromSettings: true })), ...added].toSorted((a, b) =>
    a.label.localeCompare(b.label),
  )
}

/** Returns the issuers of all providers. */
export async function listIssuers(sql: Queryable, source: ProviderSource): Promise<string[]> {
  return (await listProviders(sql, source)).map(({ issuer }) => issuer)
}

/** Returns the provider with a name. Throws `not_found`. */
export async function getProvider(
  sql: Queryable,
  source: ProviderSource,
  name: string,
): Promise<ProviderSettings> {
  const found = (await listProviders(sql, source)).find(one => one.name === name)
  if (found) return found
  throw providerNotFound()
}

/** Adds a provider. Throws `conflict` if its name is taken, or if there are 20. */
export async function addProvider(
  tx: Tx,
  { settings, secrets }: ProviderSource,
  { actor, body }: { actor: Actor; body: ProviderBody },
): Promise<void> {
  const { name, label, issuer, clientId, clientSecret } = body
  if (settings.some(one => one.name === name)) throw nameTaken(name)
  const [{ count }] = await tx<[{ count: number }]>`
    select count(*)::int as count from openid_providers
  `
  if (count >= MAX_PROVIDERS) {
    throw new Fault('conflict', `A server can have at most ${MAX_PROVIDERS} providers`)
  }
  const { uuid } = newId('con')
  const inserted = await tx`
    insert into openid_providers (
      id, name, label, issuer, client_id, client_secret, scopes, groups_claim, is_trusted
    )
    values (
      ${uuid}, ${name}, ${label.trim()}, ${issuer}, ${clientId.trim()},
      ${secrets.seal(clientSecret, toCell(uuid))}, ${toScopes(body.scopes)},
      ${body.groupsClaim?.trim() ?? DEFAULT_GROUPS_CLAIM}, ${body.isTrusted ?? false}
    )
    on conflict (name) do nothing
  `
  if (inserted.count === 0) throw nameTaken(name)
  await writeAudit(tx, actor, {
    action: 'provider.created',
    details: { provider: name, issuer, isTrusted: body.isTrusted ?? false },
  })
}

/** Changes a provider that an operator added. Throws `not_found`. */
export async function changeProvider(
  tx: Tx,
  { secrets }: ProviderSource,
  { actor, name, change }: { actor: Actor; name: string; change: ProviderChange },
): Promise<void> {
  const [row] = await tx<{ id: string }[]>`
    select id from openid_providers where name = ${name} for update
  `
  if (!row) throw providerNotFound()
  const { label, clientId, clientSecret, scopes, groupsClaim, isTrusted } = change
  const sealed = clientSecret === undefined ? null : secrets.seal(clientSecret, toCell(row.id))
  await tx`
    update openid_providers set
      label = coalesce(${label?.trim() ?? null}, label),
      client_id = coalesce(${clientId?.trim() ?? null}, client_id),
      client_secret = coalesce(${sealed}, client_secret),
      scopes = coalesce(${scopes === undefined ? null : toScopes(scopes)}, scopes),
      groups_claim = coalesce(${groupsClaim?.trim() ?? null}, groups_claim),
      is_trusted = coalesce(${isTrusted ?? null}, is_trusted)
    where id = ${row.id}
  `
  const fields = Object.keys(change).join(' ')
  await writeAudit(tx, actor, { action: 'provider.edited', details: { provider: name, fields } })
}

/**
 * Deletes a provider that an operator added. Memberships that its rules gave stay, and no longer
 * depend on rules. Throws `not_found`.
 */
export async function deleteProvider(tx: Tx, actor: Actor, name: string): Promise<void> {
  const deleted = await tx`delete from openid_providers where name = ${name}`
  if (deleted.count === 0) throw providerNotFound()
  await tx`delete from sign_in_rules where provider = ${name}`
  await tx`update memberships set provider = null where provider = ${name}`
  await writeAudit(tx, actor, { action: 'provider.deleted', details: { provider: name } })
}

function toCell(rowId: string): SealedCell {
  const { table, columns } = SEALED_PROVIDERS
  return { table, column: columns[0], rowId }
}

function providerNotFound(): Fault {
  return new Fault('not_found', 'No provider has this name')
}

function nameTaken(name: string): Fault {
  return new Fault('conflict', `A provider has the name ${name}. Choose another one.`)
}
