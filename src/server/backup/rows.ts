import type { SealedTable } from '../../database/secrets/rotation.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import type { Table } from '../../database/tables.ts'
import { SEALED_PROVIDERS } from '../../access/openid/stored-providers.ts'
import { SEALED_TOTP_SECRETS } from '../../access/second-factor/authenticator-app.ts'
import { SEALED_SUBSCRIPTIONS } from '../../delivery/push/address.ts'
import { SEALED_VAPID_KEYS } from '../../delivery/push/vapid.ts'
import { SEALED_WEBHOOKS } from '../../delivery/webhooks/sealing.ts'
import { SEALED_QUESTIONS } from '../../log/events/question.ts'
import { SEALED_HOOKS } from '../../log/hooks/sealing.ts'
import { SEALED_ERASURE_KEYS } from '../../log/identities/erased-users.ts'

/**
 * Tables that are not backed up. Used or withdrawn sign-in links, and withdrawn tokens, would work
 * again after a restore.
 * The canary belongs to the APP_SECRET of one installation, and the timeline to one database
 * server. The clock becomes the time of the backup.
 * Scheduled backups belong to one installation.
 * The indexer makes the search index anew after a restore.
 */
const EXCLUDED_TABLES = [
  ...['setup_links', 'reset_links', 'invites', 'management_tokens', 'sealed_canary', 'clock'],
  ...['scheduled_backups', 'epoch_timeline'],
  ...['search_cursors', 'search_parts', 'event_tokens', 'stale_segments'],
]

/** Returns true when a backup contains the rows of this table. */
export function isBackedUp({ name, isLogged }: Table): boolean {
  return isLogged && !EXCLUDED_TABLES.includes(name)
}

/** The keys before and after a change of the encryption key. */
export interface KeyChange {
  from: Secrets
  to: Secrets
}

/**
 * Returns a function that re-encrypts the sealed columns of a COPY row. Sealed texts and ids
 * contain no characters that COPY escapes.
 */
export function createResealer(
  { table, columns: sealed }: SealedTable,
  columns: readonly string[],
  { from, to }: KeyChange,
): (row: string) => string {
  const idAt = columns.indexOf('id')
  const targets = sealed.map(column => ({ column, at: columns.indexOf(column) }))
  return row => {
    const fields = row.split('\t')
    for (const { column, at } of targets) {
      const text = fields[at]
      if (text === undefined || text === '\\N') continue
      const place = { table, column, rowId: fields[idAt] ?? '' }
      fields[at] = to.seal(from.open(text, place), place)
    }
    return fields.join('\t')
  }
}

/** Applies `reseal` to each row of blocks of complete lines. */
export async function* resealRows(
  blocks: AsyncIterable<Buffer>,
  reseal: (row: string) => string,
): AsyncGenerator<Buffer> {
  for await (const block of blocks) {
    const rows = block.toString('utf8').split('\n').slice(0, -1)
    yield Buffer.from(rows.map(row => `${reseal(row)}\n`).join(''))
  }
}

/** The tables with columns that are encrypted at rest. */
export const SEALED_TABLES = [
  SEALED_ERASURE_KEYS,
  SEALED_HOOKS,
  SEALED_PROVIDERS,
  SEALED_QUESTIONS,
  SEALED_SUBSCRIPTIONS,
  SEALED_TOTP_SECRETS,
  SEALED_VAPID_KEYS,
  SEALED_WEBHOOKS,
]
