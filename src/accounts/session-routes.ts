import { Type } from '@sinclair/typebox'
import { writeAudit } from '../audit/audit.ts'
import type { Pool } from '../db/pool.ts'
import { transact } from '../db/transaction.ts'
import { parseEmail } from '../email.ts'
import { Fault } from '../errors.ts'
import { PageOf, toSuccess } from '../http/envelope.ts'
import type { Answer } from '../http/failures.ts'
import { PageQuery } from '../http/paging.ts'
import { parseId, toId } from '../ids.ts'
import type { Cookies } from './cookies.ts'
import { findCredentials, lockCredentials, tryPassword, wrongCredentials } from './credentials.ts'
import { apiEndpoint, type ApiEndpoint } from './endpoint.ts'
import { lockPerson } from './people.ts'
import { Account, Email, Ended, Nothing, Password, SessionInfo } from './schema.ts'
import { endSession, endSessions, listSessions } from './sessions.ts'
import { endOwnSession, signIn, toSignedInAnswer } from './sign-in.ts'
import { forgetTries } from './throttle.ts'

interface SessionParts {
  pool: Pool
  getCookies(): Cookies
}

/** Signing in and out, and the browsers in which a person is signed in. */
export function sessionRoutes({ pool, getCookies }: SessionParts): ApiEndpoint[] {
  return [
    apiEndpoint({
      method: 'POST',
      path: '/api/session',
      action: 'session.create',
      body: Type.Object({
        email: Email,
        password: Password,
        isInstalled: Type.Optional(Type.Boolean()),
      }),
      success: { status: 200, data: Account },
      async handle(call) {
        const { email: typed, password, isInstalled } = call.body
        const email = parseEmail(typed) ?? ''
        const { address } = call
        const cookies = getCookies()
        const device = cookies.read(call.headers, 'device')
        const { found, lane } = await pool.run(sql =>
          findCredentials(sql, { email, address, device }),
        )
        if (!(await tryPassword(pool, lane, { password, credentials: found })) || !found) {
          // Never the address that was typed: people type passwords there.
          const target = found && toId('per', found.personId)
          const { userAgent } = call
          await transact(pool, tx =>
            writeAudit(
              tx,
              { kind: 'stranger', address, userAgent },
              { action: 'session.refused', target },
            ),
          )
          throw wrongCredentials()
        }
        const signedIn = await transact(pool, async tx => {
          await lockCredentials(tx, found)
          await forgetTries(tx, lane, email)
          return signIn(tx, call, { personId: found.personId, isInstalled, cookies })
        })
        return toSignedInAnswer(200, signedIn, call.requestId)
      },
    }),
    apiEndpoint({
      method: 'DELETE',
      path: '/api/session',
      action: 'session.end',
      success: { status: 200, data: Nothing },
      async handle({ admitted, address, userAgent, requestId }) {
        if (admitted) {
          await transact(pool, tx => endOwnSession(tx, admitted, { address, userAgent }))
        }
        return toSignedOutAnswer(getCookies(), '{}', requestId)
      },
    }),
    apiEndpoint({
      method: 'GET',
      path: '/api/sessions',
      action: 'sessions.read',
      query: PageQuery,
      success: { status: 200, data: PageOf(SessionInfo) },
      handle: async ({ admitted, query }) =>
        JSON.stringify(await pool.run(sql => listSessions(sql, admitted, query))),
    }),
    apiEndpoint({
      method: 'DELETE',
      path: '/api/sessions',
      action: 'sessions.end',
      success: { status: 200, data: Ended },
      async handle({ admitted, actor, requestId }) {
        const sessionsEnded = await transact(pool, async tx => {
          await lockPerson(tx, admitted.person.id)
          const sessionsEnded = await endSessions(tx, admitted.person.id)
          const target = toId('per', admitted.person.id)
          await writeAudit(tx, actor, {
            action: 'sessions.ended',
            target,
            details: { sessionsEnded },
          })
          return sessionsEnded
        })
        return toSignedOutAnswer(getCookies(), JSON.stringify({ sessionsEnded }), requestId)
      },
    }),
    apiEndpoint({
      method: 'DELETE',
      path: '/api/sessions/:sessionId',
      action: 'sessions.end',
      success: { status: 200, data: Nothing },
      async handle({ admitted, actor, params, requestId }) {
        const id = parseId('ses', params['sessionId'] ?? '')
        const isEnded =
          id !== undefined &&
          (await transact(pool, async tx => {
            if (!(await endSession(tx, admitted.person.id, id))) return false
            await writeAudit(tx, actor, { action: 'session.ended', target: toId('ses', id) })
            return true
          }))
        if (!isEnded) throw new Fault('not_found', 'No session of yours has this id')
        return id === admitted.session.id ? toSignedOutAnswer(getCookies(), '{}', requestId) : '{}'
      },
    }),
  ]
}

/** The browser forgets the session, and all that our pages keep there. */
function toSignedOutAnswer(cookies: Cookies, dataJson: string, requestId: string): Answer {
  return {
    status: 200,
    body: toSuccess(dataJson, requestId),
    headers: { 'Clear-Site-Data': '"cache", "storage"' },
    cookies: [cookies.clear('session')],
  }
}
