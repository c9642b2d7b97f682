import { closeSync, openSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Config } from '../../base/config.ts'
import { listIssuers, type ProviderSettings } from '../../base/config/openid.ts'
import { toReason } from '../../base/errors.ts'
import { logger } from '../../base/log.ts'
import { findOwner, makePrivate } from '../../base/private-files.ts'
import { openSecrets, type SecretSource } from '../../database/secrets/open-secrets.ts'
import type { SecretLoss } from '../../database/secrets/reset.ts'
import { toArray } from '../../database/arrays.ts'
import type { Tx } from '../../database/sql.ts'
import { SERVER, writeAudit } from '../audit/audit.ts'
import { listLockedOut } from '../sign-in/ways-in.ts'

// Operators of 0.3.0 could add providers on the Server page. Now only settings do.

const log = logger('openid')

/** The sealed column, for the rotation of APP_SECRET. */
export const SEALED_PROVIDERS = { table: 'openid_providers', columns: ['client_secret'] } as const

/** Deletes stored providers whose client secret cannot be opened. */
export const PROVIDER_LOSS: SecretLoss = {
  ...SEALED_PROVIDERS,
  describe: count =>
    `OpenID Connect providers of 0.3.0 deleted: ${count}. Their client secrets are lost. Set them up as settings, under the same names`,
  async drop(tx, ids) {
    const lost = await tx<{ name: string }[]>`
      delete from openid_providers where id = any(${toArray(ids)}::uuid[]) returning name
    `
    for (const { name: provider } of lost) {
      await writeAudit(tx, SERVER, { action: 'provider.deleted', details: { provider } })
    }
  },
}

/**
 * Asks once for the settings of each provider that the database has: logs their lines, and writes
 * each client secret to a file of DATA_DIR. Throws, and asks again at the next start, if an account
 * can sign in at such a provider alone.
 */
export async function replaceStoredProviders(
  tx: Tx,
  { providers, authProxyHeader }: Pick<Config, 'providers' | 'authProxyHeader'>,
  source: SecretSource,
): Promise<void> {
  const stored = await tx<(ProviderSettings & { id: string })[]>`
    select
      id, name, label, issuer, client_id as "clientId", client_secret as "clientSecret", scopes,
      groups_claim as "groupsClaim", is_trusted as "isTrusted"
    from openid_providers
    where not is_handed_over
    order by name
    for update
  `
  const missing = stored.filter(({ name }) => providers.every(one => one.name !== name))
  if (missing.length > 0) {
    const secrets = await openSecrets(tx, source)
    const lines = missing
      .flatMap(one => {
        const prefix = `OIDC_${one.name.toUpperCase().replaceAll('-', '_')}`
        const file = join(source.dataDir, `oidc-${one.name}-client-secret`)
        const cell = { table: SEALED_PROVIDERS.table, column: 'client_secret', rowId: one.id }
        const problem = tryToKeep(file, () => secrets.open(one.clientSecret, cell))
        return [
          `${prefix}_ISSUER=${one.issuer}`,
          `${prefix}_CLIENT_ID=${one.clientId}`,
          problem === undefined
            ? `${prefix}_CLIENT_SECRET_FILE=${file}`
            : `${prefix}_CLIENT_SECRET= (copy it from the provider, because it is not in ${file}: ${problem})`,
          `${prefix}_LABEL=${one.label}`,
          `${prefix}_SCOPES=${one.scopes}`,
          `${prefix}_GROUPS_CLAIM=${one.groupsClaim}`,
          `${prefix}_TRUSTED=${one.isTrusted}`,
        ]
      })
      .map(line => `  ${line}`)
    const connected = await tx<{ id: string }[]>`
      select distinct account_id as id
      from openid_connections
      where issuer = any(${toArray(missing.map(({ issuer }) => issuer))}::text[])
    `
    const alone = await listLockedOut(
      tx,
      connected.map(({ id }) => id),
      listIssuers(providers, authProxyHeader !== undefined),
    )
    const what = 'Since 0.4.0, sign-in providers are settings alone.'
    if (alone.length > 0) {
      throw new Error(
        [
          `${what} Accounts that can sign in only at a provider of the database: ${alone.length}. Set these, and start again:`,
          ...lines,
        ].join('\n'),
      )
    }
    const lead = `${what} To keep those of the database, set these, and start again:`
    // A value of a placeholder would be quoted.
    for (const line of [lead, ...lines]) log.warning(line.replace(/[{}]/g, '$&$&'))
  }
  await tx`update openid_providers set is_handed_over = true where not is_handed_over`
}

/** Writes a secret to a private file. Returns why it is not there; undefined if it is. */
function tryToKeep(file: string, open: () => string): string | undefined {
  try {
    const secret = open()
    const fd = openSync(file, 'w', 0o600)
    try {
      makePrivate(fd, findOwner(dirname(file)))
      writeFileSync(fd, `${secret}\n`)
    } finally {
      closeSync(fd)
    }
    return undefined
  } catch (error) {
    return toReason(error)
  }
}
