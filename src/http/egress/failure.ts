import { LOOKUP_FAILED } from './lookup.ts'
import { NOT_PUBLIC_MESSAGE } from './guard.ts'
import { PROXY_FAILED, PROXY_REFUSED } from './proxy.ts'

/**
 * The reason why a request got no response. `busy`: too many requests of the share. `proxy`: the
 * proxy of this server failed. `cancelled`: the caller aborted it.
 */
export type EgressError =
  | 'refused'
  | 'dns'
  | 'connect'
  | 'tls'
  | 'timeout'
  | 'reset'
  | 'protocol'
  | 'busy'
  | 'proxy'
  | 'cancelled'

/** Fixed texts, because the messages of a runtime contain addresses of the internal network. */
const MESSAGES: Record<EgressError, string> = {
  refused: NOT_PUBLIC_MESSAGE,
  dns: 'The host name has no address, or one that is not public. An operator of the server can allow private networks with EGRESS_ALLOW_CIDRS',
  connect: 'No connection could be made to this address',
  tls: 'The TLS handshake failed. Check the certificate',
  timeout: 'There was no response in time',
  reset: 'The connection was closed before a response arrived',
  protocol: 'The response is not valid HTTP, or its header is too long',
  busy: 'Too many requests are in progress',
  proxy: 'The proxy of this server cannot be reached, or refuses this server (EGRESS_PROXY)',
  cancelled: 'The request was cancelled',
}

const CONNECT = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'EADDRNOTAVAIL',
  'ETIMEDOUT',
  'EACCES',
  'EPERM',
  'ConnectionRefused',
  'FailedToOpenSocket',
])
const TLS = /^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_MISMATCH|EPROTO)/
const TLS_TEXT = /certificate|\bTLS\b|\bSSL\b|handshake/i

const LONGEST_RETRY_MS = 24 * 3_600_000
// The preferred format of RFC 9110. Servers no longer send the other two.
const HTTP_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/

export function toEgressMessage(error: EgressError): string {
  return MESSAGES[error]
}

/** Classifies an error of the HTTP client of Bun, Node or Deno. */
export function toEgressError(error: unknown): EgressError {
  const { code = '', message = '' } = error as { code?: unknown; message?: string }
  const text = String(code)
  if (text === LOOKUP_FAILED) return 'dns'
  if (text === PROXY_FAILED) return 'proxy'
  if (text === PROXY_REFUSED || CONNECT.has(text)) return 'connect'
  if (TLS.test(text)) return 'tls'
  if (text.startsWith('HPE_')) return 'protocol'
  return TLS_TEXT.test(message) ? 'tls' : 'reset'
}

/**
 * Returns the delay that a Retry-After header asks for, in ms, at most 24 hours. Undefined unless
 * it is a number of seconds or a date.
 */
export function parseRetryAfter(text: string | undefined, nowMs: number): number | undefined {
  const value = text?.trim() ?? ''
  const ms = /^\d{1,12}(\.\d+)?$/.test(value)
    ? Math.ceil(Number(value) * 1_000)
    : (parseHttpDate(value) ?? NaN) - nowMs
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), LONGEST_RETRY_MS)
}

/** Returns the time of a Date header, in ms since 1970; undefined if it has another format. */
export function parseHttpDate(text: string | undefined): number | undefined {
  const value = text?.trim() ?? ''
  return HTTP_DATE.test(value) ? Date.parse(value) : undefined
}
