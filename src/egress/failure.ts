import { LOOKUP_NOT_FOUND, LOOKUP_REFUSED } from './lookup.ts'
import { NOT_PUBLIC_MESSAGE } from './guard.ts'

/** Why a request got no answer. `busy` means too many requests to the host, `cancelled` that the caller gave up. */
export type EgressError =
  'refused' | 'dns' | 'connect' | 'tls' | 'timeout' | 'reset' | 'protocol' | 'busy' | 'cancelled'

/** Our own words, because a runtime's messages name addresses, which would describe the network inside. */
const MESSAGES: Record<EgressError, string> = {
  refused: NOT_PUBLIC_MESSAGE,
  dns: 'Its host name cannot be resolved',
  connect: 'Nothing answers at its address',
  tls: 'A secure connection cannot be made: check its certificate',
  timeout: 'It did not answer in time',
  reset: 'It closed the connection before it answered',
  protocol: 'It answered with something that is not HTTP, or too long a head',
  busy: 'Too many requests to this host are under way',
  cancelled: 'It was cancelled',
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
// The preferred format of RFC 9110; servers write no other one today.
const HTTP_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/

export function toEgressMessage(error: EgressError): string {
  return MESSAGES[error]
}

/** Classifies an error of a runtime's client. */
export function toEgressError(error: unknown): EgressError {
  const { code = '', message = '' } = error as { code?: unknown; message?: string }
  const text = String(code)
  if (text === LOOKUP_REFUSED) return 'refused'
  if (text === LOOKUP_NOT_FOUND) return 'dns'
  if (CONNECT.has(text)) return 'connect'
  if (TLS.test(text)) return 'tls'
  if (text.startsWith('HPE_')) return 'protocol'
  return TLS_TEXT.test(message) ? 'tls' : 'reset'
}

/** The wait that a Retry-After header asks for, in ms, at most 24 hours; undefined unless it is seconds or a date. */
export function parseRetryAfter(text: string | undefined, nowMs: number): number | undefined {
  const value = text?.trim() ?? ''
  const ms = /^\d{1,12}(\.\d+)?$/.test(value)
    ? Math.ceil(Number(value) * 1_000)
    : HTTP_DATE.test(value)
      ? Date.parse(value) - nowMs
      : NaN
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), LONGEST_RETRY_MS)
}
