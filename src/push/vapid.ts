import webPush from 'web-push'
import { SERVER, writeAudit } from '../audit/audit.ts'
import type { Queryable, Sql } from '../db/sql.ts'
import { newId, toId } from '../ids.ts'
import type { SealedTable } from '../secrets/rotation.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { parseVapidSubject } from '../config/vapid-subject.ts'

/** The columns that are sealed, for the rotation of the APP_SECRET. */
export const SEALED_VAPID_KEYS = {
  table: 'vapid_keys',
  columns: ['private_key'],
} as const satisfies SealedTable

/** The public half, as browsers want it; `id` is a uuid. */
export interface PublicKey {
  id: string
  publicKey: string
}

export interface KeyPair extends PublicKey {
  privateKey: string
}

/** Of a token: RFC 8292 allows a day. It is used until an hour before its end. */
const TOKEN_MS = 12 * 3_600_000
const SPARE_MS = 3_600_000
const MAX_TOKENS = 1_000

/** The key of this installation; it is made at the first need, once, however many ask. */
export async function ensureVapidKey(sql: Sql, secrets: Secrets): Promise<PublicKey> {
  const known = await findVapidKey(sql)
  if (known) return known
  const { uuid, id } = newId('vap')
  const pair = webPush.generateVAPIDKeys()
  await sql.begin(async tx => {
    const made = await tx`
      insert into vapid_keys (id, public_key, private_key)
      values (${uuid}, ${pair.publicKey}, ${secrets.seal(pair.privateKey, toPlace(uuid))})
      on conflict (is_only) do nothing
    `
    if (made.count > 0) await writeAudit(tx, SERVER, { action: 'push.keyCreated', target: id })
  })
  const key = await findVapidKey(sql)
  if (!key) throw new Error('The VAPID key is gone')
  return key
}

async function findVapidKey(sql: Queryable): Promise<PublicKey | undefined> {
  const [row] = await sql<{ id: string; public_key: string }[]>`
    select id, public_key from vapid_keys
  `
  return row && { id: row.id, publicKey: row.public_key }
}

/** Both halves of a key, and who answers for what it signs: as configured, or the first operator. */
export async function getSigner(
  sql: Queryable,
  secrets: Secrets,
  configured: string | undefined,
): Promise<{ pair: KeyPair; subject: string | undefined }> {
  const [row] = await sql<
    [{ id: string; public_key: string; private_key: string; email: string | null }]
  >`
    select
      k.id, k.public_key, k.private_key,
      (select email from people where is_operator order by created_at, id limit 1) as email
    from vapid_keys k
  `
  return {
    pair: {
      id: row.id,
      publicKey: row.public_key,
      privateKey: secrets.open(row.private_key, toPlace(row.id)),
    },
    subject: getSubject(configured, row.email),
  }
}

/** Who answers for pushes: as configured, or the first operator, where the world can reach them. */
export function getSubject(
  configured: string | undefined,
  operatorEmail: string | null,
): string | undefined {
  return configured ?? parseVapidSubject(`mailto:${operatorEmail}`)
}

/** Tokens by the key and the push service that they are for: services verify one that they know for free. */
export interface Tokens {
  find(keyId: string, origin: string, nowMs: number): string | undefined
  /** Signs one that is good for 12 hours, and keeps it for 11; as the Authorization header. */
  make(pair: KeyPair, options: { origin: string; subject: string; nowMs: number }): string
}

export function createTokens(): Tokens {
  const tokens = new Map<string, { header: string; madeMs: number }>()
  return {
    find(keyId, origin, nowMs) {
      const token = tokens.get(`${keyId} ${origin}`)
      // One that was made by a clock that has gone back since would be good for more than a day.
      const isGood = token && token.madeMs <= nowMs && nowMs < token.madeMs + TOKEN_MS - SPARE_MS
      return isGood ? token.header : undefined
    },
    make(pair, { origin, subject, nowMs }) {
      const { Authorization: header } = webPush.getVapidHeaders(
        origin,
        subject,
        pair.publicKey,
        pair.privateKey,
        'aes128gcm',
        Math.floor((nowMs + TOKEN_MS) / 1000),
      )
      if (tokens.size >= MAX_TOKENS) tokens.delete(tokens.keys().next().value ?? '')
      tokens.set(`${pair.id} ${origin}`, { header, madeMs: nowMs })
      return header
    },
  }
}

/** The public id of a key. */
export function toKeyId({ id }: Pick<PublicKey, 'id'>): string {
  return toId('vap', id)
}

function toPlace(rowId: string) {
  return { table: SEALED_VAPID_KEYS.table, column: SEALED_VAPID_KEYS.columns[0], rowId }
}
