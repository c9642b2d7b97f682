import { Elysia } from 'elysia'
import type { Actor } from '../audit/audit.ts'
import type { Refusals } from '../audit/refusals.ts'
import type { Pool } from '../db/pool.ts'
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
import type { Semaphore } from '../semaphore.ts'
import { type Cookies, hashSecret } from './secret.ts'
import {
  authorize,
  revokesAccess,
  type Action,
  type ActionOn,
  type ActionScope,
  type Role,
} from './permissions.ts'
import { admitSession, toRequester, type AdmittedSession } from './sessions.ts'

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
  bodyLimits: BodyLimits
  toAddress(request: Request): string
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
  account: { readonly admitted: AdmittedSession }
  installation: { readonly admitted: AdmittedSession }
  organization: {
    readonly admitted: AdmittedSession
    readonly organizationId: string
    readonly role: Role
  }
  project: {
    readonly admitted: AdmittedSession
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
  Vary: 'Cookie',
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
 * checks in this order: origin, session, permission, content type, body.
 */
export function createSessionGuard(gate: SessionGuardOptions) {
  const on =
    <P extends ActionScope>(scope: P) =>
    (action: ActionOn<P>) => {
      let route: RouteOptions = {}
      return {
        introspect(options: RouteOptions) {
          route = prepareRoute(options, given =>
            toSessionOperation(given, action, scope === 'anyone'),
          )
        },
        parse: deferBody,
        async transform({ exchange: call, request, route: path }: Arrived) {
          call.headers = HEADERS
          const incoming = { request, call, route }
          const params = readPath(incoming, path)
          checkHost(request.headers, gate.site)
          if (request.method !== 'GET') checkSameOrigin(request.headers, gate.site)
          const entry = { scope, action, ids: toIds(params) }
          const admitted = await admit(gate, request, entry)
          const input = await readInput(incoming, { ...gate.bodyLimits, isTypeRequired: true })
          // Permissions may have changed while the body arrived.
          Object.assign(call, {
            admitted: route.body ? await admit(gate, request, entry) : admitted,
            checkAccess: async () => void (await admit(gate, request, entry)),
          })
          return toContext({ params, ...input })
        },
        async resolve({ exchange, request }: { exchange: Call; request: Request }) {
          checkIssues(exchange)
          const { admitted } = exchange as unknown as ScopeFields['anyone']
          const hasWaited =
            admitted && (await acquireSlot(exchange, gate.concurrency, admitted.account.id))
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
  admitted: AdmittedSession | undefined,
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
  admitted: AdmittedSession | undefined,
): Actor & { address: string; userAgent: string } {
  const address = toAddress(request)
  const userAgent = request.headers.get('user-agent') ?? ''
  if (!admitted) return { kind: 'anonymous', address, userAgent }
  const { account, session } = admitted
  return { kind: 'account', accountId: account.id, sessionId: session.id, address, userAgent }
}

/** Returns the connections for a request, and for the share that its cost belongs to. */
function choosePool(
  { pool, sessions }: SessionGuardOptions,
  scope: ActionScope,
  admitted: AdmittedSession | undefined,
  address: string,
): Pool {
  if (admitted === undefined) return sessions.of(toNetwork(address))
  if (scope === 'anyone' || scope === 'account') return sessions.of(admitted.account.id)
  return pool.of(admitted.organizationId ?? admitted.account.id)
}

interface Ids {
  organizationId: string | undefined
  projectId: string | undefined
}

interface Entry {
  scope: ActionScope
  action: Action
  ids: Ids
}

/** Returns the session of a request if its account may do the action. Throws like `authorize`. */
async function admit(
  gate: SessionGuardOptions,
  request: Request,
  { scope, action, ids }: Entry,
): Promise<AdmittedSession | undefined> {
  const admitted = await findSession(gate, request, ids)
  // Actions open to anyone stay available with an expired cookie, even after many failures.
  if (!admitted && scope !== 'anyone' && gate.cookies.has(request.headers, 'session')) {
    await gate.failedAuthentications.countFailure(gate.toAddress(request))
  }
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

/** A request that may be refused. */
interface Refusable {
  admitted: AdmittedSession | undefined
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

function exists(admitted: AdmittedSession, scope: 'organization' | 'project'): boolean {
  return (scope === 'project' ? admitted.projectId : admitted.organizationId) !== undefined
}
