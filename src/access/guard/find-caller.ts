import { Fault } from '../../base/errors.ts'
import { toId } from '../../base/ids.ts'
import { API_KEY, hashToken, MANAGEMENT_TOKEN } from '../../base/token-form.ts'
import type { Pool } from '../../database/pool.ts'
import type { Queryable } from '../../database/sql.ts'
import type { Call } from '../../http/call.ts'
import { toNetwork, type FailedAuthentications } from '../../http/limits/failed-authentications.ts'
import { toRateLimitHeaders, tooManyRequests } from '../../http/limits/rate-limit.ts'
import type { Actor } from '../audit/audit.ts'
import type { Refusals } from '../audit/refusals.ts'
import { authorize } from './authorize.ts'
import type { Admitted, AdmittedToken, Ids } from './caller.ts'
import type { Action, ActionScope } from './permissions.ts'
import { hashSecret, type CookiesOf } from './secret.ts'
import { admitSession, type AdmittedCaller, type AdmittedSession } from './sessions.ts'
import { admitToken } from './tokens.ts'

/** The dependencies of the admission to /api. */
export interface AdmissionOptions {
  /** For sessions, accounts and known browsers. No request for data uses it. */
  sessions: Pool
  /** For all strangers together, so that they delay nobody else. Networks take turns. */
  strangers: Pool
  cookiesOf: CookiesOf
  failedAuthentications: FailedAuthentications
  /** Counts refused requests for the audit log. */
  refusals: Pick<Refusals, 'count'>
  toAddress(request: Request): string
}

/** A request to a route. */
export interface Entry {
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
export async function admit(
  gate: AdmissionOptions,
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
      admitted,
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
  gate: AdmissionOptions,
  request: Request,
  { scope, ids }: Entry,
): Promise<AdmittedSession | undefined> {
  const admitted = await findSession(gate, request, ids)
  checkAccount(admitted, request.headers.get('x-account'))
  // Actions open to anyone stay available with an expired cookie, even after many failures.
  if (admitted || scope === 'anyone') return admitted
  if (gate.cookiesOf(request.headers).has('session')) {
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
  gate: AdmissionOptions,
  request: Request,
  { call, ids, bearer, isCounting }: Entry & { bearer: string },
): Promise<AdmittedToken> {
  const found = await gate.failedAuthentications.lookUp(
    MANAGEMENT_TOKEN.isWellFormed(bearer) ? hashToken(bearer) : undefined,
    (hash, share) =>
      gate.sessions.of(share).run(sql => admitToken(sql, { hash, isCounting, ...ids })),
    () => gate.toAddress(request),
  )
  if (!found) throw invalidToken(bearer)
  const { admitted, rateLimit } = found
  if (rateLimit) {
    call.headers = { ...call.headers, ...toRateLimitHeaders(rateLimit) }
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

/**
 * Counts the refusal of a role, or of an account that is not a member. A request for a verification
 * is neither, and without an organization nobody could read about it.
 */
export function countRefusal(
  { refusals }: AdmissionOptions,
  { admitted, actor, action }: { admitted: Admitted | undefined; actor: Actor; action: Action },
  error: unknown,
): void {
  if (!(error instanceof Fault) || admitted?.organizationId === undefined) return
  const { organizationId, role } = admitted
  const isStranger = role === undefined
  if (error.code !== (isStranger ? 'not_found' : 'forbidden')) return
  refusals.count({ tenant: { organizationId }, actor, isStranger, action })
}

/** Counts a refused sign-in of no known account. `way` contains no text of the client. */
export function countRefusedSignIn(
  refusals: Pick<Refusals, 'count'>,
  actor: Actor & { address: string },
  way: string,
): void {
  refusals.count({ tenant: { network: toNetwork(actor.address, 48) }, actor, action: way })
}

/** Returns the session in a request's cookie. A cookie of a wrong form costs no query. */
export async function findSession(
  {
    sessions,
    cookiesOf,
    failedAuthentications,
    toAddress,
  }: Pick<AdmissionOptions, 'sessions' | 'cookiesOf' | 'failedAuthentications' | 'toAddress'>,
  request: Request,
  ids: Ids = {},
): Promise<AdmittedSession | undefined> {
  const token = cookiesOf(request.headers).read('session')
  if (token === undefined) return undefined
  return failedAuthentications.find(
    hashSecret(token),
    (hash, share) => sessions.of(share).run(sql => admitSession(sql, { hash, ...ids })),
    () => toAddress(request),
  )
}

/**
 * Throws `other_account` unless a page means the account of its session. Another tab of the browser
 * may have signed in to another account.
 */
export function checkAccount(admitted: AdmittedSession | undefined, meant: string | null): void {
  if (!admitted || meant === null || meant === toId('per', admitted.account.id)) return
  throw new Fault('other_account', 'This browser is signed in to another account. Reload the page.')
}

/**
 * Returns the connections for a request without a session: those of all strangers, unless its
 * browser is known to an account.
 */
export async function findPoolOfVisitor(
  { sessions, strangers, cookiesOf, failedAuthentications, toAddress }: AdmissionOptions,
  request: Request,
): Promise<Pool> {
  const device = cookiesOf(request.headers).read('device')
  const getAddress = () => toAddress(request)
  const known =
    device &&
    (await failedAuthentications.find(
      hashSecret(device),
      (hash, share) =>
        sessions
          .of(share)
          .run(async sql => ((await isKnownDevice(sql, hash)) ? sessions.of(hash) : undefined)),
      getAddress,
    ))
  // A /48 is what one site gets, so a site cannot invent networks.
  return known || strangers.of(toNetwork(getAddress(), 48))
}

/** Returns whether a browser is known to any account. */
async function isKnownDevice(sql: Queryable, hash: string): Promise<boolean> {
  const found = await sql`
    select from known_devices where hash = decode(${hash}, 'hex') limit 1
  `
  return found.count > 0
}

/** Returns the author of a request, for the audit log. */
export function toActor(
  { toAddress }: Pick<AdmissionOptions, 'toAddress'>,
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

function exists(admitted: Admitted, scope: 'organization' | 'project'): boolean {
  return (scope === 'project' ? admitted.projectId : admitted.organizationId) !== undefined
}
