import type { ProviderSettings } from '../../base/config/openid.ts'
import { Fault, type FaultCode } from '../../base/errors.ts'
import { transact, type Pool } from '../../database/pool.ts'
import type { Tx } from '../../database/sql.ts'
import { publicRoutes } from '../../http/public-route.ts'
import { checkHost } from '../../http/site.ts'
import type { Actor } from '../audit/audit.ts'
import { countRefusedSignIn, findPoolOfVisitor, findSession } from '../guard/find-caller.ts'
import type { Cookies } from '../guard/secret.ts'
import type { AdmittedSession } from '../guard/sessions.ts'
import { lockOwnAccount } from '../sign-in/account.ts'
import { verifySession } from '../sign-in/sign-in.ts'
import { connect, findConnectedAccount } from './connections.ts'
import {
  keepFlow,
  markUsed,
  readFlow,
  toConfirmation,
  type Visit,
  VisitProblem,
  type ProblemCode,
} from './flow.ts'
import { getProvider, type OpenidParts } from './provider-routes.ts'
import type { Profile } from './profile.ts'
import { CLOCK_TOLERANCE_S } from './provider-client.ts'
import { signInVisitor } from './sign-in.ts'
import { finishVisit } from './visit.ts'

const PATH = /^\/openid\/([a-z0-9-]{1,40})\/callback$/
/** Times of a provider are in whole seconds. */
const ROUNDING_S = 1
/** As long as a flow may be kept, and a reserve. */
const STATE_S = 1_200

/** The route to which a provider sends the browser back. It redirects to a page. */
export function callbackRoutes(parts: Omit<OpenidParts, 'guard'>) {
  const { site, cookiesOf, providers, clients, hints, failedAuthentications } = parts

  async function respond(request: Request): Promise<Response> {
    checkHost(request.headers, site)
    // Previews of links send HEAD, which would use up the state.
    if (request.method !== 'GET') throw new Fault('method_not_allowed', 'This path allows only GET')
    const { pathname, search } = new URL(request.url)
    const name = PATH.exec(pathname)?.[1] ?? ''
    const address = parts.toAddress(request)
    const cookies = cookiesOf(request.headers)
    const flow = readFlow(parts.secrets, cookies)
    const visit = flow?.kind === 'visit' ? flow : undefined
    // Each one can cost a request to the provider. After a wait, the browser can open it again.
    await failedAuthentications.countFailure(address)
    try {
      // A response of one provider must not be taken for that of another.
      const isExpected =
        visit?.provider === name && new URLSearchParams(search).get('state') === visit.state
      if (!visit || !isExpected) throw new VisitProblem('expired')
      const admitted = await findSession(parts, request)
      const pool = admitted
        ? parts.sessions.of(admitted.account.id)
        : await findPoolOfVisitor(parts, request)
      const provider = getProvider(providers, name)
      if (provider.issuer !== visit.issuer) throw new VisitProblem('expired')
      if (!(await pool.run(sql => markUsed(sql, visit.state, STATE_S)))) {
        throw new VisitProblem('expired')
      }
      const profile = await finishVisit(clients, { provider, site }, { visit, query: search })
      const done = await finish(request, { pool, provider, visit, profile, address })
      failedAuthentications.uncountFailure(address)
      hints.send([{ kind: 'access' }])
      return redirect(done.path, done.cookies)
    } catch (error) {
      const code = toCode(error)
      if (code === undefined) throw error
      if (visit?.purpose === 'signIn' && code !== 'cancelled') {
        const from = { address, userAgent: request.headers.get('user-agent') ?? '' }
        countRefusedSignIn(parts.refusals, toActor(from), `${visit.provider} ${code}`)
      }
      return redirect(toProblemPath(visit, name, code), visit ? [cookies.clear('openid')] : [])
    }
  }

  interface Finished {
    pool: Pool
    provider: ProviderSettings
    visit: Visit
    profile: Profile
    address: string
  }

  async function finish(
    request: Request,
    { pool, provider, visit, profile, address }: Finished,
  ): Promise<{ path: string; cookies: string[] }> {
    const admitted = await findSession(parts, request)
    const userAgent = request.headers.get('user-agent') ?? ''
    const from = { address, userAgent }
    const cookies = cookiesOf(request.headers)
    if (visit.purpose !== 'signIn') {
      if (!admitted || admitted.session.id !== visit.sessionId) throw new VisitProblem('expired')
      const { account, session } = admitted
      const actor: Actor = {
        kind: 'account',
        accountId: account.id,
        sessionId: session.id,
        ...from,
      }
      const kept = await transact(pool, tx =>
        visit.purpose === 'connect'
          ? connectOwn(tx, actor, admitted, { provider, profile })
          : verify(tx, { admitted, actor, cookies }, { profile, visit }),
      )
      return { path: visit.next, cookies: [...kept, cookies.clear('openid')] }
    }
    const result = await transact(pool, tx =>
      signInVisitor(
        tx,
        { provider, profile },
        {
          visit: { admitted, cookies, ...from, actor: toActor(from) },
          invite: visit.invite,
          isInstalled: visit.isInstalled,
        },
      ),
    )
    if (result !== 'confirm')
      return { path: visit.next, cookies: [...result, cookies.clear('openid')] }
    const confirmation = keepFlow(parts.secrets, cookies, toConfirmation({ provider, profile }))
    const query = new URLSearchParams({ next: visit.next })
    return { path: `/sign-in?${query}`, cookies: [confirmation] }
  }

  return publicRoutes('openid.callback', [{ path: '/openid/:provider/callback', respond }])
}

