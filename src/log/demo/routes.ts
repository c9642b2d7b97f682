import { Elysia } from 'elysia'
import type { SessionGuard } from '../../access/guard/guard.ts'
import { DeletedId } from '../../access/guard/schema.ts'
import { Project } from '../../access/organizations/schema.ts'
import { deleteSampleProject } from '../../access/organizations/deletion.ts'
import { getProject, projectNotFound } from '../../access/organizations/projects.ts'
import { Fault } from '../../base/errors.ts'
import { toId } from '../../base/ids.ts'
import { transact } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { addSampleProject, fillSampleProject, type SampleWriters } from './sample-project.ts'

const tags = ['Projects']

/** Routes of the project with sample data. */
export function sampleProjectRoutes({
  guard,
  ...writers
}: SampleWriters & { guard: SessionGuard }) {
  return new Elysia({ name: 'demo' })
    .use(guard)
    .post(
      '/api/organizations/:organizationId/sample-project',
      async ({ call }) => {
        const projectId = await transact(call.pool, tx => addSampleProject(tx, call))
        try {
          await fillSampleProject(writers, call, projectId)
        } catch (error) {
          // The next request can create it anew.
          await transact(call.pool, tx => deleteSampleProject(tx, call, projectId)).catch(() => {})
          const isDeleted = error instanceof Fault && error.code === 'unauthorized'
          throw isDeleted ? projectNotFound() : error
        }
        return succeed(call, 201, await call.pool.run(sql => getProject(sql, projectId, call.role)))
      },
      {
        organization: 'sampleProject.create',
        response: { 201: SuccessOf(Project, 'The project with its events.') },
        detail: {
          operationId: 'createSampleProject',
          summary: 'Create a project with sample data',
          description:
            'The project has four weeks of events of an invented shop. An organization has at most one.',
          tags,
        },
      },
    )
    .delete(
      '/api/organizations/:organizationId/sample-project',
      async ({ call }) => {
        const projectId = await transact(call.pool, tx => deleteSampleProject(tx, call))
        return succeed(call, 200, { id: toId('prj', projectId) })
      },
      {
        organization: 'sampleProject.delete',
        response: { 200: SuccessOf(DeletedId, 'The project is deleted.') },
        detail: {
          operationId: 'deleteSampleProject',
          summary: 'Delete the project with sample data',
          description:
            'Requires no confirmation, because the data is not yours. A project that has or had API keys or webhooks is not deleted.',
          tags,
        },
      },
    )
}
