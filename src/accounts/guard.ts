import { Elysia } from 'elysia'
import type { Actor } from '../audit/audit.ts'
import type { Refusals } from '../audit/refusals.ts'
import type { Pool } from '../db/pool.ts'
import type { Queryable } from '../db/sql.ts'
import type { Hints } from '../hints.ts'
import type { BodyLimits } from '../http/body.ts'
import { acquireSlot, withCall, type Call, type GuardedCall } from '../http/call.ts'
import { toSessionOperation } from '../http/operation.ts'
import {
  checkIssues,
  deferBody,
  prepareRoute,
  readInput,
  readPath,
  toContext,
  type RouteOptions,
} from '../http/route.ts'
import { checkHost, checkSameOrigin, type Site } from '../http/site.ts'
import { Fault } from '../errors.ts'
import { parseId } from '../ids.ts'
import { toNetwork, type FailedAuthentications } from '../limits/failed-authentications.ts'
import { toRateLimitHeaders, tooManyRequests, type RateLimitResult } from '../limits/rate-limit.ts'
import type { Semaphore } from '../semaphore.ts'
import { API_KEY, hashToken, MANAGEMENT_TOKEN, readBearer } from '../token-form.ts'
import { toRequester, type Admitted, type AdmittedToken } from './admitted.ts'
import { type Cookies, hashSecret } from './secret.ts'
import {
  authorize,
  listCredentials,
  revokesAccess,
  type Action,
  type ActionOn,
  type ActionScope,
  type Role,
} from './permissions.ts'
import { admitSession, type AdmittedCaller, type AdmittedSession } from './sessions.ts'

/** The dependencies of the guard of /api. */
export interface SessionGuardOptions {
  /** For the data of organizations. */
  pool: Pool
  /** For sessions, accounts and strangers. No request for data uses it. */
  sessions: Pool
  site: Site
  cookies: Cookies
  failedAuthentications: FailedAuthentications
  /** Limits concurrent requests per account. */
  concurrency: Semaphore
  hints: Hints
  /** Counts refused requests for the audit log. */
  refusals: Pick<Refusals, 'count'>
  tokens: TokenAdmission
  bodyLimits: BodyLimits
  toAddress(request: Request): string
}

/** Finds the management tokens of requests. */
export interface TokenAdmission {
  /**
   * Finds the live token that has the hash, and counts one request of it if `isCounting`. Nothing
   * is cached, so the next request of a withdrawn token is refused.
   */
  admit(sql: Queryable, lookup: TokenLookup): Promise<CountedToken | undefined>
}

interface TokenLookup extends Partial<Ids> {
  hash: string
  isCounting: boolean
}

/** A token, and the effect of its request on the rate limit, if it was counted. */
export interface CountedToken {
  admitted: AdmittedToken
  rateLimit: RateLimitResult | undefined
}

/** A request that the permissions of its route allow. */
export interface SessionCall extends GuardedCall {
  readonly guard: 'session'
  /** The connections of its share: of its organization, its account, or a stranger's network. */
  readonly pool: Pool
  /** For the audit log. */
  readonly actor: Actor
  /** The token in the session cookie, if there is one. */
  readonly token: string | undefined
  readonly address: string
  readonly userAgent: string
  readonly requestHeaders: Headers
  /** Checks session and permission again. Throws like the guard. */
  checkAccess(): Promise<void>
}

/** The fields that each scope adds to a call. Ids are uuids. */
interface ScopeFields {
  anyone: { readonly admitted: AdmittedSession | undefined }
  token: { readonly admitted: AdmittedToken }
  account: { readonly admitted: AdmittedSession }
  installation: { readonly admitted: AdmittedSession }
  organization: {
    readonly admitted: AdmittedCaller
    readonly organizationId: string
    readonly role: Role
  }
  project: {
    readonly admitted: AdmittedCaller
    readonly organizationId: string
    readonly projectId: string
    readonly role: Role
  }
}
export type CallOn<P extends ActionScope> = SessionCall & ScopeFields[P]

const HEADERS = {
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  Vary: 'Cookie, Authorization',
}

/** The part of Elysia's context that the transform step reads. */
interface Arrived {
  exchange: Call
  request: Request
  route: string
}

export type SessionGuard = ReturnType<typeof createSessionGuard>

/**
 * The guard of /api, as one route option per scope. Its value is an action of permissions.ts. It
 * checks in this order: origin, session or token, permission, content type, body.
 *
 * A request with an `Authorization: Bearer` header is one of a token, whatever its cookies. It
 * needs no origin, because no page of another site can send that header.
 */
