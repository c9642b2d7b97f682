import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { type Pool, transact } from '../db/pool.ts'
import { parseEmail } from '../config/values.ts'
import { Fault } from '../errors.ts'
import { succeed } from '../http/call.ts'
import { ApiFailure, SuccessOf } from '../http/envelope.ts'
import { Text } from '../http/rules.ts'
import type { FailedAuthentications } from '../limits/failed-authentications.ts'
import type { Cookies } from './secret.ts'
import type { SessionGuard } from './guard.ts'
import { Account, Email, Name, NoData, Password, toName } from './schema.ts'
import { createFirstOwner, hasOwner, isSetupLink } from './owners.ts'
import { checkPassword, hashPassword } from './credentials.ts'
import { signIn } from './sign-in.ts'

const tags = ['Server']

const SetupBody = Type.Object({
  token: Text({ minLength: 1, maxLength: 100 }),
  name: Name,
  email: Email,
  password: Password,
})

interface Parts {
  guard: SessionGuard
  pool: Pool
  failedAuthentications: FailedAuthentications
  cookies: Cookies
}

/** Claiming a new installation. These routes answer 404 once it has an owner. */
export function setupRoutes({ guard, pool, failedAuthentications, cookies }: Parts) {
  return new Elysia({ name: 'accounts.setup' })
    .use(guard)
    .get(
      '/api/setup',
      async ({ call }) => {
        if (await pool.run(hasOwner)) throw claimed()
        return succeed(call, 200, {})
      },
      {
        anyone: 'setup.read',
        response: {
          200: SuccessOf(NoData, 'The installation has no owner yet.'),
          404: ApiFailure,
        },
        detail: {
          operationId: 'getSetup',
          summary: 'Tell whether the installation still needs an owner',
          tags,
        },
      },
    )
    .post(
      '/api/setup',
      async ({ call, body: { token, name: typedName, email: typedEmail, password } }) => {
        const name = toName(typedName)
        const email = parseEmail(typedEmail) ?? ''
        if (await pool.run(hasOwner)) throw claimed()
        // Only the holder of a link can make the server hash a password, which is costly.
        if (!(await pool.run(sql => isSetupLink(sql, token)))) {
          failedAuthentications.countFailure(call.address)
          throw deadLink()
        }
        checkPassword(password, { email, name })
        const passwordHash = await hashPassword(password)
        const { account, cookies: kept } = await transact(pool, async tx => {
          if (!(await isSetupLink(tx, token))) throw deadLink()
          const accountId = await createFirstOwner(tx, call.actor, { name, email, passwordHash })
          if (accountId === undefined) throw claimed()
          return signIn(tx, call, { accountId, cookies })
        })
        return succeed(call, 201, account, { cookies: kept })
      },
      {
        anyone: 'setup.complete',
        body: SetupBody,
        response: {
          201: SuccessOf(Account, 'You own the installation and are signed in.'),
          404: ApiFailure,
        },
        detail: {
          operationId: 'completeSetup',
          summary: 'Create the first owner of the installation',
          description: 'The server prints the setup link, which holds the token, when it starts.',
          tags,
        },
      },
    )
}

function claimed(): Fault {
  return new Fault('not_found', 'This installation has its owner already: sign in')
}

function deadLink(): Fault {
  return new Fault(
    'not_found',
    'This setup link is not valid, or no longer: restart the server, it prints a new one',
  )
}