/** Confirms that the account of a session is present. Returns Set-Cookie values. */
async function verify(
  tx: Tx,
  call: { admitted: AdmittedSession; actor: Actor; cookies: Cookies },
  { profile, visit }: { profile: Profile; visit: Visit },
): Promise<string[]> {
  if ((await findConnectedAccount(tx, profile)) !== call.admitted.account.id) {
    throw new VisitProblem('otherAccount')
  }
  const { authTime, issuedAt, isMultiFactor } = profile
  const visitS = (Date.now() - visit.startedAtMs) / 1000
  // The visit asks with `max_age`, so the provider must say when it asked for a credential. Each
  // duration is by one clock, because the clocks of the two servers differ.
  if (authTime === undefined || issuedAt - authTime > visitS + ROUNDING_S) {
    throw new VisitProblem('stale')
  }
  if (authTime > Date.now() / 1000 + CLOCK_TOLERANCE_S) throw new VisitProblem('clock')
  return [await verifySession(tx, call, { isMultiFactor })]
}

/** Connects the signed-in account, whose e-mail address the provider must have verified. */
async function connectOwn(
  tx: Tx,
  actor: Actor,
  admitted: AdmittedSession,
  { provider, profile }: { provider: ProviderSettings; profile: Profile },
): Promise<string[]> {
  const { email } = await lockOwnAccount(tx, admitted)
  if (profile.email === undefined) throw new VisitProblem('unverified')
  if (profile.email !== email) throw new VisitProblem('address')
  const { issuer, subject } = profile
  await connect(tx, actor, admitted.account.id, { issuer, subject, provider: provider.name })
  return []
}

function toActor(from: { address: string; userAgent: string }): Actor & { address: string } {
  return { kind: 'anonymous', ...from }
}

/** The problems of faults that are no bugs. The session may have changed during the visit. */
const PROBLEMS: Partial<Record<FaultCode, ProblemCode>> = {
  not_found: 'expired',
  conflict: 'expired',
  signed_out: 'expired',
  second_factor_needed: 'expired',
  unavailable: 'unavailable',
}

/** Returns the problem to show on a page, or undefined for a bug. */
function toCode(error: unknown): ProblemCode | undefined {
  if (error instanceof VisitProblem) return error.code
  if (!(error instanceof Fault)) return undefined
  return PROBLEMS[error.code]
}

/** Returns the page that explains a problem: the sign-in page, or the page of the account. */
function toProblemPath(visit: Visit | undefined, provider: string, problem: ProblemCode): string {
  const query = new URLSearchParams({ provider, problem })
  if (visit && visit.purpose !== 'signIn') return `/account?${query}`
  if (visit && visit.next !== '/') query.set('next', visit.next)
  return `/sign-in?${query}`
}

function redirect(path: string, cookies: readonly string[]): Response {
  const response = new Response(null, {
    status: 303,
    headers: {
      Location: path,
      'Cache-Control': 'no-store',
      // The code in the address must not reach another server.
      'Referrer-Policy': 'no-referrer',
    },
  })
  for (const cookie of cookies) response.headers.append('Set-Cookie', cookie)
  return response
}
