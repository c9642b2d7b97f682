import { toArray } from '../../database/arrays.ts'
import type { SecretLoss } from '../../database/secrets/reset.ts'
import type { SealedTable } from '../../database/secrets/rotation.ts'
import type { SealedCell, Secrets } from '../../database/secrets/secrets.ts'
import { MAX_URL_LENGTH } from '../../http/egress/guard.ts'

/**
 * The endpoint of a subscription, and the keys that encrypt pushes for it. All three are secret.
 */
export interface PushAddress {
  endpoint: string
  p256dh: string
  auth: string
}

/** The sealed columns, for the rotation of APP_SECRET. */
export const SEALED_SUBSCRIPTIONS = {
  table: 'push_subscriptions',
  columns: ['address'],
} as const satisfies SealedTable

/**
 * Deletes subscriptions that cannot be opened. Each browser subscribes again when its page is next
 * open.
 */
export const SUBSCRIPTION_LOSS: SecretLoss = {
  ...SEALED_SUBSCRIPTIONS,
  describe: count =>
    `Push subscriptions deleted: ${count}. Each browser subscribes again when its page is next open`,
  async drop(tx, ids) {
    await tx`delete from push_subscriptions where id = any(${toArray(ids)}::uuid[])`
  },
}

/** Seals the address of the subscription with this uuid. */
export function sealAddress(secrets: Secrets, id: string, address: PushAddress): string {
  return secrets.seal(JSON.stringify(address), toSealedCell(id))
}

/**
 * Opens the address of the subscription with this uuid. Throws `UnreadableSecret` if it was sealed
 * with another APP_SECRET.
 */
export function openAddress(
  secrets: Pick<Secrets, 'open'>,
  id: string,
  sealed: string,
): PushAddress {
  // Written by sealAddress.
  return JSON.parse(secrets.open(sealed, toSealedCell(id))) as PushAddress
}

function toSealedCell(rowId: string): SealedCell {
  return { table: SEALED_SUBSCRIPTIONS.table, column: SEALED_SUBSCRIPTIONS.columns[0], rowId }
}

/** The push services of browsers: Google (FCM), Mozilla, Apple and Microsoft. */
const PUSH_SERVICES = [
  /^fcm\.googleapis\.com$/,
  /^([a-z0-9-]+\.)*push\.services\.mozilla\.com$/,
  /^([a-z0-9-]+\.)+push\.apple\.com$/,
  /^([a-z0-9-]+\.)+notify\.windows\.com$/,
]

/**
 * Parses an endpoint of a known push service: https on port 443, or one of `hosts`, which may
 * contain a port. Returns undefined for any other URL.
 */
export function parseEndpoint(text: string, hosts: readonly string[]): URL | undefined {
  const url = URL.parse(text)
  if (!url || url.href.length > MAX_URL_LENGTH) return undefined
  if (url.protocol !== 'https:' || url.username !== '' || url.password !== '') return undefined
  url.hash = ''
  const isKnown = url.port === '' && PUSH_SERVICES.some(service => service.test(url.hostname))
  return isKnown || hosts.includes(url.host) ? url : undefined
}

// The curve P-256: y² = x³ - 3x + b modulo p (SEC 2, section 2.4.2).
const P = 0xffffffff00000001000000000000000000000000ffffffffffffffffffffffffn
const B = 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn
const BYTES = 32

/**
 * Returns true if the bytes are an uncompressed point of P-256. Encryption is impossible with any
 * other key.
 */
export function isP256Point(bytes: Uint8Array): boolean {
  if (bytes.length !== 1 + 2 * BYTES || bytes[0] !== 4) return false
  const x = toNumber(bytes.subarray(1, 1 + BYTES))
  const y = toNumber(bytes.subarray(1 + BYTES))
  return x < P && y < P && (y * y - (x * x * x - 3n * x + B)) % P === 0n
}

function toNumber(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
}
