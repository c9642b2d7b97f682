import { VERSION } from '../../base/version.ts'

/** A request to one origin. A GET request without a body has no Content-Length. */
export interface RequestParts {
  method?: 'GET' | 'POST'
  /** Names that the client sets itself are refused: see `OWN_HEADERS`. */
  headers?: Readonly<Record<string, string>>
  body?: string | Uint8Array
}

/**
 * The headers that frame a request or name its connection, and those that this client sets. A
 * second line with such a name makes strict servers respond with 400, or hides a second request.
 */
const OWN_HEADERS = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'te',
  'trailer',
  'connection',
  'keep-alive',
  'proxy-connection',
  'upgrade',
  'expect',
  'user-agent',
  'accept-encoding',
])
const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/
const NOT_PRINTABLE = /[^\t\x20-\x7e]/

/**
 * Returns the bytes of a request, so that one write sends them. Throws a TypeError for a header
 * that the client sets itself, and for an invalid or repeated one.
 */
export function toRequestBytes(
  url: URL,
  { method = 'POST', headers = {}, body = '' }: RequestParts,
): string | Uint8Array {
  const isText = typeof body === 'string'
  const length = isText ? Buffer.byteLength(body) : body.length
  let head =
    `${method} ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\n` +
    `User-Agent: Tidings/${VERSION}\r\nAccept-Encoding: identity\r\n`
  const names = new Set<string>()
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase()
    if (names.has(lower)) throw new TypeError(`The header ${name} is repeated`)
    const problem = findHeaderProblem(name, value)
    if (problem !== undefined) throw new TypeError(problem)
    names.add(lower)
    head += `${name}: ${value}\r\n`
  }
  if (method === 'POST' || length > 0) head += `Content-Length: ${length}\r\n`
  head += '\r\n'
  return isText ? head + body : Buffer.concat([Buffer.from(head), body])
}

/** Returns why a header cannot be sent, as a sentence; undefined if it can. */
export function findHeaderProblem(name: string, value: string): string | undefined {
  if (OWN_HEADERS.has(name.toLowerCase())) return `The client itself sets the header ${name}`
  if (!TOKEN.test(name)) return `The header ${name} has an invalid name`
  // A line break would begin another field or the body.
  return NOT_PRINTABLE.test(value) ? `The header ${name} has an invalid value` : undefined
}
