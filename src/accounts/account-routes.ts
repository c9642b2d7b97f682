import { Type } from '@sinclair/typebox'
import { writeAudit } from '../audit/audit.ts'
import type { Pool } from '../db/pool.ts'
import { sqlState, UNIQUE_VIOLATION } from '../db/sql.ts'
import { transact } from '../db/transaction.ts'
import { parseEmail } from '../email.ts'
import { Fault } from '../errors.ts'
import { toSuccess } from '../http/envelope.ts'
import { toId } from '../ids.ts'
import { getAccount } from './account.ts'
import { LONGEST_S, type Cookies } from './cookies.ts'
import { apiEndpoint, type ApiEndpoint } from './endpoint.ts'
import { Name } from './name.ts'
import { requireVerified } from './permissions.ts'
import { Account, Email } from './schema.ts'

const FIELDS = ['name', 'email'] as const

interface AccountParts {
  pool: Pool
  getCookies(): Cookies
}

/** The account of whoever is signed in. */
export function accountRoutes({ pool, getCookies }: AccountParts): ApiEndpoint[] {
  return [
    apiEndpoint({
      method: 'GET',
      path: '/api/me',
      action: 'account.read',
      success: { status: 200, data: Account },
      async handle({ admitted, token, requestId }) {
        const account = JSON.stringify(await pool.run(sql => getAccount(sql, admitted)))
        if (!admitted.session.isInstalled || token === undefined) return account
        // Browsers keep no cookie for longer than 400 days: an app that is in use gets it anew.
        return {
          status: 200,
          body: toSuccess(account, requestId),
          headers: {},
          cookies: [getCookies().keep('session', token, LONGEST_S)],
        }
      },
    }),
    apiEndpoint({
      method: 'PATCH',
      path: '/api/me',
      action: 'account.edit',
      body: Type.Object({ name: Type.Optional(Name), email: Type.Optional(Email) }),
      success: { status: 200, data: Account },
      async handle({ admitted, actor, body }) {
        const { person } = admitted
        const name = body.name?.trim() ?? null
        const email = (body.email && parseEmail(body.email)) ?? null
        // Whoever has the address signs in with it from then on.
        if (email !== null && email !== person.email) requireVerified(admitted)
        const account = await transact(pool, async tx => {
          const [edited] = await tx<[{ name: string; email: string }]>`
            update people set
              name = coalesce(${name}, name),
              email = coalesce(${email}, email)
            where id = ${person.id}
            returning name, email
          `
          const fields = FIELDS.filter(field => edited[field] !== person[field]).join(' ')
          if (fields !== '') {
            await writeAudit(tx, actor, {
              action: 'account.edited',
              target: toId('per', person.id),
              details: { fields },
            })
          }
          return getAccount(tx, { ...admitted, person: { ...person, ...edited } })
        }).catch((error: unknown) => {
          if (sqlState(error) !== UNIQUE_VIOLATION) throw error
          throw new Fault('conflict', 'Somebody has an account with this e-mail address already')
        })
        return JSON.stringify(account)
      },
    }),
  ]
}
