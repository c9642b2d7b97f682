import { Type } from '@sinclair/typebox'
import { writeAudit } from '../audit/audit.ts'
import type { Pool } from '../db/pool.ts'
import { transact } from '../db/transaction.ts'
import { Fault } from '../errors.ts'
import { toSuccess } from '../http/envelope.ts'
import { Text } from '../http/rules.ts'
import { closed } from '../http/shapes.ts'
import { toId } from '../ids.ts'
import { countStranger, type Strangers } from '../limits/strangers.ts'
import { LONGEST_S, type Cookies } from './cookies.ts'
import { forgetDevices, rememberDevice } from './devices.ts'
import { apiEndpoint, type ApiEndpoint } from './endpoint.ts'
import { checkPassword, hashPassword } from './passwords.ts'
import { lockPerson } from './people.ts'
import { findResetPerson, takeResetLink, withdrawResetLinks } from './resets.ts'
import { Password } from './schema.ts'
import { endSessions } from './sessions.ts'
import { forgetAccount } from './throttle.ts'

interface ResetParts {
  pool: Pool
  strangers: Strangers
  getCookies(): Cookies
}

/** Setting a new password by a link, without the old one. */
export function resetRoutes({ pool, strangers, getCookies }: ResetParts): ApiEndpoint[] {
  return [
    apiEndpoint({
      method: 'POST',
      path: '/api/reset',
      action: 'reset.complete',
      body: Type.Object({ token: Text({ minLength: 1, maxLength: 100 }), password: Password }),
      success: {
        status: 200,
        data: Type.Object({ email: Type.String() }, closed),
      },
      async handle({ body: { token, password }, admitted, actor, address, headers, requestId }) {
        const owner = await pool.run(sql => findResetPerson(sql, token))
        if (!owner) {
          countStranger(strangers, address)
          throw deadLink()
        }
        const { personId } = owner
        checkPassword(password, owner)
        const passwordHash = await hashPassword(password)
        const cookies = getCookies()
        const { email, device } = await transact(pool, async tx => {
          const { email } = await lockPerson(tx, personId)
          if (!(await takeResetLink(tx, token, personId))) throw deadLink()
          await tx`update people set password_hash = ${passwordHash} where id = ${personId}`
          const sessionsEnded = await endSessions(tx, personId)
          await withdrawResetLinks(tx, personId)
          await forgetAccount(tx, email)
          // This browser is theirs for sure: whoever goes on guessing elsewhere does not keep them from signing in.
          await forgetDevices(tx, personId)
          const device = await rememberDevice(tx, personId, cookies.read(headers, 'device'))
          await writeAudit(tx, actor, {
            action: 'password.reset',
            target: toId('per', personId),
            details: { sessionsEnded },
          })
          return { email, device }
        })
        return {
          status: 200,
          body: toSuccess(JSON.stringify({ email }), requestId),
          headers: {},
          cookies: [
            cookies.keep('device', device, LONGEST_S),
            ...(admitted?.person.id === personId ? [cookies.clear('session')] : []),
          ],
        }
      },
    }),
  ]
}

function deadLink(): Fault {
  return new Fault(
    'not_found',
    'This link was used, withdrawn, or is older than an hour: ask an owner, or run `tidings owner reset`, for a new one',
  )
}
