import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'

/** The media type of every body. */
export const CONTENT_TYPE = 'application/json'
const TOLERANCE_S = 5 * 60

/** Returns a new signing secret: `whsec_` and 32 random bytes in base64. */
export function newSigningSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

export interface WebhookMessage {
  /** The same in every attempt, and when the event is sent again. */
  id: string
  /** The time of the attempt, in ms since 1970. */
  timestampMs: number
  body: string
}

/** Returns the headers of Standard Webhooks, with one signature for each secret. */
export function signMessage(
  { id, timestampMs, body }: WebhookMessage,
  secrets: readonly string[],
): Record<string, string> {
  const at = new Date(timestampMs)
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(timestampMs / 1000)),
    'webhook-signature': secrets.map(secret => new Webhook(secret).sign(id, at, body)).join(' '),
  }
}

/** A received message, with the values of its headers. */
export interface SignedMessage {
  body: string
  id: string
  timestamp: string
  signature: string
}

/**
 * Returns why an endpoint should refuse a message, as a sentence; undefined if it is authentic and
 * recent.
 */
export function findSignatureProblem(
  { body, id, timestamp, signature }: SignedMessage,
  secret: string,
  nowMs: number,
): string | undefined {
  if (!/^\d{1,12}$/.test(timestamp)) return 'webhook-timestamp must be a Unix time in seconds'
  let expected: string
  try {
    expected = new Webhook(secret).sign(id, new Date(Number(timestamp) * 1000), body)
  } catch {
    return 'The secret is invalid. A secret looks like whsec_…'
  }
  if (!signature.split(' ').includes(expected)) {
    return (
      'No signature matches this secret, id, timestamp and body. Verify the body exactly as it arrived: ' +
      'do not parse and serialize it, and do not add a line break at its end'
    )
  }
  const lateS = Math.round(nowMs / 1000) - Number(timestamp)
  if (Math.abs(lateS) <= TOLERANCE_S) return undefined
  return `The signature is valid, but the timestamp is ${Math.abs(lateS)} s ${lateS > 0 ? 'old' : 'in the future'}. Receivers allow at most ${TOLERANCE_S} s`
}
