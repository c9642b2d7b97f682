import { Elysia } from 'elysia'
import { toId } from '../../base/ids.ts'
import { transact } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { PageOf, SuccessOf } from '../../http/envelope.ts'
import { PageQuery } from '../../http/paging.ts'
import { succeedRead, type SessionGuard } from '../guard/guard.ts'
import { DeletedId } from '../guard/schema.ts'
import { Member, RoleBody } from './schema.ts'
import { changeRole, leaveOrganization, listMembers, removeMember } from './members.ts'

const tags = ['Organizations']

/** Routes of the members of an organization. */
export function memberRoutes({ guard }: { guard: SessionGuard }) {
  return new Elysia({ name: 'accounts.members' })
    .use(guard)
    .get(
      '/api/organizations/:organizationId/members',
      ({ call, query }) => succeedRead(call, sql => listMembers(sql, call.organizationId, query)),
      {
        organization: 'members.read',
        query: PageQuery,
        response: { 200: SuccessOf(PageOf(Member), 'A page of members.') },
        detail: { operationId: 'listMembers', summary: 'List members', tags },
      },
    )
    .patch(
      '/api/organizations/:organizationId/members/:accountId',
      async ({ call, params: { accountId: id }, body: { role } }) =>
        succeed(call, 200, await transact(call.pool, tx => changeRole(tx, call, { id, role }))),
      {
        organization: 'members.changeRole',
        body: RoleBody,
        response: { 200: SuccessOf(Member, 'The member with the new role.') },
        detail: { operationId: 'changeRole', summary: 'Change the role of a member', tags },
      },
    )
    .delete(
      '/api/organizations/:organizationId/members/:accountId',
      async ({ call, params: { accountId } }) => {
        await transact(call.pool, tx => removeMember(tx, call, accountId))
        return succeed(call, 200, { id: accountId })
      },
      {
        organization: 'members.remove',
        response: { 200: SuccessOf(DeletedId, 'The member is removed.') },
        detail: { operationId: 'removeMember', summary: 'Remove a member', tags },
      },
    )
    .delete(
      '/api/organizations/:organizationId/membership',
      async ({ call }) => {
        await transact(call.pool, tx => leaveOrganization(tx, call))
        return succeed(call, 200, { id: toId('org', call.organizationId) })
      },
      {
        organization: 'organization.leave',
        response: { 200: SuccessOf(DeletedId, 'You left the organization.') },
        detail: { operationId: 'leaveOrganization', summary: 'Leave an organization', tags },
      },
    )
}
