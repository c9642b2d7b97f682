// What the variables of the configuration may say: each reads one from its text, undefined for what it cannot be.

import ipaddr from 'ipaddr.js'
import { parseAppSecret } from './app-secret.ts'
import { LOG_LEVELS } from '../log.ts'

const MAX_WORKERS = 16

export function toPort(text: string): number | undefined {
  return /^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined
}

export function toWorkers(text: string): number | undefined {
  const workers = /^\d{1,2}$/.test(text) ? Number(text) : 0
  return workers >= 1 && workers <= MAX_WORKERS ? workers : undefined
}

export function toHost(text: string): string | undefined {
  return /^[0-9A-Za-z.:_-]+$/.test(text) ? text : undefined
}

/** Without a trailing slash. */
export function toBaseUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  if (!/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
    return undefined
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
}

export function toDatabaseUrl(text: string): string | undefined {
  return URL.canParse(text) && /^postgres(ql)?:$/.test(new URL(text).protocol) ? text : undefined
}

export function toNetworks(text: string): string[] | undefined {
  const full = toParts(text).map(part =>
    part.includes('/') ? part : `${part}/${part.includes(':') ? 128 : 32}`,
  )
  return full.every(network => ipaddr.isValidCIDR(network)) ? full : undefined
}

/** As parsing has them. */
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

/** What stands between commas. */
export function toParts(text: string): string[] {
  return text
    .split(',')
    .map(part => part.trim())
    .filter(part => part !== '')
}
