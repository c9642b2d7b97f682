import type { Pool } from '../db/pool.ts'
import { transact } from '../db/transaction.ts'
import { parseEmail } from '../email.ts'
import { Fault } from '../errors.ts'
import { PageOf, toSuccess } from '../http/envelope.ts'
import { PageQuery } from '../http/paging.ts'
import type { Site } from '../http/site.ts'
import { countStranger, type Strangers } from '../limits/strangers.ts'
import type { Cookies } from './cookies.ts'
import { apiEndpoint, type ApiEndpoint } from './endpoint.ts'
import { createInvite, findInvite, listInvites, withdrawInvite } from './invites.ts'
import { deadInvite, joinAsNewcomer, joinAsPerson, toNewcomer } from './joining.ts'
import {
  AcceptBody,
  Gone,
  Invitation,
  Invite,
  InviteBody,
  Joined,
  NewInvite,
  TokenBody,
} from './organization-schema.ts'

export interface InviteParts {
  pool: Pool
  getSite(): Site
  getCookies(): Cookies
  strangers: Strangers
}

/** Invites, for who makes them and for who holds their link. */
export function inviteRoutes(parts: InviteParts): ApiEndpoint[] {
  const { pool, getSite, getCookies, strangers } = parts

  /** Tells whoever tries many links that lead nowhere to wait. */
  async function countingFailures<Result>(address: string, work: Promise<Result>): Promise<Result> {
    try {
      return await work
    } catch (error) {
      if (error instanceof Fault && error.code === 'not_found') countStranger(strangers, address)
      throw error
    }
  }

  return [
    apiEndpoint({
      method: 'GET',
      path: '/api/organizations/:organizationId/invites',
      action: 'invites.read',
      query: PageQuery,
      success: { status: 200, data: PageOf(Invite) },
      handle: async ({ organizationId, query }) =>
        JSON.stringify(await pool.run(sql => listInvites(sql, organizationId, query))),
    }),
    apiEndpoint({
      method: 'POST',
      path: '/api/organizations/:organizationId/invites',
      action: 'invites.create',
      body: InviteBody,
      success: { status: 201, data: NewInvite },
      async handle(call) {
        const { role } = call.body
        const email = call.body.email == null ? null : (parseEmail(call.body.email) ?? null)
        const { id, token, expiresAt } = await transact(pool, tx =>
          createInvite(tx, call, { role, email }),
        )
        const invite: NewInvite = {
          id,
          url: `${getSite().url}/invite#${token}`,
          role,
          email,
          expiresAt: expiresAt.toISOString(),
        }
        return JSON.stringify(invite)
      },
    }),
    apiEndpoint({
      method: 'DELETE',
      path: '/api/organizations/:organizationId/invites/:inviteId',
      action: 'invites.withdraw',
      success: { status: 200, data: Gone },
      async handle(call) {
        const id = call.params['inviteId'] ?? ''
        await transact(pool, tx => withdrawInvite(tx, call, id))
        return JSON.stringify({ id })
      },
    }),
    apiEndpoint({
      method: 'POST',
      path: '/api/invites/look',
      action: 'invite.read',
      body: TokenBody,
      success: { status: 200, data: Invitation },
      handle: ({ body, address }) =>
        countingFailures(
          address,
          pool.run(async sql => {
            const found = await findInvite(sql, body.token)
            if (!found) throw deadInvite()
            const { organizationId: _, ...invitation } = found
            return JSON.stringify(invitation satisfies Invitation)
          }),
        ),
    }),
    apiEndpoint({
      method: 'POST',
      path: '/api/invites/accept',
      action: 'invite.accept',
      body: AcceptBody,
      success: { status: 200, data: Joined },
      async handle(call) {
        const { admitted, actor, body, address, requestId } = call
        const { token } = body
        if (admitted) {
          if (body.email !== undefined || body.password !== undefined) {
            throw new Fault(
              'conflict',
              `You are signed in as ${admitted.person.email}: join with that account, or sign out first`,
            )
          }
          const join = transact(pool, tx => joinAsPerson(tx, admitted, { token, actor }))
          return JSON.stringify(await countingFailures(address, join))
        }
        const { joined, cookies } = await countingFailures(
          address,
          joinAsNewcomer(pool, toNewcomer(body), { token, visit: call, cookies: getCookies() }),
        )
        return {
          status: 200,
          body: toSuccess(JSON.stringify(joined), requestId),
          headers: {},
          cookies,
        }
      },
    }),
  ]
}
