import type { TSchema } from '@sinclair/typebox'
import type { TypeCheck } from '@sinclair/typebox/compiler'
import { Elysia, NotFoundError, ParseError, ValidationError, type AnyElysia } from 'elysia'
import { Fault } from './errors.ts'
import { fail, newCall, withCall, type Call } from './http/call.ts'
import { addRequestId, type PublicRoute } from './http/public-route.ts'
import { toPathname } from './http/url.ts'
import { invalidField, toInvalidRequest } from './http/validation.ts'

export interface AppOptions {
  /**
   * The features, in order: `@elysiajs/bearer` derives for every route that is mounted behind it, so those of /v1 are
   * the last.
   */
  features: readonly AnyElysia[]
  /** Answers a browser that asks for a page which does not exist. */
  notFoundPage?: PublicRoute['respond']
}

// A name, an IPv4 address or an IPv6 one in brackets, and a port. Two Host lines arrive joined by a comma.
const HOST = /^([\w.-]+|\[[0-9a-f:.]+\])(:\d{1,5})?$/i

/** Paths that never serve a page. */
const FOR_PROGRAMS = /^\/(v1|api|assets)(\/|$)/

/** Every route of the server, as one function from request to response. */
export interface App {
  fetch(request: Request): Response | Promise<Response>
  readonly routes: AnyElysia['routes']
}

/** Composes the features into one function from request to response. */
export function createApp({ features, notFoundPage }: AppOptions): App {
  // Most requests name the same host as the one before.
  let knownHost: string | undefined
  // `normalize` would rewrite bodies, and hang on a hostile one (`{"length": 4000000000}`).
  const app = new Elysia({ normalize: false, strictPath: true })
    .use(withCall)
    .onRequest(context => {
      context.exchange = newCall()
      // Elysia would parse the query of every request: a guard does, once the request is admitted.
      ;(context as { qi?: number }).qi = -1
      const host = context.request.headers.get('host') ?? ''
      if (host === knownHost) return
      if (!HOST.test(host)) throw invalidField('Host', 'invalid_format', 'Must be one host name')
      knownHost = host
    })
    .onError(({ error, request, exchange }) => {
      if (!(error instanceof NotFoundError)) return fail(exchange, toThrown(error, exchange))
      const missing = findMissing(request)
      const isPage = missing.code === 'not_found' && looksForPage(request)
      return notFoundPage && isPage
        ? answerPage(notFoundPage, request, exchange)
        : fail(exchange, missing)
    })
  for (const feature of features) app.use(feature)

  let methods: Map<string, { matches: RegExp; allowed: Set<string> }> | undefined

  /** 405 where the path has other methods, 404 where it has none. */
  function findMissing({ method, url }: Request): Fault {
    const pathname = toPathname(url)
    methods ??= toMethods(app.routes)
    const found = [...methods.values()].filter(({ matches }) => matches.test(pathname))
    if (found.length === 0) {
      return new Fault('not_found', `There is nothing at ${method} ${pathname}`)
    }
    const allowed = [...new Set(found.flatMap(({ allowed }) => [...allowed]))].join(', ')
    return new Fault('method_not_allowed', `Use ${allowed} here`, { Allow: allowed })
  }

  return {
    fetch: request => app.fetch(request),
    get routes() {
      return app.routes
    },
  }
}

/** Answers with a page. `onError` calls this, so Elysia would not hand an error of it to `onError`. */
async function answerPage(
  respond: PublicRoute['respond'],
  request: Request,
  call: Call,
): Promise<Response> {
  try {
    const response = await respond(request)
    addRequestId({ response, exchange: call })
    return response
  } catch (error) {
    return fail(call, error)
  }
}

/** The methods of every path. Open routes are those that answer HEAD, too. */
function toMethods(routes: AnyElysia['routes']) {
  const methods = new Map<string, { matches: RegExp; allowed: Set<string> }>()
  for (const { method, path, hooks } of routes) {
    const known = methods.get(path) ?? { matches: toPattern(path), allowed: new Set() }
    known.allowed.add(method)
    if (hooks.detail?.hide) known.allowed.add('HEAD')
    methods.set(path, known)
  }
  return methods
}

/** What Elysia makes of a request that breaks the schemas of its route, as our own. */
function toThrown(error: unknown, { issues }: Call): unknown {
  if (error instanceof ParseError) return error.cause
  if (!(error instanceof ValidationError)) return error
  // Every schema of ours is TypeBox.
  return toInvalidRequest(error.validator as TypeCheck<TSchema>, error.value, issues)
}

/** Whether a browser asks for a page to show to somebody. */
function looksForPage({ method, url, headers }: Request): boolean {
  const isForPrograms = FOR_PROGRAMS.test(toPathname(url))
  return method === 'GET' && !isForPrograms && (headers.get('accept') ?? '').includes('text/html')
}

function toPattern(path: string): RegExp {
  return new RegExp(`^${path.replace(/[.]/g, '\\.').replace(/:\w+/g, '[^/]+')}$`)
}
