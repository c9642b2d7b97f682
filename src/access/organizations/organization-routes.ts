import { Elysia } from 'elysia'
import { transact } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { toId } from '../../base/ids.ts'
import { deleteOrganization } from './deletion.ts'
import { succeedRead, type SessionGuard } from '../guard/guard.ts'
import { DeletedId, toName } from '../guard/schema.ts'
import { Organization, OrganizationBody, OrganizationChange } from './schema.ts'
import { createOwnOrganization, editOrganization, getOrganization } from './organizations.ts'

const tags = ['Organizations']

/** Routes of organizations. */
export function organizationRoutes({ guard }: { guard: SessionGuard }) {
  return new Elysia({ name: 'accounts.organizations' })
    .use(guard)
    .post(
      '/api/organizations',
      async ({ call, body: { name } }) => {
        const organization = await transact(call.pool, async tx => {
          const id = await createOwnOrganization(tx, call, toName(name))
          return getOrganization(tx, id, 'owner')
        })
        return succeed(call, 201, organization)
      },
      {
        installation: 'organizations.create',
        body: OrganizationBody,
        response: { 201: SuccessOf(Organization, 'The organization. You are its owner.') },
        detail: { operationId: 'createOrganization', summary: 'Create an organization', tags },
      },
    )
    .get(
      '/api/organizations/:organizationId',
      ({ call }) => succeedRead(call, sql => getOrganization(sql, call.organizationId, call.role)),
      {
        organization: 'organization.read',
        response: { 200: SuccessOf(Organization, 'The organization.') },
        detail: { operationId: 'getOrganization', summary: 'Get an organization', tags },
      },
    )
    .patch(
      '/api/organizations/:organizationId',
      async ({ call, body }) => {
        const organization = await transact(call.pool, async tx => {
          const role = await editOrganization(tx, call, body)
          return getOrganization(tx, call.organizationId, role)
        })
        return succeed(call, 200, organization)
      },
      {
        organization: 'organization.edit',
        body: OrganizationChange,
        response: { 200: SuccessOf(Organization, 'The organization with its changes.') },
        detail: {
          operationId: 'editOrganization',
          summary: 'Rename an organization, or require a second factor',
          description:
            'With `requiresSecondFactor`, members reach the organization in sessions with a passkey or a code alone. Changing it requires a verification.',
          tags,
        },
      },
    )
    .delete(
      '/api/organizations/:organizationId',
      async ({ call }) => {
        await transact(call.pool, tx => deleteOrganization(tx, call))
        return succeed(call, 200, { id: toId('org', call.organizationId) })
      },
      {
        organization: 'organization.delete',
        response: { 200: SuccessOf(DeletedId, 'The organization is deleted.') },
        detail: {
          operationId: 'deleteOrganization',
          summary: 'Delete an organization and its projects',
          tags,
        },
      },
    )
}
