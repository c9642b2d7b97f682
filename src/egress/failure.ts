import { NOT_FOUND, REFUSED } from './lookup.ts'
import { NOT_PUBLIC } from './target.ts'

/**
 * What kept a request from an answer: its URL or address is refused, the name is unknown, nobody listens, TLS, it took
 * too long, the connection broke, the answer is no HTTP, too many others are under way to the host, or the caller gave up.
 */
export type EgressError =
  'refused' | 'dns' | 'connect' | 'tls' | 'timeout' | 'reset' | 'protocol' | 'busy' | 'cancelled'

/** In our own words: what the runtime says names addresses, and would tell what a network looks like inside. */
const MESSAGES: Record<EgressError, string> = {
  refused: NOT_PUBLIC,
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

export function toMessage(error: EgressError): string {
  return MESSAGES[error]
}

/** The kind of what a runtime's client failed with. */
export function toEgressError(error: unknown): EgressError {
  const { code = '', message = '' } = error as { code?: unknown; message?: string }
  const text = String(code)
  if (text === REFUSED) return 'refused'
  if (text === NOT_FOUND) return 'dns'
  if (CONNECT.has(text)) return 'connect'
  if (TLS.test(text)) return 'tls'
  if (text.startsWith('HPE_')) return 'protocol'
  return TLS_TEXT.test(message) ? 'tls' : 'reset'
}
