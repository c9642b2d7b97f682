import { Elysia } from 'elysia'
import { transact } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { PageOf, SuccessOf } from '../../http/envelope.ts'
import { PageQuery } from '../../http/paging.ts'
import type { Site } from '../../http/site.ts'
import { succeedRead, type CallOn, type SessionGuard } from '../guard/guard.ts'
import { DeletedId } from '../guard/schema.ts'
import { NewResetLink, OpenResetLink } from '../sign-in/schema.ts'
import { listResetLinks, withdrawResetLink } from '../sign-in/reset-links.ts'
import { createMemberResetLink } from './members.ts'
import { lockOrganization } from './organizations.ts'

const tags = ['Organizations']

interface Parts {
  guard: SessionGuard
  site: Site
}

/** Routes with which owners create, list and withdraw the reset links of members. */
export function resetLinkRoutes({ guard, site }: Parts) {
  return new Elysia({ name: 'accounts.reset-links' })
    .use(guard)
    .post(
      '/api/organizations/:organizationId/members/:accountId/reset-link',
      async ({ call, params: { accountId } }) => {
        const { id, token, expiresAt } = await transact(call.pool, tx =>
          createMemberResetLink(tx, call, accountId),
        )
        const link: NewResetLink = {
          id,
          url: `${site.url}/reset#${token}`,
          expiresAt: expiresAt.toISOString(),
        }
        return succeed(call, 201, link)
      },
      {
        organization: 'members.resetPassword',
        response: { 201: SuccessOf(NewResetLink, 'The link, which is shown only once.') },
        detail: {
          operationId: 'createResetLink',
          summary: "Create a link that resets a member's password",
          tags,
        },
      },
    )
    .get(
      '/api/organizations/:organizationId/reset-links',
      ({ call, query }) => succeedRead(call, sql => listResetLinks(sql, toCaller(call), query)),
      {
        organization: 'resetLinks.read',
        query: PageQuery,
        response: { 200: SuccessOf(PageOf(OpenResetLink), 'A page of open reset links.') },
        detail: {
          operationId: 'listResetLinks',
          summary: 'List open reset links',
          description:
            'Lists the links that owners created here, and those of other members whose password you may reset. The secret is not shown.',
          tags,
        },
      },
    )
    .delete(
      '/api/organizations/:organizationId/reset-links/:resetLinkId',
      async ({ call, params: { resetLinkId: id } }) => {
        await transact(call.pool, async tx => {
          await lockOrganization(tx, call, 'resetLinks.withdraw')
          await withdrawResetLink(tx, call.actor, { caller: toCaller(call), id })
        })
        return succeed(call, 200, { id })
      },
      {
        organization: 'resetLinks.withdraw',
        response: { 200: SuccessOf(DeletedId, 'The reset link is withdrawn.') },
        detail: { operationId: 'withdrawResetLink', summary: 'Withdraw a reset link', tags },
      },
    )
}

function toCaller({ admitted, organizationId }: CallOn<'organization'>) {
  return { accountId: admitted.account.id, organizationId }
}
