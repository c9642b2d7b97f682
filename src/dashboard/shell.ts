import type { PublicRoute } from '../http/public-route.ts'
import { checkHost, type Site } from '../http/site.ts'
import { once } from '../base/functions.ts'
import { PATHS } from './app/paths.ts'
import { assetContent } from './assets.ts'
import { pageRoute } from './page.ts'

/** Routes that serve the application's HTML shell at each of its paths. */
export function shellRoutes(site: Site): PublicRoute[] {
  return Object.values(PATHS).map(path => toRoute(path, site))
}

/** Earlier paths of pages, and what they are now. */
const MOVED: Readonly<Record<string, string>> = {
  '/p/:project/settings': PATHS.keys,
  '/p/:project/keys': PATHS.keys,
  '/p/:project/webhooks': PATHS.webhooks,
  '/p/:project/webhooks/:webhook': PATHS.webhook,
  '/organizations/:organization': PATHS.organization,
  '/server': PATHS.server,
}

/** Routes that redirect from the earlier paths of pages. Bookmarks and messages contain them. */
export function movedRoutes(site: Site): PublicRoute[] {
  return Object.entries(MOVED).map(([path, target]) => ({
    path,
    respond(request) {
      checkHost(request.headers, site)
      const { pathname, search } = new URL(request.url)
      const given = pathname.split('/')
      const values = new Map(path.split('/').map((name, at) => [name, given[at] ?? '']))
      const segments = target
        .split('/')
        .map(name => (name.startsWith(':') ? values.get(name) : name))
      const headers = { Location: segments.join('/') + search, 'Cache-Control': 'no-cache' }
      return new Response(null, { status: 308, headers })
    },
  }))
}

/** Serves the shell with status 404, which then shows the not-found page. */
export function createNotFoundPage(site: Site): PublicRoute['respond'] {
  const { respond } = toRoute('/*', site)
  return async request => {
    const { status, body, headers } = await respond(request)
    return new Response(body, { status: status === 200 ? 404 : status, headers })
  }
}

const getShell = once(() => assetContent('index.html'))

function toRoute(path: string, site: Site): PublicRoute {
  return pageRoute(path, getShell, { site, toPolicy })
}

/** Allows only resources of this server. Text can never become script or markup. */
function toPolicy({ url }: Site): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    // Safari before 15.4 does not apply 'self' to WebSockets.
    `connect-src 'self' ${new URL(url).origin.replace(/^http/, 'ws')}`,
    "manifest-src 'self'",
    "worker-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    // The only Trusted Types policy is for the URL of the service worker.
    'trusted-types worker',
  ].join('; ')
}
