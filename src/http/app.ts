import type { TSchema } from '@sinclair/typebox'
import type { TypeCheck } from '@sinclair/typebox/compiler'
import { Elysia, NotFoundError, ParseError, ValidationError, type AnyElysia } from 'elysia'
import { Fault } from '../base/errors.ts'
import { fail, newCall, withCall, type Call } from './call.ts'
import { addRequestId, type PublicRoute } from './public-route.ts'
import { isForPrograms, toPathname } from './url.ts'
import { invalidField, toInvalidRequest } from './validation.ts'

export interface AppOptions {
  /**
   * The plugins of all features. Those of /v1 must be last, because `@elysiajs/bearer` runs for all
   * routes mounted after it.
   */
  features: readonly AnyElysia[]
  /** Responds to a browser that requests a page that does not exist. */
  notFoundPage?: PublicRoute['respond']
}

// Matches a name or address with an optional port. Two Host headers arrive joined by a comma, and
// do not match.
const HOST = /^([\w.-]+|\[[0-9a-f:.]+\])(:\d{1,5})?$/i

/** Every route of the server, as one function from request to response. */
export interface App {
  fetch(request: Request): Response | Promise<Response>
  readonly routes: AnyElysia['routes']
}

/** Composes the features into one function from request to response. */
export function createApp({ features, notFoundPage }: AppOptions): App {
  // Most requests name the same host as the one before.
  let knownHost: string | undefined
  // `normalize` would rewrite bodies, and hang on a malicious one (`{"length": 4000000000}`).
  const app = new Elysia({ normalize: false, strictPath: true })
    .use(withCall)
    .onRequest(context => {
      context.exchange = newCall(context.request.method)
      // Keeps Elysia from parsing the query. Guards parse it after admission.
      ;(context as { qi?: number }).qi = -1
      const host = context.request.headers.get('host') ?? ''
      if (host === knownHost) return
      if (!HOST.test(host)) throw invalidField('Host', 'invalid_format', 'Must be one host name')
      knownHost = host
    })
    .onError(async ({ error, request, exchange, set }) => {
      // With another status, Elysia copies the response, which makes its header names lower-case.
      set.status = 200
      if (!(error instanceof NotFoundError)) {
        return fail(exchange, toOwnError(await findFirstError(exchange, error), exchange))
      }
      const missing = toMissingFault(request)
      const isPage = missing.code === 'not_found' && isPageRequest(request)
      return notFoundPage && isPage
        ? answerPage(notFoundPage, request, exchange)
        : fail(exchange, missing)
    })
  for (const feature of features) app.use(feature)

  let methods: ReturnType<typeof toMethods> | undefined

  /** Returns a 405 error if the path has other methods, else a 404 error. */
  function toMissingFault({ method, url }: Request): Fault {
    const pathname = toPathname(url)
    methods ??= toMethods(app.routes)
    const found = [...methods.values()].filter(({ matches }) => matches.test(pathname))
    if (found.length === 0) {
      const usual = findUsualSpelling(pathname, methods)
      const hint = usual === undefined ? '' : `. Use ${usual}`
      return new Fault('not_found', `There is no route ${method} ${pathname}${hint}`)
    }
    const allowed = [...new Set(found.flatMap(({ allowed }) => [...allowed]))].join(', ')
    return new Fault('method_not_allowed', `This path allows only ${allowed}`, { Allow: allowed })
  }

  return {
    fetch: request => app.fetch(request),
    get routes() {
      return app.routes
    },
  }
}

/**
 * Responds with a page. Handles its own errors, because Elysia calls `onError` for no error within
 * `onError`.
 */
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

/** Returns the error of the check that comes first, if one is due and fails, else `error`. */
async function findFirstError(call: Call, error: unknown): Promise<unknown> {
  const check = call.checkFirst
  call.checkFirst = undefined
  try {
    await check?.()
    return error
  } catch (first) {
    return first
  }
}

interface Path {
  matches: RegExp
  /** Matches in any case. */
  resembles: RegExp
  allowed: Set<string>
}

/** Returns the methods of every path. Only public routes also have HEAD. */
function toMethods(routes: AnyElysia['routes']): Map<string, Path> {
  const methods = new Map<string, Path>()
  for (const { method, path, hooks } of routes) {
    const matches = toPattern(path)
    const resembles = new RegExp(matches, 'i')
    const known = methods.get(path) ?? { matches, resembles, allowed: new Set() }
    known.allowed.add(method)
    if (hooks.detail?.hide) known.allowed.add('HEAD')
    methods.set(path, known)
  }
  return methods
}

/**
 * Returns the path of a route that differs from `pathname` in slashes and case alone. Parameters
 * stay as they are.
 */
function findUsualSpelling(
  pathname: string,
  methods: ReadonlyMap<string, Path>,
): string | undefined {
  const parts = pathname.split('/').filter(part => part !== '')
  const path = `/${parts.join('/')}`
  const [route] = [...methods].find(([, { resembles }]) => resembles.test(path)) ?? []
  return route?.replace(/[^/]+/g, name => {
    const given = parts.shift() ?? ''
    return name.startsWith(':') ? given : name
  })
}

/** Converts Elysia's errors for invalid requests to ours. */
function toOwnError(error: unknown, { issues }: Call): unknown {
  if (error instanceof ParseError) return error.cause
  if (!(error instanceof ValidationError)) return error
  // All schemas are TypeBox schemas.
  return toInvalidRequest(error.validator as TypeCheck<TSchema>, error.value, issues)
}

/** Returns whether a browser requests a page. */
function isPageRequest({ method, url, headers }: Request): boolean {
  const pathname = toPathname(url)
  const hasNoPage = isForPrograms(pathname) || pathname.startsWith('/assets/')
  return method === 'GET' && !hasNoPage && (headers.get('accept') ?? '').includes('text/html')
}

function toPattern(path: string): RegExp {
  return new RegExp(`^${path.replace(/[.]/g, '\\.').replace(/:\w+/g, '[^/]+')}$`)
}