export function createSessionGuard(gate: SessionGuardOptions) {
  const on =
    <P extends ActionScope>(scope: P) =>
    (action: ActionOn<P>) => {
      let route: RouteOptions = {}
      return {
        introspect(options: RouteOptions) {
          route = prepareRoute(options, given =>
            toSessionOperation(given, { action, credentials: listCredentials(action) }),
          )
        },
        parse: deferBody,
        async transform({ exchange: call, request, route: path }: Arrived) {
          call.headers = HEADERS
          const incoming = { request, call, route }
          const params = readPath(incoming, path)
          checkHost(request.headers, gate.site)
          const bearer = readBearer(request.headers.get('authorization'))
          if (request.method !== 'GET' && bearer === undefined) {
            checkSameOrigin(request.headers, gate.site)
          }
          const entry = { call, scope, action, ids: toIds(params), bearer }
          const admitted = await admit(gate, request, { ...entry, isCounting: true })
          const input = await readInput(incoming, { ...gate.bodyLimits, isTypeRequired: true })
          // Permissions may have changed while the body arrived.
          Object.assign(call, {
            admitted: route.body
              ? await admit(gate, request, { ...entry, isCounting: false })
              : admitted,
            checkAccess: async () =>
              void (await admit(gate, request, { ...entry, isCounting: false })),
          })
          return toContext({ params, ...input })
        },
        async resolve({ exchange, request }: { exchange: Call; request: Request }) {
          checkIssues(exchange)
          const { admitted } = exchange as unknown as ScopeFields['anyone']
          const hasWaited =
            admitted && (await acquireSlot(exchange, gate.concurrency, toLane(admitted)))
          const call = toSessionCall(gate, { request, scope }, exchange, admitted)
          // Permissions may have changed while the request waited.
          if (hasWaited) await call.checkAccess()
          // Rules beyond the role of a route refuse in its handler.
          call.onFailure = error =>
            countRefusal(gate, { admitted, actor: call.actor, action }, error)
          // `admit` has checked that the fields of the scope exist.
          return { call: call as unknown as CallOn<P> }
        },
        ...(revokesAccess(action) && { afterHandle: () => gate.hints.send([{ kind: 'access' }]) }),
      }
    }
  return new Elysia({ name: 'accounts.guard' }).use(withCall).macro({
    anyone: on('anyone'),
    token: on('token'),
    account: on('account'),
    installation: on('installation'),
    organization: on('organization'),
    project: on('project'),
  })
}

function toSessionCall(
  gate: SessionGuardOptions,
  { request, scope }: { request: Request; scope: ActionScope },
  call: Call,
  admitted: AdmittedCaller | undefined,
): SessionCall {
  const { headers } = request
  const actor = toActor(gate, request, admitted)
  const { address, userAgent } = actor
  // The transform step has added `checkAccess`.
  return Object.assign(call as Call & Pick<SessionCall, 'checkAccess'>, {
    guard: 'session' as const,
    pool: choosePool(gate, scope, admitted, address),
    organizationId: admitted?.organizationId,
    projectId: admitted?.projectId,
    role: admitted?.role,
    actor,
    token: gate.cookies.read(headers, 'session'),
    address,
    userAgent,
    requestHeaders: headers,
  })
}

/** Returns the author of a request, for the audit log. */
function toActor(
  { toAddress }: Pick<SessionGuardOptions, 'toAddress'>,
  request: Request,
  admitted: AdmittedCaller | undefined,
): Actor & { address: string; userAgent: string } {
  const client = {
    address: toAddress(request),
    userAgent: request.headers.get('user-agent') ?? '',
  }
  if (!admitted) return { kind: 'anonymous', ...client }
  const { account, token } = admitted
  if (token) return { kind: 'token', accountId: account.id, token, ...client }
  return { kind: 'account', accountId: account.id, sessionId: admitted.session.id, ...client }
}

/** Returns the key of a request's concurrency limit. Tokens do not delay sessions. */
function toLane({ account, token }: Admitted): string {
  return token ? `tokens of ${account.id}` : account.id
}

/** Returns the connections for a request, and for the share that its cost belongs to. */
function choosePool(
  { pool, sessions }: SessionGuardOptions,
  scope: ActionScope,
  admitted: Admitted | undefined,
  address: string,
): Pool {
  if (admitted === undefined) return sessions.of(toNetwork(address))
  if (scope === 'anyone' || scope === 'account' || scope === 'token')
    return sessions.of(admitted.account.id)
  return pool.of(admitted.organizationId ?? admitted.account.id)
}

interface Ids {
  organizationId: string | undefined
  projectId: string | undefined
}

interface Entry {
  call: Call
  scope: ActionScope
  action: Action
  ids: Ids
  /** The bearer token of the request, of whatever form. */
  bearer: string | undefined
  /** False if the request was counted before. */
  isCounting: boolean
}

