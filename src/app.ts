import { Elysia } from 'elysia'
import { Fault } from './errors.ts'
import { toFailure } from './http/failures.ts'
import type { OpenRoute } from './http/open-route.ts'
import { toPathname } from './http/pathname.ts'
import type { Site } from './http/site.ts'
import { invalidField } from './http/validation.ts'
import { toResponse } from './http/response.ts'
import type { Route } from './http/route.ts'
import { requests } from './metrics.ts'

export interface AppOptions {
  /** The address that the pages and /api are for. */
  getSite(): Site
  routes: readonly Route[]
  openRoutes: readonly OpenRoute[]
}

// A name, an IPv4 address or an IPv6 one in brackets, and a port. Two Host lines arrive joined by a comma.
const HOST = /^([\w.-]+|\[[0-9a-f:.]+\])(:\d{1,5})?$/i

// What no page stands behind: whoever asks there wants JSON.
const FOR_PROGRAMS = /^\/(v1|api|assets)(\/|$)/

// Programs may know the server by another name, and what watches over it knows none: nothing here needs a session.
const ANY_HOST = /^\/(v1\/|healthz$|readyz$|(api\/)?openapi\.json$)/

/** Every route of the server, as one function from request to response. */
export function createApp({ getSite, routes, openRoutes: open }: AppOptions) {
  const openRoutes = open.filter(({ path }) => path !== '*')
  const missingPage = open.find(({ path }) => path === '*')
  // `normalize` would rewrite bodies, and hang on a hostile one (`{"length": 4000000000}`).
  const app = new Elysia({ normalize: false, strictPath: true })
  // First, so that it covers every route.
  app.onError(({ code, error, request }) => {
    if (code !== 'NOT_FOUND') return toErrorResponse(error)
    const missing = toMissing(request)
    const isForPerson = missing.code === 'not_found' && looksForPage(request)
    return missingPage && isForPerson
      ? answerOpenly(missingPage, request)
      : toErrorResponse(missing)
  })
  for (const { method, path, respond } of routes) {
    app.route(
      method,
      path,
      ({ request }) => {
        // Elysia brings HEAD to where GET goes; it would cost a request of the rate limit and answer nothing.
        if (request.method === 'HEAD') return toErrorResponse(toMissing(request))
        const wrong = findWrongHost(path, request)
        return wrong ? toErrorResponse(wrong) : respond(request)
      },
      { parse: 'none' },
    )
  }
  for (const route of openRoutes) {
    app.get(route.path, ({ request }) => answerOpenly(route, request), { parse: 'none' })
  }

  const methods = new Map<string, { matches: RegExp; allowed: string[] }>()
  for (const { path, allowed } of [
    ...routes.map(({ path, method }) => ({ path, allowed: [method] })),
    ...openRoutes.map(({ path }) => ({ path, allowed: ['GET', 'HEAD'] })),
  ]) {
    const known = methods.get(path) ?? { matches: toPattern(path), allowed: [] }
    known.allowed.push(...allowed)
    methods.set(path, known)
  }

  async function answerOpenly({ path, respond }: OpenRoute, request: Request): Promise<Response> {
    const wrong = findWrongHost(path, request)
    return wrong ? toErrorResponse(wrong) : withRequestId(await respond(request))
  }

  /** A name that leads here without being ours may be somebody's who wants to read what our pages read. */
  function findWrongHost(path: string, { headers }: Request): Fault | undefined {
    const host = headers.get('host') ?? ''
    if (ANY_HOST.test(path) || getSite().isOwnHost(host)) return undefined
    const { url } = getSite()
    return new Fault(
      'wrong_host',
      `This server is ${url}, and was asked for as ${host}. If that is its address, set BASE_URL to it`,
    )
  }

  /** 405 where the path has other methods, 404 where it has none. */
  function toMissing(request: Request): Fault {
    const pathname = toPathname(request.url)
    const found = [...methods.values()].filter(({ matches }) => matches.test(pathname))
    if (found.length === 0)
      return new Fault('not_found', `There is nothing at ${request.method} ${pathname}`)
    const allowed = [...new Set(found.flatMap(({ allowed }) => allowed))].join(', ')
    return new Fault('method_not_allowed', `Use ${allowed} here`, { Allow: allowed })
  }

  return {
    fetch(request: Request): Response | Promise<Response> {
      if (!HOST.test(request.headers.get('host') ?? '')) {
        return toErrorResponse(invalidField('Host', 'invalid_format', 'Must be one host name'))
      }
      return Promise.resolve(app.handle(request)).catch(toErrorResponse)
    },
  }
}

/** Whether a browser asks for what it shows to a person. */
function looksForPage({ method, url, headers }: Request): boolean {
  const isForPrograms = FOR_PROGRAMS.test(toPathname(url))
  return method === 'GET' && !isForPrograms && (headers.get('accept') ?? '').includes('text/html')
}

/** The answer to what reached no endpoint, or broke outside of one. */
function toErrorResponse(error: unknown): Response {
  const requestId = crypto.randomUUID()
  const answer = toFailure(error, requestId)
  requests.inc({ route: 'none', status: answer.status })
  return toResponse(answer, requestId)
}

function withRequestId(response: Response): Response {
  response.headers.set('X-Request-Id', crypto.randomUUID())
  return response
}

function toPattern(path: string): RegExp {
  return new RegExp(`^${path.replace(/[.]/g, '\\.').replace(/:\w+/g, '[^/]+')}$`)
}
