import { checkAccount, findSession } from '../../access/guard/find-caller.ts'
import type { CookiesOf } from '../../access/guard/secret.ts'
import { Fault } from '../../base/errors.ts'
import { countRequest } from '../../base/metrics.ts'
import { readBearer } from '../../base/token-form.ts'
import type { Pool } from '../../database/pool.ts'
import { fail, newCall } from '../../http/call.ts'
import type { FailedAuthentications } from '../../http/limits/failed-authentications.ts'
import { checkSameOrigin, type Site } from '../../http/site.ts'

export const FEED_PATH = '/api/feed'
const HEADERS = { 'Referrer-Policy': 'no-referrer', Vary: 'Cookie' }

export interface SocketGuardOptions {
  /** For sessions. No request for data uses it. */
  sessions: Pool
  site: Site
  cookiesOf: CookiesOf
  failedAuthentications: FailedAuthentications
  toAddress(request: Request): string
  /** Returns the error for a new socket, if none is accepted now. */
  findRefusal(): Fault | undefined
}

/** The session that opened a socket, and its account; uuids. */
export interface SocketSession {
  sessionId: string
  accountId: string
}

/**
 * Authenticates requests for a socket. The guard returns the session, or a response that refuses
 * the request. A browser lets any page open a socket to any server, with cookies and without CORS.
 * So the Origin header is required and must be this server's.
 */
export function createSocketGuard(
  options: SocketGuardOptions,
): (request: Request) => Promise<SocketSession | Response> {
  async function admit(request: Request): Promise<SocketSession> {
    const { headers, method } = request
    const { site } = options
    if (method !== 'GET')
      throw new Fault('method_not_allowed', 'Use GET for the live feed', { Allow: 'GET' })
    if (!site.isOwnHost(headers.get('host') ?? ''))
      throw new Fault('wrong_host', `This server is ${site.url}`)
    if (headers.get('origin') === null)
      throw new Fault(
        'cross_site',
        'Only pages of this server may open the live feed. Send its URL as Origin.',
      )
    checkSameOrigin(headers, site)
    if (readBearer(headers.get('authorization')) !== undefined)
      throw new Fault('forbidden', 'Tokens cannot open the live feed. Sign in to the dashboard.')
    const refusal = options.findRefusal()
    if (refusal) throw refusal
    const admitted = await findSession(options, request)
    checkAccount(admitted, new URL(request.url).searchParams.get('account'))
    if (admitted) return { sessionId: admitted.session.id, accountId: admitted.account.id }
    if (options.cookiesOf(headers).has('session'))
      await options.failedAuthentications.countFailure(options.toAddress(request))
    throw new Fault('signed_out', 'Sign in first')
  }

  return async request => {
    const call = { ...newCall(request.method), route: FEED_PATH, headers: HEADERS }
    try {
      const session = await admit(request)
      countRequest(call, 101)
      return session
    } catch (error) {
      return fail(call, error)
    }
  }
}
