import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'

/** A new secret to sign with: `whsec_` and 32 random bytes in base64. */
export function newSigningSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

/** Of every body. */
export const CONTENT_TYPE = 'application/json'

export interface Message {
  /** The same in every attempt, and when it is sent again. */
  id: string
  /** Of the attempt, in ms since 1970. */
  timestampMs: number
  body: string
}

/** The headers of Standard Webhooks, with a signature by each secret. */
export function sign(
  { id, timestampMs, body }: Message,
  secrets: readonly string[],
): Record<string, string> {
  const at = new Date(timestampMs)
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(timestampMs / 1000)),
    'webhook-signature': secrets.map(secret => new Webhook(secret).sign(id, at, body)).join(' '),
  }
}
