import type { Cookies } from '../accounts/cookies.ts'
import { hashSecret } from '../accounts/secret.ts'
import { admitSession } from '../accounts/sessions.ts'
import type { Pool } from '../db/pool.ts'
import { Fault } from '../errors.ts'
import { toFailure } from '../http/failures.ts'
import { toResponse } from '../http/response.ts'
import { checkSameSite, type Site } from '../http/site.ts'
import { countStranger, type Strangers } from '../limits/strangers.ts'
import { requests } from '../metrics.ts'

export const FEED_PATH = '/api/feed'

export interface GuardOptions {
  pool: Pool
  getSite(): Site
  getCookies(): Cookies
  strangers: Strangers
  toAddress(request: Request): string
  /** Why no more sockets are taken at the moment; undefined when they are. */
  findObstacle(): Fault | undefined
}

/** Who has opened a socket. */
export interface Visitor {
  sessionId: string
  personId: string
}

/**
 * Who asks for a socket, or the answer that refuses it. A browser lets any page open a socket to anywhere, with our
 * cookie on it, and no CORS stands before that: so the Origin must be there, and be ours, whatever else is said.
 */
export function createGuard(
  options: GuardOptions,
): (request: Request) => Promise<Visitor | Response> {
  async function admit(request: Request): Promise<Visitor> {
    const { headers, method } = request
    const site = options.getSite()
    if (method !== 'GET') throw new Fault('method_not_allowed', 'Use GET here', { Allow: 'GET' })
    if (!site.isOwnHost(headers.get('host') ?? ''))
      throw new Fault('wrong_host', `This server is ${site.url}`)
    if (headers.get('origin') === null)
      throw new Fault(
        'cross_site',
        'Only pages of this server may do this: send its address as Origin',
      )
    checkSameSite(headers, site)
    const obstacle = options.findObstacle()
    if (obstacle) throw obstacle
    const token = options.getCookies().read(headers, 'session')
    if (token === undefined) throw new Fault('signed_out', 'Sign in first')
    const admitted = await options.pool.run(sql => admitSession(sql, { hash: hashSecret(token) }))
    if (admitted) return { sessionId: admitted.session.id, personId: admitted.person.id }
    countStranger(options.strangers, options.toAddress(request))
    throw new Fault('signed_out', 'Sign in first')
  }

  return async request => {
    try {
      const visitor = await admit(request)
      requests.inc({ route: FEED_PATH, status: 101 })
      return visitor
    } catch (error) {
      const requestId = crypto.randomUUID()
      const answer = toFailure(error, requestId)
      requests.inc({ route: FEED_PATH, status: answer.status })
      return toResponse(answer, requestId, { 'Referrer-Policy': 'no-referrer', Vary: 'Cookie' })
    }
  }
}
