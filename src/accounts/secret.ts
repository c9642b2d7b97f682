import { createHash, randomBytes } from 'node:crypto'

const SHAPE = /^[\w-]{22,86}$/

/** A new random secret for a cookie or a link, as URL-safe text. */
export function newSecret(bits: 128 | 256): string {
  return randomBytes(bits / 8).toString('base64url')
}

/** Whether `text` can be such a secret at all. */
export function isSecret(text: string): boolean {
  return SHAPE.test(text)
}

/** SHA-256 in hex, which is all that is kept: a random secret has entropy enough to need nothing slower. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}
