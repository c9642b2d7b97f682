import { Elysia } from 'elysia'
import { Fault } from './errors.ts'
import { toFailure } from './http/failures.ts'
import type { OpenRoute } from './http/open-route.ts'
import { toPathname } from './http/pathname.ts'
import { invalidField } from './http/validation.ts'
import { toResponse, type Endpoint, type Gate } from './keys/endpoint.ts'
import { requests } from './metrics.ts'

export interface AppOptions {
  gate: Gate
  endpoints: readonly Endpoint[]
  openRoutes: readonly OpenRoute[]
}

// A name, an IPv4 address or an IPv6 one in brackets, and a port. Two Host lines arrive joined by a comma.
const HOST = /^([\w.-]+|\[[0-9a-f:.]+\])(:\d{1,5})?$/i

/** Every route of the server, as one function from request to response. */
export function createApp({ gate, endpoints, openRoutes }: AppOptions) {
  // `normalize` would rewrite bodies, and hang on a hostile one (`{"length": 4000000000}`).
  const app = new Elysia({ normalize: false, strictPath: true })
  // First, so that it covers every route.
  app.onError(({ code, error, request }) =>
    toErrorResponse(code === 'NOT_FOUND' ? toMissing(request) : error),
  )
  for (const { contract, respond } of endpoints) {
    app.route(
      contract.method,
      contract.path,
      // Elysia brings HEAD to where GET goes; it would cost a request of the rate limit and answer nothing.
      ({ request }) =>
        request.method === 'HEAD' ? toErrorResponse(toMissing(request)) : respond(gate, request),
      { parse: 'none' },
    )
  }
  for (const { path, respond } of openRoutes) {
    app.get(path, async ({ request }) => withRequestId(await respond(request)), { parse: 'none' })
  }

  const methods = new Map<string, { matches: RegExp; allowed: string[] }>()
  for (const { path, allowed } of [
    ...endpoints.map(({ contract: { path, method } }) => ({ path, allowed: [method] })),
    ...openRoutes.map(({ path }) => ({ path, allowed: ['GET', 'HEAD'] })),
  ]) {
    const known = methods.get(path) ?? { matches: toPattern(path), allowed: [] }
    known.allowed.push(...allowed)
    methods.set(path, known)
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
