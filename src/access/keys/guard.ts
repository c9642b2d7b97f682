import { bearer } from '@elysiajs/bearer'
import { Elysia } from 'elysia'
import type { Actor } from '../audit/audit.ts'
import type { Refusals } from '../audit/refusals.ts'
import { Fault, invalidKey } from '../../base/errors.ts'
import { isLarge } from '../../http/body.ts'
import { acquireSlot, respond, withCall, type Call, type GuardedCall } from '../../http/call.ts'
import { toKeyOperation } from '../../http/operation.ts'
import {
  checkIssues,
  deferBody,
  prepareRoute,
  readInput,
  readPath,
  toContext,
  type InputLimits,
  type RouteOptions,
} from '../../http/route.ts'
import {
  readIdempotencyKey,
  toIdempotencyClaim,
  type IdempotencyClaim,
  type IdempotencyOutcome,
} from '../../http/limits/idempotency.ts'
import { toRateLimitHeaders, tooManyRequests } from '../../http/limits/rate-limit.ts'
import type { FailedAuthentications } from '../../http/limits/failed-authentications.ts'
import type { Semaphore } from '../../base/semaphore.ts'
import { hashToken, MANAGEMENT_TOKEN, readBearer } from '../../base/token-form.ts'
import type { Admission, AdmittedRequest, Key } from './count-requests.ts'
import { createRecentKeys, deferAdmission, type DeferredAdmission } from './deferred-admission.ts'
import type { Scope } from './schema.ts'
import { hasKeyInQuery, readBasicPassword, readToken } from './token.ts'

/** The dependencies of the guard of /v1. */
export interface KeyGuardOptions {
  admission: Admission
  failedAuthentications: FailedAuthentications
  /** Limits concurrent reads per project. */
  concurrency: Semaphore
  inputLimits: InputLimits
  /** Counts refused requests for the audit log. */
  refusals: Pick<Refusals, 'count'>
  /** Returns the client's address, for counting failed authentications. */
  toAddress(request: Request): string
}

/** A request that was admitted by its API key, or whose admission is left to its write. */
export interface KeyCall extends GuardedCall {
  readonly guard: 'key'
  readonly key: Key
  /** Its admission, if the handler must leave it to the transaction of its write. */
  readonly admission?: DeferredAdmission
  /** The claim for its Idempotency-Key, if it has one. */
  readonly claim: IdempotencyClaim | undefined
}

/** The scope of a route whose handler passes `call.admission` to the writer. */
interface WithWrite {
  withWrite: Scope
  /**
   * Set for programs that were made for another server. They may send the key as the password of
   * HTTP Basic, any Content-Type and any query, and this writes their failures.
   */
  toFailureBody?: Call['toFailureBody']
}

interface Admitting {
  request: Request
  call: Call
  scope: Scope | 'any'
}

// No URL can contain half of a surrogate pair. Without a name, the plugin would accept
// `?access_token=`.
const NO_FIELD = '\ud800'

export type KeyGuard = ReturnType<typeof createKeyGuard>

/**
 * The guard of /v1, as the route option `scope`: the scope that the key must have, or `any`. It
 * checks in this order: key, rate limit, scope, content type, size, encoding, JSON, schema,
 * Idempotency-Key.
 */
export function createKeyGuard(gate: KeyGuardOptions) {
  const recentKeys = createRecentKeys()

  /** Admits a request. Throws `unauthorized`, `rate_limited` or `insufficient_scope`. */
  async function admit(
    { request, call, scope }: Admitting,
    hash: string | undefined,
  ): Promise<void> {
    const { key, rateLimit } = await authenticate(gate, request, hash)
    call.headers = toRateLimitHeaders(rateLimit)
    if (!rateLimit.isAllowed) throw tooManyRequests(rateLimit.retryAfter)
    if (scope !== 'any') requireScope(gate, request, key, scope)
    if (hash !== undefined) recentKeys.remember(hash, key)
    Object.assign(call, { guard: 'key', key })
  }

  /**
   * Leaves the admission to the writer of the request, if its key was admitted recently. Returns
   * false otherwise. So a body of a stranger is never read.
   */
  function canDefer({ request, call, scope }: Admitting, hash: string | undefined): boolean {
    const key = hash === undefined ? undefined : recentKeys.find(hash)
    if (hash === undefined || !key?.scopes.includes(scope as Scope)) return false
    const admission = deferAdmission({
      hash,
      call,
      admit: async () => (await authenticate(gate, request, hash)).rateLimit,
      onSettled(rateLimit) {
        if (rateLimit) gate.admission.countUsage(key.id)
        else gate.failedAuthentications.countUnknown(gate.toAddress(request))
        if (!rateLimit?.isAllowed) recentKeys.forget(hash)
      },
    })
    Object.assign(call, { guard: 'key', key, admission })
    return true
  }

  return new Elysia({ name: 'keys.guard' })
    .use(withCall)
    .use(bearer({ extract: { header: 'Bearer', query: NO_FIELD, body: NO_FIELD } }))
    .macro({
      scope(given: Scope | 'any' | WithWrite) {
        const isDeferring = typeof given === 'object'
        const scope = isDeferring ? given.withWrite : given
        const toFailureBody = isDeferring ? given.toFailureBody : undefined
        let route: RouteOptions = {}
        let fields: readonly string[] = []
        return {
          introspect(options: RouteOptions) {
            route = prepareRoute(options, given => toKeyOperation(given, scope))
            fields = Object.keys(route.body?.properties ?? {}).toSorted()
          },
          parse: deferBody,
          async transform({ exchange: call, request, route: path, bearer }) {
            const incoming = { request, call, route }
            call.toFailureBody = toFailureBody
            const params = readPath(incoming, path)
            const password = toFailureBody && readBasicPassword(request.headers)
            const hash = toKeyHash(request, bearer, password)
            const admitting = { request, call, scope }
            // Of more requests than a key may make, those that wait were counted first.
            const mustAdmit = !isDeferring || isLarge(request)
            if (mustAdmit || !canDefer(admitting, hash)) await admit(admitting, hash)
            const { organizationId: caller } = (call as KeyCall).key
            const isForeign = toFailureBody !== undefined
            const input = await readInput(incoming, { ...gate.inputLimits, caller, isForeign })
            return toContext({ params, ...input })
          },
          async resolve({ exchange, request, body }) {
            // The transform step added the fields.
            const call = exchange as KeyCall
            checkIssues(call)
            const key = route.body && readIdempotencyKey(request.headers)
            const claim = key ? toIdempotencyClaim(key, request, body, fields) : undefined
            // Only reads need a slot: each takes a connection, and writes share one in batches.
            if (request.method === 'GET')
              await acquireSlot(call, gate.concurrency, call.key.projectId)
            return { call: Object.assign(call, { claim }) }
          },
        }
      },
    })
}

