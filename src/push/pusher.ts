import webPush from 'web-push'
import { createBatcher } from '../db/batch.ts'
import type { Pool } from '../db/pool.ts'
import type { Egress, EgressResult } from '../egress/egress.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { parseEndpoint } from './hosts.ts'
import { toShortMessage, type Message } from './payload.ts'
import type { Address } from './subscriptions.ts'
import { createTokens, ensureVapidKey, getSigner } from './vapid.ts'
import { toVerdict, type Verdict } from './verdict.ts'

/** For one request to a push service. */
export const PUSH_TIMEOUT_MS = 10_000
export const DAY_S = 86_400
const MAX_ASKING = 5_000

/** What pushes are made with. */
export interface PushParts {
  pool: Pool
  secrets: Secrets
  egress: Egress
  /** Hosts of push services besides those of the browsers, as `host` or `host:port`. */
  pushHosts: readonly string[]
  /** Who answers for what is pushed; undefined for the operator. */
  vapidSubject: string | undefined
}

export interface Push {
  address: Address
  message: Message
  /** For how long the push service keeps it. */
  ttlS: number
  /** By the clock of the database. */
  nowMs: number
  signal?: AbortSignal | undefined
}

/** What came of it; the answer is that of the push service, where there was one. */
export interface Pushed {
  verdict: Verdict
  answer: EgressResult | undefined
}

/** Sends what was encrypted for one browser, signed by the key of this installation. */
export interface Pusher {
  push(push: Push): Promise<Pushed>
}

export function createPusher(parts: PushParts): Pusher {
  const { pool, secrets, egress, pushHosts, vapidSubject } = parts
  const tokens = createTokens()
  // As of now, but once for all pushes of a moment.
  const keys = createBatcher({
    async run(asking: undefined[]) {
      const { id } = await pool.run(sql => ensureVapidKey(sql, secrets))
      return asking.map(() => id)
    },
    toResult: id => id,
    maxJobs: MAX_ASKING,
    maxWaiting: MAX_ASKING,
  })

  /** The Authorization for a push service; undefined where nobody answers for it. */
  async function authorize(origin: string, nowMs: number): Promise<string | undefined> {
    const id = await keys.add(undefined)
    const known = tokens.find(id, origin, nowMs)
    if (known !== undefined) return known
    const { pair, subject } = await pool.run(sql => getSigner(sql, secrets, vapidSubject))
    return subject === undefined ? undefined : tokens.make(pair, { origin, subject, nowMs })
  }

  async function send(push: Push, message: Message, authorization: string): Promise<Pushed> {
    const { address, ttlS, nowMs, signal } = push
    const { headers, body } = encrypt(address, message, ttlS)
    const answer = await egress.send({
      url: address.endpoint,
      body,
      headers: { ...headers, Authorization: authorization },
      timeoutMs: PUSH_TIMEOUT_MS,
      signal,
    })
    return { verdict: toVerdict(answer, nowMs), answer }
  }

  return {
    async push(push) {
      // What was allowed when it was saved need not be so today.
      const url = parseEndpoint(push.address.endpoint, pushHosts)
      if (!url) {
        const reason = 'Its push service is none that this server knows: see PUSH_HOSTS'
        return { verdict: { kind: 'failed', reason }, answer: undefined }
      }
      const authorization = await authorize(url.origin, push.nowMs)
      if (authorization === undefined) {
        const reason =
          'Push services ask who answers for this server: set VAPID_SUBJECT to a mailto: or https: address'
        return { verdict: { kind: 'busy', reason, afterMs: undefined }, answer: undefined }
      }
      const pushed = await send(push, push.message, authorization)
      if (pushed.verdict.kind !== 'too large') return pushed
      return send(push, toShortMessage(push.message), authorization)
    },
  }
}

/** One record of RFC 8188, and the headers of RFC 8030. */
export function encrypt(
  { endpoint, p256dh, auth }: Address,
  { payload, topic }: Message,
  ttlS: number,
): { headers: Record<string, string>; body: Uint8Array } {
  const details = webPush.generateRequestDetails({ endpoint, keys: { p256dh, auth } }, payload, {
    TTL: ttlS,
    urgency: 'high',
    topic,
    contentEncoding: 'aes128gcm',
    // A falsy one leaves the signature out, which we keep for 11 hours instead of making it anew: its types do not know.
    vapidDetails: null as never,
  })
  const headers = Object.entries(details.headers).map(([name, value]) => [name, String(value)])
  return { headers: Object.fromEntries(headers) as Record<string, string>, body: details.body }
}
