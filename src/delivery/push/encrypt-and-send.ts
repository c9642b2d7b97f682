import webPush from 'web-push'
import { createBatcher } from '../../database/batch.ts'
import type { Pool } from '../../database/pool.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import type { Egress, EgressResult } from '../../http/egress/egress.ts'
import { parseEndpoint, type PushAddress } from './address.ts'
import { toPushOutcome, type PushOutcome } from './outcome.ts'
import { toShortMessage, type PushMessage } from './payload.ts'
import { createVapidTokenCache, ensureVapidKey, getVapidSigner } from './vapid.ts'

/** The timeout of one request to a push service. */
export const PUSH_TIMEOUT_MS = 10_000
/** How long a push waits for the body of a response. The outcome is known from the status. */
const MAX_BODY_MS = 1_000
const MAX_KEYS = 5_000

export interface PushParts {
  pool: Pool
  secrets: Secrets
  egress: Egress
  /** Additional hosts of push services, as `host` or `host:port`. */
  pushHosts: readonly string[]
  /**
   * The contact of this installation for push services. If undefined, it is the e-mail address of
   * the operator.
   */
  vapidSubject: string | undefined
}

interface Push {
  address: PushAddress
  message: PushMessage
  /** How long the push service keeps an undelivered push. */
  ttlS: number
  /** The current time, by the clock of the database. */
  nowMs: number
  /** For whom it is sent: the share of the connections to the push service. */
  share: string | undefined
  /** True if a person waits for it. */
  isAwaited?: boolean
  signal?: AbortSignal | undefined
  begin?: (() => boolean) | undefined
}

/** The outcome of a push. `response` is undefined if no request was made. */
export interface PushResult {
  outcome: PushOutcome
  response: EgressResult | undefined
}

/**
 * A client that encrypts pushes, signs them with the VAPID key of this installation, and sends
 * them.
 */
export interface PushClient {
  push(push: Push): Promise<PushResult>
}

export function createPushClient(parts: PushParts): PushClient {
  const { pool, secrets, egress, pushHosts, vapidSubject } = parts
  const tokens = createVapidTokenCache()
  // Concurrent pushes share one read of the key.
  const keys = createBatcher({
    async run(waiting: undefined[]) {
      const { id } = await pool.run(sql => ensureVapidKey(sql, secrets))
      return waiting.map(() => id)
    },
    toResult: id => id,
    maxJobs: MAX_KEYS,
  })

  /** Returns the Authorization header for a push service; undefined without a contact. */
  async function authorize(
    id: string,
    { origin, nowMs }: { origin: string; nowMs: number },
  ): Promise<string | undefined> {
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
    const { address, ttlS, nowMs, share, isAwaited, signal, begin } = push
    const { headers, body } = encryptPush(address, message, ttlS)
    const response = await egress.send({
      url: address.endpoint,
      body,
      headers: { ...headers, Authorization: authorization },
      timeoutMs: PUSH_TIMEOUT_MS,
      maxBodyMs: MAX_BODY_MS,
      share,
      isAwaited,
      signal,
      begin,
    })
    return { outcome: toPushOutcome(response, nowMs), response }
  }

  return {
    async push(push) {
      // PUSH_HOSTS may have changed since the browser subscribed.
      const url = parseEndpoint(push.address.endpoint, pushHosts)
      if (!url) {
        const reason = 'This server does not know the push service. Add its host to PUSH_HOSTS'
        return { outcome: { kind: 'failed', reason }, response: undefined }
      }
      const { origin } = url
      const keyId = await keys.add(undefined)
      const authorization = await authorize(keyId, { origin, nowMs: push.nowMs })
      if (authorization === undefined) {
        const reason =
          'Push services require a contact. Set VAPID_SUBJECT to a mailto: or https: address'
        return { outcome: { kind: 'unsent', reason }, response: undefined }
      }
      const pushed = await send(push, push.message, authorization)
      if (pushed.outcome.kind === 'refused') tokens.forget(keyId, origin)
      if (pushed.outcome.kind !== 'too large') return pushed
      return send(push, toShortMessage(push.message), authorization)
    },
  }
}

/**
 * Encrypts a message as one record of RFC 8188. The headers are those of RFC 8030, without
 * Content-Length, which the HTTP client sets.
 */
export function encryptPush(
  { endpoint, p256dh, auth }: PushAddress,
  { payload, topic, urgency }: PushMessage,
  ttlS: number,
): { headers: Record<string, string>; body: Uint8Array } {
  const { body } = webPush.generateRequestDetails({ endpoint, keys: { p256dh, auth } }, payload, {
    contentEncoding: 'aes128gcm',
    // Null, which the types do not allow, leaves out the signature. We sign once for 11 hours
    // instead.
    vapidDetails: null as never,
  })
  const headers = {
    TTL: String(ttlS),
    Urgency: urgency,
    Topic: topic,
    'Content-Type': 'application/octet-stream',
    'Content-Encoding': 'aes128gcm',
  }
  return { headers, body }
}