/** Throws `insufficient_scope` unless the key of a request has the scope. */
export function requireScope(
  { refusals, toAddress }: Pick<KeyGuardOptions, 'refusals' | 'toAddress'>,
  request: Request,
  { id, organizationId, projectId, scopes }: Key,
  scope: Scope,
): void {
  if (scopes.includes(scope)) return
  const actor = { kind: 'API key', keyId: id, address: toAddress(request) } as const
  refusals.count({ tenant: { organizationId, projectId }, actor, action: scope })
  throw new Fault('insufficient_scope', `This API key lacks the scope ${scope}`)
}

/**
 * Responds to a write. A replayed response carries a header that says so. `toBody` makes the body
 * of the stored one, without stored users for keys that may not read them. Throws if the
 * Idempotency-Key was used for another request.
 */
export function respondToWrite(
  call: KeyCall,
  status: 200 | 201,
  { outcome, body }: { outcome: IdempotencyOutcome; body: string },
  toBody: (stored: string, mayReadUsers: boolean) => string,
): Response {
  if (outcome === 'reused') {
    throw new Fault('idempotency_key_reused', 'This Idempotency-Key was used for another request')
  }
  const headers = outcome === 'replayed' ? { 'X-Idempotent-Replay': 'true' } : {}
  const mayReadUsers = call.key.scopes.includes('identities:read')
  return respond(call, { status, body: toBody(body, mayReadUsers), headers })
}

/** Returns the author of an action of a key, for the audit log. */
export function toKeyActor(
  { id }: Key,
  request: Request,
  toAddress: (request: Request) => string,
): Actor {
  const userAgent = request.headers.get('user-agent') ?? ''
  return { kind: 'API key', keyId: id, address: toAddress(request), userAgent }
}

/**
 * Counts one request of the key. Throws the same `unauthorized` for every cause, except for a
 * management token.
 */
async function authenticate(
  gate: KeyGuardOptions,
  request: Request,
  hash: string | undefined,
): Promise<AdmittedRequest> {
  const { lookUp } = gate.failedAuthentications
  const admitted = await lookUp(hash, gate.admission.admit, () => gate.toAddress(request))
  if (admitted) return admitted
  // The form alone tells what it is, so this reveals nothing about existing tokens.
  if (MANAGEMENT_TOKEN.isWellFormed(readBearer(request.headers.get('authorization')) ?? '')) {
    throw new Fault(
      'unauthorized',
      'This is a management token, which opens /api. Use an API key for /v1.',
      { 'WWW-Authenticate': 'Bearer' },
    )
  }
  throw invalidKey()
}

/** Returns the hash of the request's key, or undefined if it carries no well-formed key. */
function toKeyHash(
  { url, headers }: Request,
  bearer: string | undefined,
  password?: string,
): string | undefined {
  if (hasKeyInQuery(url)) return undefined
  const token = password
    ? readToken(`Bearer ${password}`)
    : toToken(bearer, headers.get('authorization'))
  return token === undefined ? undefined : hashToken(token)
}

/**
 * Returns the token that the bearer plugin read. The plugin accepts only the spelling `Bearer`, and
 * any character after it. Other spellings and separators are parsed here.
 */
function toToken(bearer: string | undefined, authorization: string | null): string | undefined {
  if (bearer === undefined || authorization?.[6] !== ' ') return readToken(authorization)
  return readToken(`Bearer ${bearer.trimStart()}`)
}
