import webPush from 'web-push'
import { SERVER, writeAudit } from '../../access/audit/audit.ts'
import type { Queryable, Sql } from '../../database/sql.ts'
import { setNewest } from '../../base/functions.ts'
import { newId, toId } from '../../base/ids.ts'
import { toArray } from '../../database/arrays.ts'
import type { SecretLoss } from '../../database/secrets/reset.ts'
import type { SealedTable } from '../../database/secrets/rotation.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import { parseVapidSubject } from '../../base/config/values.ts'

/** The sealed columns, for the rotation of APP_SECRET. */
export const SEALED_VAPID_KEYS = {
  table: 'vapid_keys',
  columns: ['private_key'],
} as const satisfies SealedTable

/**
 * Deletes a VAPID key that cannot be opened, and all subscriptions, because they were made for that
 * key.
 */
export const VAPID_LOSS: SecretLoss = {
  ...SEALED_VAPID_KEYS,
  describe: count =>
    `VAPID keys replaced: ${count}. Every browser subscribes again when its page is next open`,
  async drop(tx, ids) {
    await tx`delete from push_subscriptions`
    await tx`delete from vapid_keys where id = any(${toArray(ids)}::uuid[])`
    for (const id of ids) {
      await writeAudit(tx, SERVER, { action: 'push.keyLost', target: toId('vap', id) })
    }
  },
}

/** The public key, in the form that browsers take. `id` is a uuid. */
export interface VapidPublicKey {
  id: string
  publicKey: string
}

export interface VapidKeyPair extends VapidPublicKey {
  privateKey: string
}

/**
 * A token is valid for 12 hours, and used until an hour before its end. RFC 8292 allows 24 hours.
 */
const TOKEN_MS = 12 * 3_600_000
const SPARE_MS = 3_600_000
const MAX_TOKENS = 1_000

/**
 * Returns the VAPID key of this installation. The first call creates it, also if several calls run
 * at once.
 */
export async function ensureVapidKey(sql: Sql, secrets: Secrets): Promise<VapidPublicKey> {
  const known = await findVapidKey(sql)
  if (known) return known
  const { uuid, id } = newId('vap')
  const pair = webPush.generateVAPIDKeys()
  await sql.begin(async tx => {
    const made = await tx`
      insert into vapid_keys (id, public_key, private_key)
      values (${uuid}, ${pair.publicKey}, ${secrets.seal(pair.privateKey, toSealedCell(uuid))})
      on conflict (singleton) do nothing
    `
    if (made.count > 0) await writeAudit(tx, SERVER, { action: 'push.keyCreated', target: id })
  })
  const key = await findVapidKey(sql)
  if (!key) throw new Error('The VAPID key is gone')
  return key
}

async function findVapidKey(sql: Queryable): Promise<VapidPublicKey | undefined> {
  const [row] = await sql<{ id: string; public_key: string }[]>`
    select id, public_key from vapid_keys
  `
  return row && { id: row.id, publicKey: row.public_key }
}

/** Returns the key pair, and the contact to put into tokens. */
export async function getVapidSigner(
  sql: Queryable,
  secrets: Secrets,
  configured: string | undefined,
): Promise<{ pair: VapidKeyPair; subject: string | undefined }> {
  const [row] = await sql<[{ id: string; public_key: string; private_key: string }]>`
    select id, public_key, private_key from vapid_keys
  `
  return {
    pair: {
      id: row.id,
      publicKey: row.public_key,
      privateKey: secrets.open(row.private_key, toSealedCell(row.id)),
    },
    subject: await findVapidSubject(sql, configured),
  }
}

/**
 * Returns the contact for push services: the configured one, or the e-mail address of the first
 * operator. Undefined if that is a local address.
 */
export function chooseVapidSubject(
  configured: string | undefined,
  operatorEmail: string | null,
): string | undefined {
  return configured ?? parseVapidSubject(`mailto:${operatorEmail}`)
}

/** Returns the contact for push services: see `chooseVapidSubject`. */
export async function findVapidSubject(
  sql: Queryable,
  configured: string | undefined,
): Promise<string | undefined> {
  const [row] = await sql<{ email: string }[]>`
    select email from accounts where is_operator order by created_at, id limit 1
  `
  return chooseVapidSubject(configured, row?.email ?? null)
}

/** Creates a cache of VAPID tokens, by key and push service. */
export function createVapidTokenCache() {
  const tokens = new Map<string, { header: string; madeMs: number }>()
  return {
    /** Returns the Authorization header of a token that is still used. */
    find(keyId: string, origin: string, nowMs: number): string | undefined {
      const token = tokens.get(`${keyId} ${origin}`)
      // If the clock was set back, an older token would be valid for too long.
      const isGood = token && token.madeMs <= nowMs && nowMs < token.madeMs + TOKEN_MS - SPARE_MS
      return isGood ? token.header : undefined
    },
    /**
     * Signs a token that is valid for 12 hours, and caches it for 11. Returns the Authorization
     * header.
     */
    make(
      { id, publicKey, privateKey }: VapidKeyPair,
      { origin, subject, nowMs }: { origin: string; subject: string; nowMs: number },
    ): string {
      const untilS = Math.floor((nowMs + TOKEN_MS) / 1000)
      const keys = [publicKey, privateKey] as const
      const made = webPush.getVapidHeaders(origin, subject, ...keys, 'aes128gcm', untilS)
      const header = made.Authorization
      setNewest(tokens, `${id} ${origin}`, { header, madeMs: nowMs }, MAX_TOKENS)
      return header
    },
    /** Removes a refused token, so that the next one has the present time and contact. */
    forget: (keyId: string, origin: string) => void tokens.delete(`${keyId} ${origin}`),
  }
}

/** Returns the public id of a key. */
export function toVapidKeyId({ id }: Pick<VapidPublicKey, 'id'>): string {
  return toId('vap', id)
}

function toSealedCell(rowId: string) {
  return { table: SEALED_VAPID_KEYS.table, column: SEALED_VAPID_KEYS.columns[0], rowId }
}
