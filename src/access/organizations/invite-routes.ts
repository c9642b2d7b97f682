import { Elysia } from 'elysia'
import { transact } from '../../database/pool.ts'
import { parseEmail } from '../../base/config/values.ts'
import { Fault } from '../../base/errors.ts'
import { succeed } from '../../http/call.ts'
import { ApiFailure, PageOf, SuccessOf } from '../../http/envelope.ts'
import { PageQuery } from '../../http/paging.ts'
import type { Site } from '../../http/site.ts'
import { succeedRead, type SessionCall, type SessionGuard } from '../guard/guard.ts'
import { createInvite, findInvite, listInvites, withdrawInvite } from './invites.ts'
import { inviteNotFound, joinWithNewAccount, joinWithAccount, toNewAccount } from './joining.ts'
import { DeletedId } from '../guard/schema.ts'
import {
  AcceptInviteBody,
  InvitePreview,
  Invite,
  InviteBody,
  JoinedOrganization,
  NewInvite,
  InviteTokenBody,
} from './schema.ts'

const tags = ['Organizations']

/** Routes of invites. Admins create them, and the holder of a link accepts one. */
export function inviteRoutes({ guard, site }: { guard: SessionGuard; site: Site }) {
  return new Elysia({ name: 'accounts.invites' })
    .use(guard)
    .get(
      '/api/organizations/:organizationId/invites',
      ({ call, query }) => succeedRead(call, sql => listInvites(sql, call.organizationId, query)),
      {
        organization: 'invites.read',
        query: PageQuery,
        response: { 200: SuccessOf(PageOf(Invite), 'A page of open invites.') },
        detail: { operationId: 'listInvites', summary: 'List open invites', tags },
      },
    )
    .post(
      '/api/organizations/:organizationId/invites',
      async ({ call, body: { role, email: typed } }) => {
        const email = typed == null ? null : (parseEmail(typed) ?? null)
        const { id, token, expiresAt } = await transact(call.pool, tx =>
          createInvite(tx, call, { role, email }),
        )
        const invite: NewInvite = {
          id,
          url: `${site.url}/invite#${token}`,
          role,
          email,
          expiresAt: expiresAt.toISOString(),
        }
        return succeed(call, 201, invite)
      },
      {
        organization: 'invites.create',
        body: InviteBody,
        response: { 201: SuccessOf(NewInvite, 'The invite and its link.') },
        detail: {
          operationId: 'createInvite',
          summary: 'Create an invite',
          description:
            'The link is shown only once. An invite with an e-mail address is valid for that address only.',
          tags,
        },
      },
    )
    .delete(
      '/api/organizations/:organizationId/invites/:inviteId',
      async ({ call, params: { inviteId } }) => {
        await transact(call.pool, tx => withdrawInvite(tx, call, inviteId))
        return succeed(call, 200, { id: inviteId })
      },
      {
        organization: 'invites.withdraw',
        response: { 200: SuccessOf(DeletedId, 'The invite is withdrawn.') },
        detail: { operationId: 'withdrawInvite', summary: 'Withdraw an invite', tags },
      },
    )
    .post(
      '/api/invites/look',
      async ({ call, body: { token } }) => {
        const invite = await call.pool.run(sql => findInvite(sql, token))
        if (!invite) {
          await call.countFailure()
          throw inviteNotFound()
        }
        const { organizationId: _, ...preview } = invite
        return succeed(call, 200, preview satisfies InvitePreview)
      },
      {
        anyone: 'invite.read',
        body: InviteTokenBody,
        response: {
          200: SuccessOf(InvitePreview, 'The invite of the link.'),
          404: ApiFailure,
        },
        detail: { operationId: 'getInvite', summary: 'Get an invite by its link', tags },
      },
    )
    .post(
      '/api/invites/accept',
      async ({ call, body }) => {
        const { admitted, actor } = call
        const { token } = body
        if (!admitted) {
          const newcomer = joinWithNewAccount(call.pool, toNewAccount(body), { token, visit: call })
          const { joined, cookies } = await countFailures(call, newcomer)
          return succeed(call, 200, joined, { cookies })
        }
        if (body.email !== undefined || body.password !== undefined) {
          throw new Fault(
            'conflict',
            `You are signed in as ${admitted.account.email}. Join with that account, or sign out first.`,
          )
        }
        const join = transact(call.pool, tx => joinWithAccount(tx, admitted, { token, actor }))
        return succeed(call, 200, await countFailures(call, join))
      },
      {
        anyone: 'invite.accept',
        body: AcceptInviteBody,
        response: {
          200: SuccessOf(JoinedOrganization, 'You are a member of the organization.'),
          404: ApiFailure,
        },
        detail: {
          operationId: 'acceptInvite',
          summary: 'Accept an invite',
          description:
            'Joins with the signed-in account. Without a session, `name`, `email` and `password` create an account and sign it in.',
          tags,
        },
      },
    )
}

/** Counts an unknown link as a failed authentication. */
async function countFailures<Result>(call: SessionCall, work: Promise<Result>): Promise<Result> {
  try {
    return await work
  } catch (error) {
    if (error instanceof Fault && error.code === 'not_found') await call.countFailure()
    throw error
  }
}
