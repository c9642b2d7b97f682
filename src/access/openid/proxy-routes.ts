import { Elysia } from 'elysia'
import { countRefusedSignIn } from '../guard/find-caller.ts'
import { transact } from '../../database/pool.ts'
import { Fault } from '../../base/errors.ts'
import { PROXY } from '../../base/config/openid.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { keepFlow, toConfirmation, VisitProblem } from './flow.ts'
import { NoData } from '../guard/schema.ts'
import type { OpenidParts } from './provider-routes.ts'
import { NeedsConfirmation, ProxyBody } from './schema.ts'
import { atProxy, signInVisitor } from './sign-in.ts'

/** The route that signs in with the e-mail address that a trusted proxy has sent. */
export function proxyRoutes(parts: OpenidParts) {
  const { guard, refusals, findProxyEmail } = parts
  return new Elysia({ name: 'openid.proxy' }).use(guard).post(
    '/api/session/proxy',
    async ({ call, body: { invite = null, isInstalled = false }, request }) => {
      const email = findProxyEmail(request)
      if (email === undefined) {
        throw new Fault('forbidden', 'No trusted proxy has sent your e-mail address')
      }
      const person = atProxy(email)
      try {
        const kept = await transact(call.pool, tx =>
          signInVisitor(tx, person, { visit: call, invite, isInstalled }),
        )
        if (kept !== 'confirm') return succeed(call, 200, {}, { cookies: kept })
        const confirmation = keepFlow(parts.secrets, call.cookies, toConfirmation(person))
        return succeed(call, 202, { needs: 'confirmation' }, { cookies: [confirmation] })
      } catch (error) {
        if (!(error instanceof VisitProblem)) throw error
        const { actor, address } = call
        countRefusedSignIn(refusals, { ...actor, address }, `${PROXY.name} ${error.code}`)
        throw new Fault('forbidden', toMessage(error, email))
      }
    },
    {
      anyone: 'session.create',
      body: ProxyBody,
      response: {
        200: SuccessOf(NoData, 'You are signed in. The cookie contains the session.'),
        202: SuccessOf(NeedsConfirmation, 'Sign in another way, and confirm the connection.'),
      },
      detail: {
        operationId: 'signInWithProxy',
        summary: 'Sign in with the e-mail address that your proxy sends',
        description:
          'The header is believed only from `TRUSTED_PROXIES`. The account of an operator, or one with a second factor or in an organization that requires one, is connected once: sign in another way, then send `POST /api/openid/confirmation`.',
        tags: ['Account'],
      },
    },
  )
}

function toMessage({ code }: VisitProblem, email: string): string {
  switch (code) {
    case 'invite':
      return 'This invite was used, has expired, or is for another e-mail address. Ask for another one.'
    case 'unknown':
      return `No account has the e-mail address ${email}. Ask an admin to invite you.`
    default:
      return 'Another request has just signed in. Try again.'
  }
}
