import { Elysia } from 'elysia'
import { transact } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { toId } from '../../base/ids.ts'
import { deleteProject } from './deletion.ts'
import { succeedRead, type SessionGuard } from '../guard/guard.ts'
import { DeletedId, toName } from '../guard/schema.ts'
import { Project, ProjectBody, ProjectChange } from './schema.ts'
import { addProject, editProject, getProject } from './projects.ts'

const tags = ['Projects']

/** Routes of projects. */
export function projectRoutes({ guard }: { guard: SessionGuard }) {
  return new Elysia({ name: 'accounts.projects' })
    .use(guard)
    .post(
      '/api/organizations/:organizationId/projects',
      async ({ call, body: { name } }) => {
        const project = await transact(call.pool, async tx => {
          const id = await addProject(tx, call, toName(name))
          return getProject(tx, id, call.role)
        })
        return succeed(call, 201, project)
      },
      {
        organization: 'projects.create',
        body: ProjectBody,
        response: { 201: SuccessOf(Project, 'The project.') },
        detail: { operationId: 'createProject', summary: 'Create a project', tags },
      },
    )
    .get(
      '/api/projects/:projectId',
      ({ call }) => succeedRead(call, sql => getProject(sql, call.projectId, call.role)),
      {
        project: 'project.read',
        response: { 200: SuccessOf(Project, 'The project.') },
        detail: { operationId: 'getProject', summary: 'Get a project', tags },
      },
    )
    .patch(
      '/api/projects/:projectId',
      async ({ call, body: { name, ...change } }) => {
        const { actor, projectId, role, admitted } = call
        const context = { actor, projectId, admitted }
        const project = await transact(call.pool, async tx => {
          await editProject(tx, context, {
            ...change,
            ...(name !== undefined && { name: toName(name) }),
          })
          return getProject(tx, projectId, role)
        })
        return succeed(call, 200, project)
      },
      {
        project: 'project.edit',
        body: ProjectChange,
        response: { 200: SuccessOf(Project, 'The project with its changes.') },
        detail: {
          operationId: 'editProject',
          summary: 'Change the name or retention of a project',
          tags,
        },
      },
    )
    .delete(
      '/api/projects/:projectId',
      async ({ call }) => {
        await transact(call.pool, tx => deleteProject(tx, call))
        return succeed(call, 200, { id: toId('prj', call.projectId) })
      },
      {
        project: 'project.delete',
        response: { 200: SuccessOf(DeletedId, 'The project is deleted.') },
        detail: { operationId: 'deleteProject', summary: 'Delete a project', tags },
      },
    )
}
