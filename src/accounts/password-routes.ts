import { Type } from '@sinclair/typebox'
import { writeAudit } from '../audit/audit.ts'
import type { Pool } from '../db/pool.ts'
import type { Tx } from '../db/sql.ts'
import { transact } from '../db/transaction.ts'
import { toSuccess } from '../http/envelope.ts'
import { invalidField } from '../http/validation.ts'
import { toId } from '../ids.ts'
import { toPassword } from '../passwords/policy.ts'
import { getAccount } from './account.ts'
import type { Cookies } from './cookies.ts'
import { getCredentials, lockCredentials, tryPassword, wrongCredentials } from './credentials.ts'
import type { Credentials } from './credentials.ts'
import { apiEndpoint, type ApiCall, type ApiEndpoint } from './endpoint.ts'
import { checkPassword, hashPassword } from './passwords.ts'
import { withdrawResetLinks } from './resets.ts'
import { Account, Ended, Password } from './schema.ts'
import { endSessions, rotateSession, toCookieSeconds } from './sessions.ts'
import { forgetTries } from './throttle.ts'

interface PasswordParts {
  pool: Pool
  getCookies(): Cookies
}

/** The password of whoever is signed in: typing it again, and changing it. */
export function passwordRoutes({ pool, getCookies }: PasswordParts): ApiEndpoint[] {
  return [
    apiEndpoint({
      method: 'POST',
      path: '/api/session/verify',
      action: 'account.verify',
      body: Type.Object({ password: Password }),
      success: { status: 200, data: Account },
      async handle(call) {
        const credentials = await proveOneself(call, call.body.password)
        const { session } = call.admitted
        const { fresh, account } = await transact(pool, async tx => {
          const fresh = await renew(tx, call, credentials)
          await writeAudit(tx, call.actor, {
            action: 'session.verified',
            target: toId('ses', session.id),
          })
          return { fresh, account: await getAccount(tx, { ...call.admitted, isVerified: true }) }
        })
        return {
          status: 200,
          body: toSuccess(JSON.stringify(account), call.requestId),
          headers: {},
          cookies: [keepSession(call, fresh)],
        }
      },
    }),
    apiEndpoint({
      method: 'PUT',
      path: '/api/me/password',
      action: 'account.changePassword',
      body: Type.Object({ currentPassword: Password, newPassword: Password }),
      success: { status: 200, data: Ended },
      async handle(call) {
        const { currentPassword, newPassword } = call.body
        const { person, session } = call.admitted
        checkPassword(newPassword, person, 'newPassword')
        if (toPassword(newPassword) === toPassword(currentPassword)) {
          throw invalidField('newPassword', 'invalid_value', 'Must differ from the current one')
        }
        const credentials = await proveOneself(call, currentPassword)
        const hash = await hashPassword(newPassword)
        const { fresh, sessionsEnded } = await transact(pool, async tx => {
          const fresh = await renew(tx, call, credentials)
          await tx`update people set password_hash = ${hash} where id = ${person.id}`
          const sessionsEnded = await endSessions(tx, person.id, session.id)
          await withdrawResetLinks(tx, person.id)
          await writeAudit(tx, call.actor, {
            action: 'password.changed',
            target: toId('per', person.id),
            details: { sessionsEnded },
          })
          return { fresh, sessionsEnded }
        })
        return {
          status: 200,
          body: toSuccess(JSON.stringify({ sessionsEnded }), call.requestId),
          headers: {},
          cookies: [keepSession(call, fresh)],
        }
      },
    }),
  ]

  /** Throws unless the password is that of whoever is signed in. A stolen session must not become a way to guess it. */
  async function proveOneself(call: Proving, password: string): Promise<Credentials> {
    const { person, session } = call.admitted
    const credentials = await pool.run(sql => getCredentials(sql, person.id))
    const lane = { kind: 'session', sessionId: session.id } as const
    if (await tryPassword(pool, lane, { password, credentials })) return credentials
    await transact(pool, tx =>
      writeAudit(tx, call.actor, {
        action: 'password.refused',
        target: toId('per', person.id),
      }),
    )
    throw wrongCredentials()
  }

  function keepSession({ admitted: { session } }: Proving, token: string): string {
    return getCookies().keep('session', token, toCookieSeconds(session))
  }
}

type Proving = Pick<ApiCall<'account.verify', undefined, undefined>, 'admitted' | 'actor' | 'token'>

/** The new token of the session, now that its person was proven by `credentials`. */
async function renew(
  tx: Tx,
  { admitted: { session }, token = '' }: Proving,
  credentials: Credentials,
): Promise<string> {
  await lockCredentials(tx, credentials)
  await forgetTries(tx, { kind: 'session', sessionId: session.id }, credentials.email)
  return rotateSession(tx, { id: session.id, token })
}
