import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'
import { toReason } from '../../base/errors.ts'
import { logger } from '../../base/log.ts'

const log = logger('egress')
const REFRESH_MS = 5_000

/** Returns true if a request may be sent to an address. */
export type AddressGuard = (address: string) => boolean

/** The range of public IPv6 addresses. `range()` of ipaddr.js excludes its reserved parts. */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * The wire server of Azure, which gives a machine its keys. The services of other clouds have
 * addresses that are not public by their range.
 */
const AZURE_WIRE_SERVER = '168.63.129.16'

/**
 * Prefixes of IPv6 addresses that a gateway translates to IPv4, and the place of the IPv4 address:
 * NAT64 (RFC 6052, RFC 8215) and 6to4 (RFC 3056).
 */
const TRANSLATED = [
  { network: ipaddr.IPv6.parseCIDR('64:ff9b::/96'), at: 12 },
  { network: ipaddr.IPv6.parseCIDR('64:ff9b:1::/48'), at: 12 },
  { network: ipaddr.IPv6.parseCIDR('2002::/16'), at: 2 },
]

/**
 * Creates a guard that allows public addresses except those of this machine, and the addresses in
 * `allowCidrs`. An IPv4-mapped IPv6 address is checked as the IPv4 address. IPv6 addresses that a
 * gateway translates to IPv4 are not public. If `allowCidrs` has one, its IPv4 address must be
 * allowed, too.
 */
export function createAddressGuard(
  allowCidrs: readonly string[],
  isOwn: OwnAddresses = createOwnAddresses(),
): AddressGuard {
  const allowed = allowCidrs.map(cidr => ipaddr.parseCIDR(cidr))

  function isAllowed(address: Address): boolean {
    if (allowed.some(network => isWithin(address, network))) {
      const translated = toTranslated(address)
      return translated === undefined || isAllowed(translated)
    }
    return isPublic(address) && !isOwn(address.toString())
  }

  return text => {
    // A zone, as in `fe80::1%eth0`, names an interface of this machine.
    if (isIP(text) === 0 || text.includes('%')) return false
    return isAllowed(ipaddr.process(text))
  }
}

/** Returns true for an address of this machine, in the spelling of `toString` of ipaddr.js. */
type OwnAddresses = (address: string) => boolean

/** Creates a check that reads the addresses of this machine, and keeps them for 5 s. */
export function createOwnAddresses(list: () => string[] = listInterfaces): OwnAddresses {
  let addresses = new Set<string>()
  let readMs = -Infinity
  return address => {
    const nowMs = performance.now()
    if (nowMs - readMs >= REFRESH_MS) {
      readMs = nowMs
      try {
        addresses = new Set(list().map(normalize))
      } catch (error) {
        log.warning('The addresses of this machine cannot be read: {reason}', {
          reason: toReason(error),
        })
      }
    }
    return addresses.has(address)
  }
}

function listInterfaces(): string[] {
  return Object.values(networkInterfaces()).flatMap(all => all?.map(({ address }) => address) ?? [])
}

/** A zone, as in `fe80::1%eth0`, is no part of the address. */
function normalize(address: string): string {
  const bare = address.replace(/%.*$/, '')
  return ipaddr.isValid(bare) ? ipaddr.process(bare).toString() : bare
}

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** Returns the IPv4 address that a gateway makes of an address, if it is one of `TRANSLATED`. */
function toTranslated(address: Address): ipaddr.IPv4 | undefined {
  const prefix = TRANSLATED.find(({ network }) => isWithin(address, network))
  return prefix && new ipaddr.IPv4(address.toByteArray().slice(prefix.at, prefix.at + 4))
}

function isPublic(address: Address): boolean {
  if (address.range() !== 'unicast' || address.toString() === AZURE_WIRE_SERVER) return false
  return address instanceof ipaddr.IPv4 || address.match(GLOBAL_IPV6)
}

function isWithin(address: Address, [network, bits]: [Address, number]): boolean {
  return address.kind() === network.kind() && address.match([network, bits] as [never, number])
}

/** A URL that may be requested, provided that the addresses of its host are allowed. */
export interface CheckedUrl {
  url: URL
  /** A name, or an address without brackets. */
  host: string
  port: number
  isSecure: boolean
}

/** The reason why a URL is refused, as a sentence for people. */
interface Refusal {
  problem: string
}

/** The longest URL, as it is sent. */
export const MAX_URL_LENGTH = 2048
/** The longest name and the longest part of a name in DNS (RFC 1035). */
const MAX_HOST = 253
const LONG_LABEL = /[^.]{64}/
export const NOT_PUBLIC_MESSAGE =
  'The URL must lead to a public address. An operator of the server can allow further networks with EGRESS_ALLOW_CIDRS'

/**
 * The ports that browsers refuse to fetch from, because other protocols use them ("bad port" in the
 * Fetch standard).
 */
const BAD_PORTS = new Set([
  0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102,
  103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465,
  512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993,
  995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668,
  6669, 6679, 6697, 10080,
])

/** Checks a URL that a member or a browser entered, before its host name is resolved. */
export function parseEgressUrl(text: string, isAllowed: AddressGuard): CheckedUrl | Refusal {
  const url = URL.parse(text)
  if (!url) return toRefusal('The URL must look like https://example.com/hooks')
  // It is not sent.
  url.hash = ''
  const { length } = url.href
  if (length > MAX_URL_LENGTH) {
    const encoded = length > text.length ? '. A letter such as ü is sent as %C3%BC' : ''
    return toRefusal(
      `The URL must have at most ${MAX_URL_LENGTH} characters, and is sent as ${length}${encoded}`,
    )
  }
  const isSecure = url.protocol === 'https:'
  if (!isSecure && url.protocol !== 'http:')
    return toRefusal('The URL must begin with https:// or http://')
  if (url.username !== '' || url.password !== '') {
    return toRefusal(
      'The URL must not contain a user name or password. Put a token into the path or query',
    )
  }
  const port = url.port === '' ? (isSecure ? 443 : 80) : Number(url.port)
  if (BAD_PORTS.has(port))
    return toRefusal(`The URL must not use port ${port}, which belongs to another protocol`)
  // The URL parser has already normalized spellings such as 127.1, 2130706433 and ①②⑦.⓪.⓪.①.
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (host === '') return toRefusal('The URL must have a host')
  if (host.length > MAX_HOST || LONG_LABEL.test(host))
    return toRefusal('The host of the URL is too long. No such name can exist')
  if (isIP(host) !== 0 && !isAllowed(host)) return toRefusal(NOT_PUBLIC_MESSAGE)
  return { url, host, port, isSecure }
}

function toRefusal(problem: string): Refusal {
  return { problem }
}
