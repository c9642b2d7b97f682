import { FILE_POLICY } from '../dashboard/assets.ts'
import { publicRoutes } from '../http/public-route.ts'
import type { Site } from '../http/site.ts'

const PATH = '/.well-known/security.txt'
const DAY_MS = 86_400_000
/** RFC 9116 recommends less than a year. */
const VALID_DAYS = 180

export interface SecurityTxt {
  site: Site
  /** URIs of contacts, the preferred one first. */
  contacts: readonly string[]
}

/** Serves `/.well-known/security.txt` (RFC 9116), or nothing when no contact is configured. */
export function securityTxtRoutes(options: SecurityTxt) {
  const headers = {
    'Content-Type': 'text/plain; charset=utf-8',
    'Cache-Control': 'public, max-age=86400',
    'Content-Security-Policy': FILE_POLICY,
    'X-Content-Type-Options': 'nosniff',
  }
  const respond = () => new Response(toSecurityTxt(options, Date.now()), { headers })
  return publicRoutes('security-txt', options.contacts.length > 0 ? [{ path: PATH, respond }] : [])
}

/** The file as of `nowMs`, in milliseconds since 1970. */
export function toSecurityTxt({ site, contacts }: SecurityTxt, nowMs: number): string {
  const day = Math.floor(nowMs / DAY_MS) + VALID_DAYS
  const lines = [
    ...contacts.map(contact => `Contact: ${contact}`),
    `Expires: ${new Date(day * DAY_MS).toISOString()}`,
    // RFC 9116 requires https here.
    ...(site.isSecure ? [`Canonical: ${new URL(site.url).origin}${PATH}`] : []),
  ]
  return `${lines.join('\n')}\n`
}
