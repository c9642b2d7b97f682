import { bearer } from '@elysiajs/bearer'
import { Elysia } from 'elysia'
import { Fault, invalidKey } from '../errors.ts'
import type { BodyLimits } from '../http/body.ts'
import { acquireSlot, respond, withCall, type GuardedCall } from '../http/call.ts'
import { toKeyOperation } from '../http/operation.ts'
import {
  checkIssues,
  deferBody,
  prepareRoute,
  readInput,
  readPath,
  toContext,
  type RouteOptions,
} from '../http/route.ts'
import { toPathname } from '../http/url.ts'
import {
  readIdempotencyKey,
  toIdempotencyClaim,
  type IdempotencyClaim,
  type IdempotencyOutcome,
} from '../limits/idempotency.ts'
import { toRateLimitHeaders, tooManyRequests } from '../limits/rate-limit.ts'
import type { FailedAuthentications } from '../limits/failed-authentications.ts'
import type { Semaphore } from '../semaphore.ts'
import type { Admission, AdmittedRequest, Key } from './admission.ts'
import type { Scope } from './schema.ts'
import { hashToken, hasKeyInQuery, readToken } from './token.ts'

/** The dependencies of the guard of /v1. */
export interface KeyGuardOptions {
  admission: Admission
  failedAuthentications: FailedAuthentications
  /** Limits how many reads of one project run at a time. */
  concurrency: Semaphore
  bodyLimits: BodyLimits
  /** The client's address, for counting failed authentications. */
  toAddress(request: Request): string
}

/** A request that its API key admits. */
export interface KeyCall extends GuardedCall {
  readonly guard: 'key'
  readonly key: Key
  /** The claim of its Idempotency-Key, if it has one. */
  readonly claim: IdempotencyClaim | undefined
}

// No URL can carry half of a surrogate pair: leaving the name out would let `?access_token=` in.
const NOWHERE = '\ud800'

export type KeyGuard = ReturnType<typeof createKeyGuard>

/**
 * The guard of /v1, as the route option `scope`: the scope that the key needs, or `any`. It keeps the contract's order:
 * key, rate limit, scope, content type, size, text, JSON, schema, Idempotency-Key, execution.
 */
export function createKeyGuard(gate: KeyGuardOptions) {
  return new Elysia({ name: 'keys.guard' })
    .use(withCall)
    .use(bearer({ extract: { header: 'Bearer', query: NOWHERE, body: NOWHERE } }))
    .macro({
      scope(scope: Scope | 'any') {
        let route: RouteOptions = {}
        return {
          introspect(options: RouteOptions) {
            route = prepareRoute(options, given => toKeyOperation(given, scope))
          },
          parse: deferBody,
          async transform({ exchange: call, request, route: path, bearer }) {
            const incoming = { request, call, route }
            const params = readPath(incoming, path)
            const { key, grant } = await authenticate(gate, request, bearer)
            call.headers = toRateLimitHeaders(grant)
            if (!grant.isAllowed) throw tooManyRequests(grant.retryAfter)
            if (scope !== 'any' && !key.scopes.includes(scope)) {
              throw new Fault('insufficient_scope', `This API key lacks the scope ${scope}`)
            }
            Object.assign(call, { guard: 'key', key })
            return toContext({ params, ...(await readInput(incoming, gate.bodyLimits)) })
          },
          async resolve({ exchange, request, body }) {
            // The transform step made it one.
            const call = exchange as KeyCall
            checkIssues(call)
            const key = route.body && readIdempotencyKey(request.headers)
            const claim = key
              ? toIdempotencyClaim(key, request.method, toPathname(request.url), body)
              : undefined
            // Writes of all keys go together; reads take a connection each.
            if (request.method === 'GET')
              await acquireSlot(call, gate.concurrency, call.key.projectId)
            return { call: Object.assign(call, { claim }) }
          },
        }
      },
    })
}

/** Answers a keyed or unkeyed write: a replay says so, and a reused key is refused. */
export function respondToWrite(
  call: KeyCall,
  status: 200 | 201,
  { outcome, body }: { outcome: IdempotencyOutcome; body: string },
): Response {
  if (outcome === 'reused') {
    throw new Fault('idempotency_key_reused', 'This Idempotency-Key was used for another request')
  }
  const headers = outcome === 'replayed' ? { 'X-Idempotent-Replay': 'true' } : {}
  return respond(call, { status, body, headers })
}

/** Takes one request of the key's window. Throws `unauthorized`, the same for every cause. */
async function authenticate(
  gate: KeyGuardOptions,
  request: Request,
  bearer: string | undefined,
): Promise<AdmittedRequest> {
  const token = hasKeyInQuery(request.url)
    ? undefined
    : toToken(bearer, request.headers.get('authorization'))
  const admitted = await gate.failedAuthentications.lookUp(
    token && hashToken(token),
    gate.admission.admit,
    () => gate.toAddress(request),
  )
  if (!admitted) throw invalidKey()
  return admitted
}

/** The key that bearer read. It knows one spelling of the scheme, and takes any character for the space behind it. */
function toToken(bearer: string | undefined, authorization: string | null): string | undefined {
  if (bearer === undefined || authorization?.[6] !== ' ') return readToken(authorization)
  return readToken(`Bearer ${bearer.trimStart()}`)
}
