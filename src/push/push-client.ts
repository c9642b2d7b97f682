import webPush from 'web-push'
import { createBatcher } from '../db/batch.ts'
import type { Pool } from '../db/pool.ts'
import type { Egress, EgressResult } from '../egress/egress.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { parseEndpoint, type PushAddress } from './address.ts'
import { toPushOutcome, type PushOutcome } from './outcome.ts'
import { toShortMessage, type PushMessage } from './payload.ts'
import { createVapidTokenCache, ensureVapidKey, getVapidSigner } from './vapid.ts'

/** For one request to a push service. */
export const PUSH_TIMEOUT_MS = 10_000
const MAX_WAITING = 5_000

export interface PushParts {
  pool: Pool
  secrets: Secrets
  egress: Egress
  /** Hosts of push services besides those of the browsers, as `host` or `host:port`. */
  pushHosts: readonly string[]
  /** The contact of this installation for push services; undefined for the operator's e-mail. */
  vapidSubject: string | undefined
}

interface Push {
  address: PushAddress
  message: PushMessage
  /** How long the push service keeps it. */
  ttlS: number
  /** By the clock of the database. */
  nowMs: number
  signal?: AbortSignal | undefined
}

/** The outcome of a push; `answer` is undefined where no request was made. */
export interface PushResult {
  outcome: PushOutcome
  response: EgressResult | undefined
}

/** Encrypts pushes, signs them with the VAPID key of this installation, and sends them. */
export interface PushClient {
  push(push: Push): Promise<PushResult>
}

export function createPushClient(parts: PushParts): PushClient {
  const { pool, secrets, egress, pushHosts, vapidSubject } = parts
  const tokens = createVapidTokenCache()
  // Read once for all pushes of a moment.
  const keys = createBatcher({
    async run(waiting: undefined[]) {
      const { id } = await pool.run(sql => ensureVapidKey(sql, secrets))
      return waiting.map(() => id)
    },
    toResult: id => id,
    maxJobs: MAX_WAITING,
    maxWaiting: MAX_WAITING,
  })

  /** Returns the Authorization header for a push service; undefined without a contact. */
  async function authorize(origin: string, nowMs: number): Promise<string | undefined> {
    const id = await keys.add(undefined)
    const known = tokens.find(id, origin, nowMs)
    if (known !== undefined) return known
    const { pair, subject } = await pool.run(sql => getVapidSigner(sql, secrets, vapidSubject))
    return subject === undefined ? undefined : tokens.make(pair, { origin, subject, nowMs })
  }

  async function send(
    push: Push,
    message: PushMessage,
    authorization: string,
  ): Promise<PushResult> {
    const { address, ttlS, nowMs, signal } = push
    const { headers, body } = encryptPush(address, message, ttlS)
    const answer = await egress.send({
      url: address.endpoint,
      body,
      headers: { ...headers, Authorization: authorization },
      timeoutMs: PUSH_TIMEOUT_MS,
      signal,
    })
    return { outcome: toPushOutcome(answer, nowMs), response: answer }
  }

  return {
    async push(push) {
      // PUSH_HOSTS may have changed since the browser subscribed.
      const url = parseEndpoint(push.address.endpoint, pushHosts)
      if (!url) {
        const reason = 'Its push service is none that this server knows: see PUSH_HOSTS'
        return { outcome: { kind: 'failed', reason }, response: undefined }
      }
      const authorization = await authorize(url.origin, push.nowMs)
      if (authorization === undefined) {
        const reason =
          'Push services ask who answers for this server: set VAPID_SUBJECT to a mailto: or https: address'
        return { outcome: { kind: 'busy', reason, afterMs: undefined }, response: undefined }
      }
      const pushed = await send(push, push.message, authorization)
      if (pushed.outcome.kind !== 'too large') return pushed
      return send(push, toShortMessage(push.message), authorization)
    },
  }
}

/** Encrypts a message as one record of RFC 8188; the headers are those of RFC 8030. */
export function encryptPush(
  { endpoint, p256dh, auth }: PushAddress,
  { payload, topic }: PushMessage,
  ttlS: number,
): { headers: Record<string, string>; body: Uint8Array } {
  const details = webPush.generateRequestDetails({ endpoint, keys: { p256dh, auth } }, payload, {
    TTL: ttlS,
    urgency: 'high',
    topic,
    contentEncoding: 'aes128gcm',
    // A falsy value, which the types do not allow, leaves out the signature: ours is kept for 11 hours.
    vapidDetails: null as never,
  })
  const headers = Object.entries(details.headers).map(([name, value]) => [name, String(value)])
  return { headers: Object.fromEntries(headers) as Record<string, string>, body: details.body }
}