/** Returns the account of a request if it may do the action. Throws like `authorize`. */
async function admit(
  gate: SessionGuardOptions,
  request: Request,
  entry: Entry,
): Promise<AdmittedCaller | undefined> {
  const { scope, action } = entry
  const admitted =
    entry.bearer === undefined
      ? await admitCookie(gate, request, entry)
      : await admitBearer(gate, request, { ...entry, bearer: entry.bearer })
  try {
    authorize(
      admitted && toRequester(admitted),
      action,
      admitted && (scope === 'organization' || scope === 'project')
        ? { kind: scope, role: exists(admitted, scope) ? admitted.role : undefined }
        : undefined,
    )
  } catch (error) {
    if (admitted) {
      const actor = toActor(gate, request, admitted)
      countRefusal(gate, { admitted, actor, action }, error)
    }
    throw error
  }
  return admitted
}

async function admitCookie(
  gate: SessionGuardOptions,
  request: Request,
  { scope, ids }: Entry,
): Promise<AdmittedSession | undefined> {
  const admitted = await findSession(gate, request, ids)
  // Actions open to anyone stay available with an expired cookie, even after many failures.
  if (admitted || scope === 'anyone') return admitted
  if (gate.cookies.has(request.headers, 'session')) {
    await gate.failedAuthentications.countFailure(gate.toAddress(request))
  }
  if (MANAGEMENT_TOKEN.isIn(request.url)) {
    throw new Fault(
      'signed_out',
      'Send the token in the Authorization header. Withdraw this one, because URLs end up in logs.',
    )
  }
  return undefined
}

/** Throws `signed_out` for an invalid token, and `rate_limited`. */
async function admitBearer(
  gate: SessionGuardOptions,
  request: Request,
  { call, ids, bearer, isCounting }: Entry & { bearer: string },
): Promise<AdmittedToken> {
  const found = await gate.failedAuthentications.lookUp(
    MANAGEMENT_TOKEN.isWellFormed(bearer) ? hashToken(bearer) : undefined,
    (hash, share) =>
      gate.sessions.of(share).run(sql => gate.tokens.admit(sql, { hash, isCounting, ...ids })),
    () => gate.toAddress(request),
  )
  if (!found) throw invalidToken(bearer)
  const { admitted, rateLimit } = found
  if (rateLimit) {
    call.headers = { ...HEADERS, ...toRateLimitHeaders(rateLimit) }
    if (!rateLimit.isAllowed) throw tooManyRequests(rateLimit.retryAfter)
  }
  return admitted
}

/** Returns the error for a token that is not accepted. An API key gets a hint by its form. */
function invalidToken(bearer: string): Fault {
  const message = API_KEY.isWellFormed(bearer)
    ? 'This is an API key, which opens /v1. Use a management token for /api.'
    : 'The management token is invalid, expired or withdrawn'
  return new Fault('signed_out', message, { 'WWW-Authenticate': 'Bearer' })
}

/** A request that may be refused. */
interface Refusable {
  admitted: Admitted | undefined
  actor: Actor
  action: Action
}

/**
 * Counts the refusal of a role, or of an account that is not a member. A request for a verification
 * is neither, and without an organization nobody could read about it.
 */
function countRefusal(
  { refusals }: SessionGuardOptions,
  { admitted, actor, action }: Refusable,
  error: unknown,
): void {
  if (!(error instanceof Fault) || admitted?.organizationId === undefined) return
  const { organizationId, role } = admitted
  const isStranger = role === undefined
  if (error.code !== (isStranger ? 'not_found' : 'forbidden')) return
  refusals.count({ tenant: { organizationId }, actor, isStranger, action })
}

/** Returns the session in a request's cookie. A cookie of a wrong form costs no query. */
export async function findSession(
  {
    sessions,
    cookies,
    failedAuthentications,
    toAddress,
  }: Pick<SessionGuardOptions, 'sessions' | 'cookies' | 'failedAuthentications' | 'toAddress'>,
  request: Request,
  ids: Partial<Ids> = {},
): Promise<AdmittedSession | undefined> {
  const token = cookies.read(request.headers, 'session')
  if (token === undefined) return undefined
  return failedAuthentications.find(
    hashSecret(token),
    (hash, share) => sessions.of(share).run(sql => admitSession(sql, { hash, ...ids })),
    () => toAddress(request),
  )
}

/** Returns the uuids in the path of the organization and project that the request is about. */
function toIds(params: unknown): Ids {
  const { organizationId, projectId } = (params ?? {}) as Partial<Record<keyof Ids, string>>
  return {
    organizationId: organizationId === undefined ? undefined : parseId('org', organizationId),
    projectId: projectId === undefined ? undefined : parseId('prj', projectId),
  }
}

function exists(admitted: Admitted, scope: 'organization' | 'project'): boolean {
  return (scope === 'project' ? admitted.projectId : admitted.organizationId) !== undefined
}
