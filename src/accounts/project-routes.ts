import type { Pool } from '../db/pool.ts'
import { transact } from '../db/transaction.ts'
import { toId } from '../ids.ts'
import { deleteProject } from './deletion.ts'
import { apiEndpoint, type ApiEndpoint } from './endpoint.ts'
import { toName } from './name.ts'
import { Gone, Project, ProjectChange } from './organization-schema.ts'
import { editProject, getProject } from './projects.ts'

export function projectRoutes({ pool }: { pool: Pool }): ApiEndpoint[] {
  return [
    apiEndpoint({
      method: 'GET',
      path: '/api/projects/:projectId',
      action: 'project.read',
      success: { status: 200, data: Project },
      handle: async ({ projectId, role }) =>
        JSON.stringify(await pool.run(sql => getProject(sql, projectId, role))),
    }),
    apiEndpoint({
      method: 'PATCH',
      path: '/api/projects/:projectId',
      action: 'project.edit',
      body: ProjectChange,
      success: { status: 200, data: Project },
      async handle({ actor, projectId, role, admitted, body: { name, ...change } }) {
        const { isVerified } = admitted
        return JSON.stringify(
          await transact(pool, async tx => {
            await editProject(
              tx,
              { actor, projectId, isVerified },
              { ...change, ...(name !== undefined && { name: toName(name) }) },
            )
            return getProject(tx, projectId, role)
          }),
        )
      },
    }),
    apiEndpoint({
      method: 'DELETE',
      path: '/api/projects/:projectId',
      action: 'project.delete',
      success: { status: 200, data: Gone },
      async handle(call) {
        await transact(pool, tx => deleteProject(tx, call))
        return JSON.stringify({ id: toId('prj', call.projectId) })
      },
    }),
  ]
}
