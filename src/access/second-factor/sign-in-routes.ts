import { Elysia } from 'elysia'
import { lockAccount } from '../sign-in/account.ts'
import { findCredentials } from '../sign-in/credentials.ts'
import { Account } from '../sign-in/schema.ts'
import { signIn } from '../sign-in/sign-in.ts'
import { endStep, findStep } from '../sign-in/sign-in-steps.ts'
import { writeAudit } from '../audit/audit.ts'
import { transact } from '../../database/pool.ts'
import { Fault } from '../../base/errors.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { toId } from '../../base/ids.ts'
import { acceptCode, tryCode } from './authenticator-app.ts'
import { countRecoveryCodes } from './recovery-codes.ts'
import { CodeBody, type SecondFactorParts } from './routes.ts'

/** The route of the second step of a sign-in with a password. */
export function codeSignInRoutes({ guard, secrets }: SecondFactorParts) {
  return new Elysia({ name: 'second-factor.sign-in' }).use(guard).post(
    '/api/session/code',
    async ({ call, body: { code } }) => {
      const { pool, address, userAgent, cookies } = call
      const cookie = cookies.read('step')
      const step = cookie && (await pool.run(sql => findStep(sql, secrets, cookie)))
      if (!step) {
        await call.countFailure()
        throw stepEnded()
      }
      const { accountId, email, isInstalled } = step
      const device = cookies.read('device')
      const { scope } = await pool.run(sql => findCredentials(sql, { email, address, device }))
      const actor = { kind: 'anonymous', address, userAgent } as const
      const target = toId('per', accountId)
      const signedIn = await tryCode(pool, { ...scope, factor: 'code' }, async tx => {
        await lockAccount(tx, accountId)
        const method = await acceptCode(tx, secrets, { accountId, code })
        if (!method) return undefined
        if (!(await endStep(tx, secrets, cookie))) throw stepEnded()
        if (method === 'recovery') {
          const details = { codesLeft: await countRecoveryCodes(tx, accountId) }
          await writeAudit(tx, actor, { action: 'recoveryCodes.used', target, details })
        }
        const how = { method: 'password', isMultiFactor: true } as const
        return signIn(tx, call, { accountId, ...how, isInstalled })
      }).catch(async (error: unknown) => {
        if (error instanceof Fault && error.code === 'wrong_credentials') {
          const details = { factor: 'code' }
          await transact(pool, tx =>
            writeAudit(tx, actor, { action: 'session.refused', target, details }),
          )
        }
        throw error
      })
      return succeed(call, 200, signedIn.account, {
        cookies: [...signedIn.cookies, cookies.clear('step')],
      })
    },
    {
      anyone: 'session.create',
      body: CodeBody,
      response: {
        200: SuccessOf(Account, 'You are signed in. The cookie contains the session.'),
      },
      detail: {
        operationId: 'signInWithCode',
        summary: 'Sign in: send the code after the password',
        tags: ['Account'],
      },
    },
  )
}

function stepEnded(): Fault {
  return new Fault('conflict', 'The password was entered too long ago. Sign in again.')
}
