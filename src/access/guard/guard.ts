import { Elysia } from 'elysia'
import type { Actor } from '../audit/audit.ts'
import type { Pool } from '../../database/pool.ts'
import type { Sql } from '../../database/sql.ts'
import type { Hints } from '../../base/hints.ts'
import { accepts } from '../../http/compression.ts'
import {
  acquireSlot,
  succeed,
  succeedJson,
  withCall,
  type Call,
  type GuardedCall,
} from '../../http/call.ts'
import { toSessionOperation } from '../../http/operation.ts'
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
import { checkHost, checkSameOrigin, type Site } from '../../http/site.ts'
import { parseId } from '../../base/ids.ts'
import type { Semaphore } from '../../base/semaphore.ts'
import { readBearer } from '../../base/token-form.ts'
import { listCredentials } from './authorize.ts'
import type { Admitted, AdmittedToken, Ids } from './caller.ts'
import {
  admit,
  countRefusal,
  findPoolOfVisitor,
  toActor,
  type AdmissionOptions,
} from './find-caller.ts'
import { revokesAccess, type ActionOn, type ActionScope, type Role } from './permissions.ts'
import type { Cookies } from './secret.ts'
import type { AdmittedCaller, AdmittedSession } from './sessions.ts'

/** The dependencies of the guard of /api. */
export interface SessionGuardOptions extends AdmissionOptions {
  /** For the data of organizations. */
  pool: Pool
  site: Site
  /** Limits concurrent requests per account. */
  concurrency: Semaphore
  hints: Hints
  inputLimits: InputLimits
}

/** A request that the permissions of its route allow. */
export interface SessionCall extends GuardedCall {
  readonly guard: 'session'
  /** The connections of its share: of its organization, account, known browser, or network. */
  readonly pool: Pool
  /** For the audit log. */
  readonly actor: Actor
  readonly cookies: Cookies
  readonly address: string
  readonly userAgent: string
  /** Counts a failed authentication of the client. Throws `rate_limited`. */
  countFailure(): Promise<void>
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
  Vary: 'Cookie, Authorization, Accept-Encoding',
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
          // Only GET, because responses with secrets are not compressed: their length would tell
          // something about them.
          call.acceptsGzip =
            request.method === 'GET' &&
            accepts(request.headers.get('accept-encoding') ?? '', 'gzip')
          const incoming = { request, call, route }
          const params = readPath(incoming, path)
          checkHost(request.headers, gate.site)
          const bearer = readBearer(request.headers.get('authorization'))
          if (request.method !== 'GET' && bearer === undefined) {
            checkSameOrigin(request.headers, gate.site)
          }
          const entry = { call, scope, action, ids: toIds(params), bearer }
          const admitted = await admit(gate, request, { ...entry, isCounting: true })
          const input = await readInput(incoming, {
            ...gate.inputLimits,
            isTypeRequired: true,
            caller: scope === 'anyone' ? undefined : admitted && toLane(admitted),
          })
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
          const pool = await choosePool(gate, scope, admitted, request)
          const call = toSessionCall(gate, { request, pool }, exchange, admitted)
          // Permissions may have changed while the request waited.
          if (hasWaited) await call.checkAccess()
          // Rules beyond the role of a route refuse in its handler.
          call.onFailure = error =>
            countRefusal(gate, { admitted, actor: call.actor, action }, error)
          // `admit` has checked that the fields of the scope exist.
          return { call: call as unknown as CallOn<P> }
        },
        // As an object, because Elysia would lose the types of all responses.
        ...((revokesAccess(action) && {
          afterHandle: () => gate.hints.send([{ kind: 'access' }]),
        }) as object),
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

/** Responds with what a query of the request returns: an object, or its JSON text. */
export async function succeedRead(
  call: SessionCall,
  read: (sql: Sql) => Promise<object | string>,
): Promise<Response> {
  const data = await call.pool.run(read)
  return typeof data === 'string' ? succeedJson(call, 200, data) : succeed(call, 200, data)
}

function toSessionCall(
  gate: SessionGuardOptions,
  { request, pool }: { request: Request; pool: Pool },
  call: Call,
  admitted: AdmittedCaller | undefined,
): SessionCall {
  const actor = toActor(gate, request, admitted)
  const { address, userAgent } = actor
  // The transform step has added `checkAccess`.
  return Object.assign(call as Call & Pick<SessionCall, 'checkAccess'>, {
    guard: 'session' as const,
    pool,
    organizationId: admitted?.organizationId,
    projectId: admitted?.projectId,
    role: admitted?.role,
    actor,
    cookies: gate.cookiesOf(request.headers),
    address,
    userAgent,
    countFailure: () => gate.failedAuthentications.countFailure(address),
  })
}

/** Returns the key of a request's concurrency limits. Tokens do not delay sessions. */
function toLane({ account, token }: Admitted): string {
  return token ? `tokens of ${account.id}` : account.id
}

/** Returns the connections for a request, and for the share that its cost belongs to. */
async function choosePool(
  gate: SessionGuardOptions,
  scope: ActionScope,
  admitted: Admitted | undefined,
  request: Request,
): Promise<Pool> {
  const { pool, sessions } = gate
  if (admitted === undefined) return findPoolOfVisitor(gate, request)
  if (scope === 'anyone' || scope === 'account' || scope === 'token')
    return sessions.of(admitted.account.id)
  return pool.of(admitted.organizationId ?? admitted.account.id)
}

/** Returns the uuids in the path of the organization and project that the request is about. */
function toIds(params: unknown): Ids {
  const { organizationId, projectId } = (params ?? {}) as Partial<Record<keyof Ids, string>>
  return {
    organizationId: organizationId === undefined ? undefined : parseId('org', organizationId),
    projectId: projectId === undefined ? undefined : parseId('prj', projectId),
  }
}
