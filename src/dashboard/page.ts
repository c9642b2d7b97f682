import type { PublicRoute } from '../http/public-route.ts'
import { checkHost, type Site } from '../http/site.ts'
import { toContentResponse, type Content } from './content.ts'

const YEAR_S = 31_536_000
/** Forbids framing, access to the window from other origins, and device APIs. */
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
  /** Returns the Content-Security-Policy of the page. */
  toPolicy(site: Site): string
}

/** A route for an HTML page, which browsers revalidate on every visit. */
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

/** The headers of an HTML page. */
export function toPageHeaders({ site, toPolicy }: PageOptions): Record<string, string> {
  return {
    ...HEADERS,
    'Content-Security-Policy': toPolicy(site),
    ...(site.isSecure && { 'Strict-Transport-Security': `max-age=${YEAR_S}` }),
  }
}
