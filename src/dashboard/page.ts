import type { PublicRoute } from '../http/public-route.ts'
import { checkHost, type Site } from '../http/site.ts'
import { toContentResponse, type Content } from './content.ts'

const YEAR_S = 31_536_000
/** Sites may neither frame a page of ours nor get hold of its window, and it uses no device. */
const HEADERS = {
  'Cache-Control': 'no-cache',
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy':
    'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()',
}

export interface PageOptions {
  site: Site
  /** The Content-Security-Policy: what the page may load and run. */
  toPolicy(site: Site): string
}

/** A page for people, asked for again at every visit. */
export function pageRoute(
  path: string,
  getContent: () => Content | Promise<Content>,
  { site, toPolicy }: PageOptions,
): PublicRoute {
  return {
    path,
    async respond(request) {
      checkHost(request.headers, site)
      return toContentResponse(request, await getContent(), toPageHeaders({ site, toPolicy }))
    },
  }
}

/** The headers of a page for people. */
export function toPageHeaders({ site, toPolicy }: PageOptions): Record<string, string> {
  return {
    ...HEADERS,
    'Content-Security-Policy': toPolicy(site),
    ...(site.isSecure && { 'Strict-Transport-Security': `max-age=${YEAR_S}` }),
  }
}
