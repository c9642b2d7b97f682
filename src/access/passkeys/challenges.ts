import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { Fault } from '../../base/errors.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import type { Tx } from '../../database/sql.ts'

/** The purpose of a signature over the challenge. */
export type ChallengePurpose = 'register' | 'sign in' | 'verify'

/** How long a challenge is valid, in seconds. */
export const CHALLENGE_AGE_S = 300

const TIME_BYTES = 6
const RANDOM_BYTES = 16
const MAC_BYTES = 32

// The server recognizes its challenges without having stored them, so a stranger can fill no table
// with them. A key that is derived from APP_SECRET authenticates each one.

/**
 * Returns a new challenge in base64url for a purpose. `binding` is a session's uuid or a cookie's
 * secret.
 */
export function createChallenge(
  secrets: Pick<Secrets, 'derive'>,
  purpose: ChallengePurpose,
  binding: string,
): string {
  const expiresAt = Buffer.alloc(TIME_BYTES)
  expiresAt.writeUIntBE(Date.now() + CHALLENGE_AGE_S * 1000, 0, TIME_BYTES)
  const head = Buffer.concat([expiresAt, randomBytes(RANDOM_BYTES)])
  return Buffer.concat([head, sign(secrets, head, `${purpose} ${binding}`)]).toString('base64url')
}

/** Throws `conflict` unless a challenge was created for the same purpose and binding. */
export function checkChallenge(
  secrets: Pick<Secrets, 'derive'>,
  challenge: string,
  { purpose, binding }: { purpose: ChallengePurpose; binding: string },
): void {
  const bytes = Buffer.from(challenge, 'base64url')
  const head = bytes.subarray(0, TIME_BYTES + RANDOM_BYTES)
  const mac = bytes.subarray(head.length)
  const isOurs =
    mac.length === MAC_BYTES && timingSafeEqual(mac, sign(secrets, head, `${purpose} ${binding}`))
  if (!isOurs || head.readUIntBE(0, TIME_BYTES) < Date.now()) throw challengeEnded()
}

function sign(secrets: Pick<Secrets, 'derive'>, head: Buffer, subject: string): Buffer {
  const key = secrets.derive('passkey challenges')
  return createHmac('sha256', key).update(head).update(subject).digest()
}

/** Marks a checked challenge as used. Throws `conflict` if it was used before. */
export async function useChallenge(tx: Tx, challenge: string): Promise<void> {
  const hash = createHash('sha256').update(Buffer.from(challenge, 'base64url')).digest('hex')
  const used = await tx`
    insert into used_challenges (hash, expires_at)
    values (decode(${hash}, 'hex'), now() + make_interval(secs => ${CHALLENGE_AGE_S}))
    on conflict do nothing
  `
  if (used.count === 0) throw challengeEnded()
}

function challengeEnded(): Fault {
  return new Fault(
    'conflict',
    'This request to the passkey has expired or was already used. Try again.',
  )
}
