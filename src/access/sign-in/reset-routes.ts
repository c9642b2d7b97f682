import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { transact } from '../../database/pool.ts'
import { Fault } from '../../base/errors.ts'
import { succeed } from '../../http/call.ts'
import { ApiFailure, SuccessOf } from '../../http/envelope.ts'
import { Text } from '../../http/rules.ts'
import { closed } from '../../http/schema-parts.ts'
import { MAX_COOKIE_AGE_S } from '../guard/secret.ts'
import type { SessionGuard } from '../guard/guard.ts'
import { checkPassword, hashPassword } from './credentials.ts'
import { findResetAccount, resetPassword } from './reset-links.ts'
import { Password } from '../guard/schema.ts'

const Reset = Type.Object({ email: Type.String() }, closed)

/** The route that sets a new password with a reset link. */
export function resetRoutes({ guard }: { guard: SessionGuard }) {
  return new Elysia({ name: 'accounts.reset' }).use(guard).post(
    '/api/reset',
    async ({ call, body: { token, password } }) => {
      const { admitted, actor, cookies } = call
      const account = await call.pool.run(sql => findResetAccount(sql, token))
      if (!account) {
        await call.countFailure()
        throw linkNotFound()
      }
      const { accountId } = account
      checkPassword(password, account)
      const passwordHash = await hashPassword(password, account.email)
      const device = cookies.read('device')
      const reset = await transact(call.pool, tx =>
        resetPassword(tx, actor, { token, accountId, passwordHash, device }),
      )
      if (!reset) throw linkNotFound()
      const kept = [
        cookies.keep('device', reset.device, MAX_COOKIE_AGE_S),
        ...(admitted?.account.id === accountId ? [cookies.clear('session')] : []),
      ]
      return succeed(call, 200, { email: reset.email }, { cookies: kept })
    },
    {
      anyone: 'reset.complete',
      body: Type.Object(
        { token: Text({ minLength: 1, maxLength: 100 }), password: Password },
        {
          examples: [{ token: 'the token of the link', password: 'correct horse battery staple' }],
        },
      ),
      response: { 200: SuccessOf(Reset, 'The password is set. Sign in with it.'), 404: ApiFailure },
      detail: {
        operationId: 'resetPassword',
        summary: 'Set a new password with a reset link',
        description: 'Ends all sessions of the account.',
        tags: ['Account'],
      },
    },
  )
}

function linkNotFound(): Fault {
  return new Fault(
    'not_found',
    'This link was used, withdrawn, or has expired after an hour. Ask an owner for a new one, or run `tidings owner reset`.',
  )
}
