import { Webhook } from 'standardwebhooks'

/** What a receiver got. */
export interface Signed {
  body: string
  id: string
  timestamp: string
  signature: string
}

const TOLERANCE_S = 5 * 60

/** Why a receiver should refuse a message, as a sentence; undefined when it is genuine and fresh. */
export function findForgery(
  { body, id, timestamp, signature }: Signed,
  secret: string,
  nowMs: number,
): string | undefined {
  if (!/^\d{1,12}$/.test(timestamp)) return 'webhook-timestamp must be in Unix seconds'
  let expected: string
  try {
    expected = new Webhook(secret).sign(id, new Date(Number(timestamp) * 1000), body)
  } catch {
    return 'The secret is none: it looks like whsec_…'
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
