import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { transact } from '../../database/pool.ts'
import { parseEmail } from '../../base/config/values.ts'
import { Fault } from '../../base/errors.ts'
import { succeed } from '../../http/call.ts'
import { ApiFailure, SuccessOf } from '../../http/envelope.ts'
import { Text } from '../../http/rules.ts'
import type { SessionGuard } from '../guard/guard.ts'
import { Email, Name, NoData, Password, toName } from '../guard/schema.ts'
import { Account } from './schema.ts'
import { createFirstOwner, hasOwner, isSetupLink, nameFirstProject } from './owners.ts'
import { checkPassword, hashPassword } from './credentials.ts'
import { signIn } from './sign-in.ts'

const tags = ['Server']

const SetupBody = Type.Object(
  {
    token: Text({ minLength: 1, maxLength: 100 }),
    name: Name,
    email: Email,
    password: Password,
    organization: Type.Optional(Name),
    project: Type.Optional(Name),
  },
  {
    examples: [
      {
        name: 'Ada',
        email: 'ada@example.com',
        password: 'correct horse battery staple',
        token: 'the token of the link',
      },
    ],
  },
)

/**
 * Routes that create the first owner of an installation. They respond with 404 once it has an
 * owner.
 */
export function setupRoutes({ guard }: { guard: SessionGuard }) {
  return new Elysia({ name: 'accounts.setup' })
    .use(guard)
    .get(
      '/api/setup',
      async ({ call }) => {
        if (await call.pool.run(hasOwner)) throw alreadySetUp()
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
          summary: 'Check whether the installation needs an owner',
          tags,
        },
      },
    )
    .post(
      '/api/setup',
      async ({ call, body: { token, name: typedName, email: typedEmail, password, ...names } }) => {
        const name = toName(typedName)
        const email = parseEmail(typedEmail) ?? ''
        if (await call.pool.run(hasOwner)) throw alreadySetUp()
        // Hashing is expensive, so only the holder of a link can trigger it.
        if (!(await call.pool.run(sql => isSetupLink(sql, token)))) {
          await call.countFailure()
          throw linkNotFound()
        }
        checkPassword(password, { email, name })
        const passwordHash = await hashPassword(password, email)
        const { account, cookies: kept } = await transact(call.pool, async tx => {
          if (!(await isSetupLink(tx, token))) throw linkNotFound()
          const accountId = await createFirstOwner(tx, call.actor, { name, email, passwordHash })
          if (accountId === undefined) throw alreadySetUp()
          await nameFirstProject(tx, names)
          return signIn(tx, call, { accountId, method: 'link' })
        })
        return succeed(call, 201, account, { cookies: kept })
      },
      {
        anyone: 'setup.complete',
        body: SetupBody,
        response: {
          201: SuccessOf(Account, 'You are the owner of the installation, and signed in.'),
          404: ApiFailure,
        },
        detail: {
          operationId: 'completeSetup',
          summary: 'Create the first owner of the installation',
          description: 'The server prints a setup link with the token when it starts.',
          tags,
        },
      },
    )
}

function alreadySetUp(): Fault {
  return new Fault('not_found', 'This installation already has an owner. Sign in.')
}

function linkNotFound(): Fault {
  return new Fault(
    'not_found',
    'This setup link is invalid or has expired. Restart the server to get a new one.',
  )
}
