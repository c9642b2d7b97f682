import { isIP } from 'node:net'
import type { AddressGuard } from './addresses.ts'

/** Where a request goes, as far as its URL alone tells that it may. */
export interface Target {
  url: URL
  /** A name, or an address without brackets. */
  host: string
  port: number
  isSecure: boolean
}

/** Why a URL is refused, for the person who wrote it. */
export interface Refusal {
  problem: string
}

const MAX_LENGTH = 2048
export const NOT_PUBLIC =
  'It must lead to a public address: those of private networks and of this machine are refused'

/** The ports that browsers refuse to fetch from (the Fetch standard's «bad port»): what listens there is no HTTP. */
const BAD_PORTS = new Set([
  0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102,
  103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465,
  512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993,
  995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668,
  6669, 6679, 6697, 10080,
])

/** Reads a URL that a person wrote. A name in it is still to be resolved, and its addresses to be judged. */
export function parseTarget(text: string, isAllowed: AddressGuard): Target | Refusal {
  if (text.length > MAX_LENGTH) return refuse(`It must have at most ${MAX_LENGTH} characters`)
  if (!URL.canParse(text)) return refuse('It must be a URL like https://example.com/hooks')
  const url = new URL(text)
  const isSecure = url.protocol === 'https:'
  if (!isSecure && url.protocol !== 'http:') return refuse('It must begin with https:// or http://')
  if (url.username !== '' || url.password !== '') {
    return refuse('It must not have a user name or password: put a token into the path or query')
  }
  const port = url.port === '' ? (isSecure ? 443 : 80) : Number(url.port)
  if (BAD_PORTS.has(port)) return refuse(`Its port ${port} belongs to another protocol`)
  // Parsing has made one spelling out of 127.1, 2130706433 and ①②⑦.⓪.⓪.①.
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (host === '') return refuse('It must have a host')
  if (isIP(host) !== 0 && !isAllowed(host)) return refuse(NOT_PUBLIC)
  return { url, host, port, isSecure }
}

function refuse(problem: string): Refusal {
  return { problem }
}
