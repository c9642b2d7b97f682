import type { Pool } from '../db/pool.ts'
import { transact } from '../db/transaction.ts'
import { toId } from '../ids.ts'
import { deleteOrganization } from './deletion.ts'
import { apiEndpoint, type ApiEndpoint } from './endpoint.ts'
import { toName } from './name.ts'
import {
  addProject,
  createOwnOrganization,
  getOrganization,
  renameOrganization,
} from './organizations.ts'
import {
  Gone,
  Organization,
  OrganizationBody,
  Project,
  ProjectBody,
} from './organization-schema.ts'
import { getProject } from './projects.ts'

/** Organizations, and the making of projects. */
export function organizationRoutes({ pool }: { pool: Pool }): ApiEndpoint[] {
  return [
    apiEndpoint({
      method: 'POST',
      path: '/api/organizations',
      action: 'organizations.create',
      body: OrganizationBody,
      success: { status: 201, data: Organization },
      handle: async call =>
        JSON.stringify(
          await transact(pool, async tx => {
            const id = await createOwnOrganization(tx, call, toName(call.body.name))
            return getOrganization(tx, id, 'owner')
          }),
        ),
    }),
    apiEndpoint({
      method: 'GET',
      path: '/api/organizations/:organizationId',
      action: 'organization.read',
      success: { status: 200, data: Organization },
      handle: async ({ organizationId, role }) =>
        JSON.stringify(await pool.run(sql => getOrganization(sql, organizationId, role))),
    }),
    apiEndpoint({
      method: 'PATCH',
      path: '/api/organizations/:organizationId',
      action: 'organization.edit',
      body: OrganizationBody,
      success: { status: 200, data: Organization },
      handle: async call =>
        JSON.stringify(
          await transact(pool, async tx => {
            const role = await renameOrganization(tx, call, toName(call.body.name))
            return getOrganization(tx, call.organizationId, role)
          }),
        ),
    }),
    apiEndpoint({
      method: 'DELETE',
      path: '/api/organizations/:organizationId',
      action: 'organization.delete',
      success: { status: 200, data: Gone },
      async handle(call) {
        await transact(pool, tx => deleteOrganization(tx, call))
        return JSON.stringify({ id: toId('org', call.organizationId) })
      },
    }),
    apiEndpoint({
      method: 'POST',
      path: '/api/organizations/:organizationId/projects',
      action: 'projects.create',
      body: ProjectBody,
      success: { status: 201, data: Project },
      handle: async call =>
        JSON.stringify(
          await transact(pool, async tx => {
            const id = await addProject(tx, call, toName(call.body.name))
            return getProject(tx, id, call.role)
          }),
        ),
    }),
  ]
}
