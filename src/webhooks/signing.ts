import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'

/** The media type of every body. */
export const CONTENT_TYPE = 'application/json'
const TOLERANCE_S = 5 * 60

/** A new signing secret: `whsec_` and 32 random bytes in base64. */
export function newSigningSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

export interface WebhookMessage {
  /** The same in every attempt, and when it is sent again. */
  id: string
  /** Of the attempt, in ms since 1970. */
  timestampMs: number
  body: string
}

/** The headers of Standard Webhooks, with a signature by each secret. */
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

/** A message as it has arrived, with the values of its headers. */
export interface SignedMessage {
  body: string
  id: string
  timestamp: string
  signature: string
}

/** Why the endpoint should refuse a message, as a sentence; undefined when it is genuine and fresh. */
export function findSignatureProblem(
  { body, id, timestamp, signature }: SignedMessage,
  secret: string,
  nowMs: number,
): string | undefined {
  if (!/^\d{1,12}$/.test(timestamp)) return 'webhook-timestamp must be in Unix seconds'
  let expected: string
  try {
    expected = new Webhook(secret).sign(id, new Date(Number(timestamp) * 1000), body)
  } catch {
    return 'The secret is invalid: it looks like whsec_…'
  }
  if (!signature.split(' ').includes(expected)) {
    return (
      'No signature is by this secret, for this id, timestamp and body. The body must be what arrived, byte for byte: ' +
      'not parsed and written again, and without a line break at its end'
    )
  }
  const lateS = Math.round(nowMs / 1000) - Number(timestamp)
  if (Math.abs(lateS) <= TOLERANCE_S) return undefined
  return `The signature is right, but the message is ${Math.abs(lateS)} s ${lateS > 0 ? 'old' : 'ahead'}: receivers refuse more than ${TOLERANCE_S} s`
}
