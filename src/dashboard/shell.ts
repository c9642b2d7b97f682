import type { PublicRoute } from '../http/public-route.ts'
import type { Site } from '../http/site.ts'
import { once } from '../base/functions.ts'
import { PATHS } from './app/paths.ts'
import { assetContent } from './assets.ts'
import { pageRoute } from './page.ts'

/** Routes that serve the application's HTML shell at each of its paths. */
export function shellRoutes(site: Site): PublicRoute[] {
  return Object.values(PATHS).map(path => toRoute(path, site))
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
    // The only Trusted Types policies are for the URLs of the workers.
    'trusted-types worker warm',
  ].join('; ')
}
