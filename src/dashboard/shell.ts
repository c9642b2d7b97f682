import type { PublicRoute } from '../http/public-route.ts'
import type { Site } from '../http/site.ts'
import { once } from '../functions.ts'
import { PATHS } from './app/paths.ts'
import { assetContent } from './assets.ts'
import { pageRoute } from './page.ts'

/** The page of the browser application, at each path that it knows. The application decides what it shows there. */
export function shellRoutes(site: Site): PublicRoute[] {
  return Object.values(PATHS).map(path => toRoute(path, site))
}

/** Answers a browser that asks for a page which does not exist. */
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

/** Its own scripts, styles and answers, and nothing else; text can never become script or markup. */
function toPolicy({ url }: Site): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    // Named, because to Safari before 15.4 'self' means no sockets.
    `connect-src 'self' ${new URL(url).origin.replace(/^http/, 'ws')}`,
    "manifest-src 'self'",
    "worker-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    // The address of the service worker is the one thing that must be trusted by name.
    'trusted-types worker',
  ].join('; ')
}
