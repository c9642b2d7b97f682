import { realpathSync } from 'node:fs'
import ipaddr from 'ipaddr.js'
import { isDatabaseUrl } from '../database-url.ts'
import { LOG_FORMATS, LOG_LEVELS, type LogFormat } from '../log.ts'
import { isTimeZone } from '../zone-rules.ts'

// Parsers of configuration values. Each returns undefined for an invalid text.

/** Returns a parser of whole numbers from `min` to `max`. */
export function wholeNumber(min: number, max: number): (text: string) => number | undefined {
  return text => {
    const isShort = text.length <= String(max).length
    const number = isShort && /^\d+$/.test(text) ? Number(text) : NaN
    return number >= min && number <= max ? number : undefined
  }
}

export const toPort = wholeNumber(0, 65_535)
export const toQuota = wholeNumber(1, 1e15)
export const toKeep = wholeNumber(1, 1_000)

/** Parses a time of day like 03:15. */
export function toTimeOfDay(text: string): { hour: number; minute: number } | undefined {
  const [, hour, minute] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? []
  return hour === undefined ? undefined : { hour: Number(hour), minute: Number(minute) }
}

export const MIN_PASSPHRASE = 12

/** Accepts the passphrase of backups. */
export function toPassphrase(text: string): string | undefined {
  return [...text].length >= MIN_PASSPHRASE ? text : undefined
}

/** Matches what a compiler builds for, such as x86_64-conda-linux-gnu. It is no host. */
export const IS_TARGET = /-(linux-(gnu|musl)\w*|apple-darwin[\d.]*)$/

export function toHost(text: string): string | undefined {
  return /^[0-9A-Za-z.:_-]+$/.test(text) && !IS_TARGET.test(text) ? text : undefined
}

/** Accepts 16 to 512 visible ASCII characters. */
export function toBearerToken(text: string): string | undefined {
  return /^[!-~]{16,512}$/.test(text) ? text : undefined
}

export function toHeaderName(text: string): string | undefined {
  return /^[A-Za-z][\w-]{0,99}$/.test(text) ? text.toLowerCase() : undefined
}

export function toSwitch(text: string): boolean | undefined {
  return /^(on|true)$/i.test(text) ? true : /^(off|false)$/i.test(text) ? false : undefined
}

/** Parses e-mail addresses and mailto:, tel: and https: URIs. Returns URIs. */
export function toContacts(text: string): string[] | undefined {
  const contacts = toParts(text).map(part => {
    if (parseEmail(part) !== undefined) return `mailto:${part}`
    const isUri = URL.canParse(part) && /^(https:\/\/|mailto:.+@|tel:\+?\d)[!-~]+$/.test(part)
    return isUri ? part : undefined
  })
  return contacts.every(contact => contact !== undefined) ? contacts : undefined
}

/** Returns the URL without a trailing slash. */
export function toBaseUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  if (!/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
    return undefined
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
}

/** Returns an http or https URL without a password. */
export function toWebUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  return /^https?:$/.test(url.protocol) && !url.username && !url.password ? url.href : undefined
}

export function toDatabaseUrl(text: string): string | undefined {
  return isDatabaseUrl(text) ? text : undefined
}

export function toNetworks(text: string): string[] | undefined {
  const full = toParts(text).map(part =>
    part.includes('/') ? part : `${part}/${part.includes(':') ? 128 : 32}`,
  )
  return full.every(network => ipaddr.isValidCIDR(network)) ? full : undefined
}

/** Returns the hosts as the URL parser normalizes them. */
export function toHosts(text: string): string[] | undefined {
  const urls = toParts(text).map(host =>
    URL.canParse(`https://${host}`) ? new URL(`https://${host}`) : undefined,
  )
  const isBare = (url: URL | undefined) => url !== undefined && url.href === `${url.origin}/`
  return urls.every(isBare) ? urls.map(url => url?.host ?? '') : undefined
}

export function toSecrets(text: string): Buffer[] | undefined {
  const secrets = text.split(',').map(part => parseAppSecret(part.trim()))
  const known = secrets.filter(secret => secret !== undefined)
  return known.length === secrets.length ? known : undefined
}

export function toLogLevel(text: string): (typeof LOG_LEVELS)[number] | undefined {
  return LOG_LEVELS.find(level => level === text.toLowerCase())
}

export function toLogFormat(text: string): LogFormat | undefined {
  return LOG_FORMATS.find(format => format === text.toLowerCase())
}

/** Splits a list at its commas. Returns the trimmed parts, without empty ones. */
export function toParts(text: string): string[] {
  return text
    .split(',')
    .map(part => part.trim())
    .filter(part => part !== '')
}

const APP_SECRET_BYTES = 32

/** Parses 32 bytes in hex, or in base64, URL-safe or not. */
export function parseAppSecret(text: string): Buffer | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex')
  if (!/^[\w+/-]{43}=?$/.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64')
  return bytes.length === APP_SECRET_BYTES ? bytes : undefined
}

const MAIL = /^mailto:[^\s@:/?#<>]+@((?:[\w-]+\.)+[\w-]{2,})$/
/** Names that lead nowhere on the Internet: RFC 6761, 6762 and 8375, and customary ones. */
const LOCAL_NAME = /(^|\.)(localhost|local|internal|lan|home\.arpa|invalid)\.?$/i

/**
 * Parses the contact for push services: a mailto: or https: address. Apple refuses addresses that
 * are not reachable from the Internet, so they are invalid here.
 */
export function parseVapidSubject(text: string): string | undefined {
  if (text.length > 255) return undefined
  const [, mailHost] = MAIL.exec(text) ?? []
  if (mailHost !== undefined) return LOCAL_NAME.test(mailHost) ? undefined : text
  // A URL parser would encode spaces, and remove those at the ends.
  if (/\s/.test(text) || !URL.canParse(text)) return undefined
  const { protocol, hostname, username, password } = new URL(text)
  const isPublicName = /\.[a-z][a-z0-9-]*\.?$/i.test(hostname) && !LOCAL_NAME.test(hostname)
  return protocol === 'https:' && isPublicName && username === '' && password === ''
    ? text
    : undefined
}

const MAX_EMAIL = 254
// ASCII only, so that addresses that look alike are equal, and lower case is unambiguous. It is
// checked before: the lower case of the Kelvin sign is the letter k.
const EMAIL = /^[!-?A-~]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*$/

/** Parses an e-mail address. Returns it as it is stored and compared: trimmed, in lower case. */
export function parseEmail(text: string): string | undefined {
  const email = text.trim()
  return email.length <= MAX_EMAIL && EMAIL.test(email) ? email.toLowerCase() : undefined
}

/**
 * Returns the name of the zone in a value of TZ, as a runtime knows it. The C library also takes
 * files, such as `:/etc/localtime`, which a runtime reads as UTC. Returns undefined for a value
 * that it would read as UTC, too.
 */
export function toTimeZone(
  text: string,
  resolve: (path: string) => string = realpathSync,
): string | undefined {
  const name = text.replace(/^:/, '')
  const zone = name.startsWith('/') ? toZoneOfFile(name, resolve) : name
  if (zone === undefined || /^(UTC|GMT)-?0$/.test(zone)) return zone && 'UTC'
  // An offset is a zone of `Intl`, but none of TZ.
  return isTimeZone(zone) ? zone : undefined
}

function toZoneOfFile(file: string, resolve: (path: string) => string): string | undefined {
  try {
    return /\/zoneinfo\/(?:posix\/)?(.+)$/.exec(resolve(file))?.[1]
  } catch {
    return undefined
  }
}
