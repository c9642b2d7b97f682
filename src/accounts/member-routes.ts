import type { Pool } from '../db/pool.ts'
import { transact } from '../db/transaction.ts'
import { PageOf } from '../http/envelope.ts'
import { PageQuery } from '../http/paging.ts'
import type { Site } from '../http/site.ts'
import { toId } from '../ids.ts'
import { apiEndpoint, type ApiEndpoint } from './endpoint.ts'
import {
  changeRole,
  createMemberResetLink,
  leaveOrganization,
  listMembers,
  removeMember,
} from './members.ts'
import { Gone, Link, Member, RoleBody } from './organization-schema.ts'

/** Who belongs to an organization. */
export function memberRoutes({ pool, getSite }: { pool: Pool; getSite(): Site }): ApiEndpoint[] {
  return [
    apiEndpoint({
      method: 'GET',
      path: '/api/organizations/:organizationId/members',
      action: 'members.read',
      query: PageQuery,
      success: { status: 200, data: PageOf(Member) },
      handle: async ({ organizationId, query }) =>
        JSON.stringify(await pool.run(sql => listMembers(sql, organizationId, query))),
    }),
    apiEndpoint({
      method: 'PATCH',
      path: '/api/organizations/:organizationId/members/:personId',
      action: 'members.changeRole',
      body: RoleBody,
      success: { status: 200, data: Member },
      async handle(call) {
        const change = { id: call.params['personId'] ?? '', role: call.body.role }
        return JSON.stringify(await transact(pool, tx => changeRole(tx, call, change)))
      },
    }),
    apiEndpoint({
      method: 'DELETE',
      path: '/api/organizations/:organizationId/members/:personId',
      action: 'members.remove',
      success: { status: 200, data: Gone },
      async handle(call) {
        const id = call.params['personId'] ?? ''
        await transact(pool, tx => removeMember(tx, call, id))
        return JSON.stringify({ id })
      },
    }),
    apiEndpoint({
      method: 'DELETE',
      path: '/api/organizations/:organizationId/membership',
      action: 'organization.leave',
      success: { status: 200, data: Gone },
      async handle(call) {
        await transact(pool, tx => leaveOrganization(tx, call))
        return JSON.stringify({ id: toId('org', call.organizationId) })
      },
    }),
    apiEndpoint({
      method: 'POST',
      path: '/api/organizations/:organizationId/members/:personId/reset-link',
      action: 'members.resetPassword',
      success: { status: 201, data: Link },
      async handle(call) {
        const id = call.params['personId'] ?? ''
        const { token, expiresAt } = await transact(pool, tx => createMemberResetLink(tx, call, id))
        const link: Link = {
          url: `${getSite().url}/reset#${token}`,
          expiresAt: expiresAt.toISOString(),
        }
        return JSON.stringify(link)
      },
    }),
  ]
}
