import { Type } from '@sinclair/typebox'
import type { Pool } from '../db/pool.ts'
import { transact } from '../db/transaction.ts'
import { parseEmail } from '../email.ts'
import { Fault } from '../errors.ts'
import { Text } from '../http/rules.ts'
import { countStranger, type Strangers } from '../limits/strangers.ts'
import type { Cookies } from './cookies.ts'
import { apiEndpoint, type ApiEndpoint } from './endpoint.ts'
import { Name } from './name.ts'
import { createFirstOwner, hasOwner, isSetupLink } from './owners.ts'
import { checkPassword, hashPassword } from './passwords.ts'
import { Account, Email, Nothing, Password } from './schema.ts'
import { signIn, toSignedInAnswer } from './sign-in.ts'

interface SetupParts {
  pool: Pool
  strangers: Strangers
  getCookies(): Cookies
}

/** Claiming a new installation; nothing is here once somebody has. */
export function setupRoutes({ pool, strangers, getCookies }: SetupParts): ApiEndpoint[] {
  return [
    apiEndpoint({
      method: 'GET',
      path: '/api/setup',
      action: 'setup.read',
      success: { status: 200, data: Nothing },
      async handle() {
        if (await pool.run(hasOwner)) throw claimed()
        return '{}'
      },
    }),
    apiEndpoint({
      method: 'POST',
      path: '/api/setup',
      action: 'setup.complete',
      body: Type.Object({
        token: Text({ minLength: 1, maxLength: 100 }),
        name: Name,
        email: Email,
        password: Password,
      }),
      success: { status: 201, data: Account },
      async handle(call) {
        const { token, password } = call.body
        const name = call.body.name.trim()
        const email = parseEmail(call.body.email) ?? ''
        if (await pool.run(hasOwner)) throw claimed()
        // Before the password is hashed, which is work that nobody without a link is to cause.
        if (!(await pool.run(sql => isSetupLink(sql, token)))) {
          countStranger(strangers, call.address)
          throw deadLink()
        }
        checkPassword(password, { email, name })
        const passwordHash = await hashPassword(password)
        const signedIn = await transact(pool, async tx => {
          if (!(await isSetupLink(tx, token))) throw deadLink()
          const personId = await createFirstOwner(tx, call.actor, { name, email, passwordHash })
          if (personId === undefined) throw claimed()
          return signIn(tx, call, { personId, cookies: getCookies() })
        })
        return toSignedInAnswer(201, signedIn, call.requestId)
      },
    }),
  ]
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
