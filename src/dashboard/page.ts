import type { OpenRoute } from '../http/open-route.ts'
import type { Site } from '../http/site.ts'
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
  getSite(): Site
  /** The Content-Security-Policy: what the page may load and run. */
  toPolicy(site: Site): string
}

/** A page for people, asked for again at every visit. */
export function pageRoute(
  path: string,
  getContent: () => Content,
  { getSite, toPolicy }: PageOptions,
): OpenRoute {
  return {
    path,
    respond(request) {
      const site = getSite()
      return toContentResponse(request, getContent(), {
        ...HEADERS,
        'Content-Security-Policy': toPolicy(site),
        ...(site.isSecure && { 'Strict-Transport-Security': `max-age=${YEAR_S}` }),
      })
    },
  }
}
