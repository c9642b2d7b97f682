import { Elysia } from 'elysia'
import { toReaderId } from '../../access/guard/caller.ts'
import type { CallOn, SessionGuard } from '../../access/guard/guard.ts'
import { DeletedId } from '../../access/guard/schema.ts'
import { transact, type Pool } from '../../database/pool.ts'
import { isUnavailable } from '../../database/sql.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { setBell } from './bells.ts'
import { countNewEvents, toView, UNCOUNTED } from './counting.ts'
import { NewView, View, ViewBell, ViewEdit, ViewMark, ViewMarkInput, Views } from './schema.ts'
import {
  addView,
  deleteView,
  editView,
  listViews,
  markSeen,
  type StoredView,
  type ViewCall,
} from './views.ts'

const tags = ['Views']

export interface ViewParts {
  guard: SessionGuard
  /** For counts, which examine many rows. */
  searches: Pool
}

/** Routes of saved searches, and of what a member has seen of them. */
export function viewRoutes({ guard, searches }: ViewParts) {
  /** Counts the new events of views. */
  async function count(call: CallOn<'project'>, views: readonly StoredView[]): Promise<View[]> {
    const { projectId, organizationId } = call
    return searches.of(organizationId).run(sql => countNewEvents(sql, projectId, views))
  }

  /** Counts the new events of a changed view. If the database is too busy, it has no count. */
  async function countChanged(call: CallOn<'project'>, view: StoredView): Promise<View> {
    try {
      const [counted] = await count(call, [view])
      if (counted) return counted
    } catch (error) {
      if (!isUnavailable(error)) throw error
    }
    return toView(view, UNCOUNTED)
  }

  return new Elysia({ name: 'views' })
    .use(guard)
    .get(
      '/api/projects/:projectId/views',
      async ({ call }) => {
        const views = await call.pool.run(sql => listViews(sql, toViewCall(call)))
        return succeed(call, 200, { items: await count(call, views) })
      },
      {
        project: 'views.read',
        response: { 200: SuccessOf(Views) },
        detail: {
          operationId: 'listViews',
          summary: 'List views',
          description: 'Your own views and the shared ones, with their new events.',
          tags,
        },
      },
    )
    .post(
      '/api/projects/:projectId/views',
      async ({ call, body }) => {
        const view = await transact(call.pool, tx => addView(tx, toViewCall(call), body))
        return succeed(call, 201, toView(view, { newEvents: 0, isPartial: false }))
      },
      {
        project: 'views.edit',
        body: NewView,
        response: { 201: SuccessOf(View, 'The view. Nothing in it is new yet.') },
        detail: { operationId: 'createView', summary: 'Save a search as a view', tags },
      },
    )
    .patch(
      '/api/projects/:projectId/views/:viewId',
      async ({ call, params: { viewId: id }, body: edit }) => {
        const view = await transact(call.pool, tx => editView(tx, toViewCall(call), { id, edit }))
        return succeed(call, 200, await countChanged(call, view))
      },
      {
        project: 'views.edit',
        body: ViewEdit,
        response: { 200: SuccessOf(View) },
        detail: { operationId: 'editView', summary: 'Change or share a view', tags },
      },
    )
    .delete(
      '/api/projects/:projectId/views/:viewId',
      async ({ call, params: { viewId: id } }) => {
        await transact(call.pool, tx => deleteView(tx, toViewCall(call), id))
        return succeed(call, 200, { id })
      },
      {
        project: 'views.edit',
        response: { 200: SuccessOf(DeletedId) },
        detail: { operationId: 'deleteView', summary: 'Delete a view', tags },
      },
    )
    .put(
      '/api/projects/:projectId/views/:viewId/bell',
      async ({ call, params: { viewId: id }, body: { isOn } }) => {
        await transact(call.pool, tx => setBell(tx, toViewCall(call), { id, isOn }))
        return succeed(call, 200, { isOn })
      },
      {
        project: 'views.setBell',
        body: ViewBell,
        response: { 200: SuccessOf(ViewBell) },
        detail: {
          operationId: 'setViewBell',
          summary: 'Turn notifications of a view on or off',
          description: 'The bell of a view also notifies you of matches in muted channels.',
          tags,
        },
      },
    )
    .put(
      '/api/projects/:projectId/views/:viewId/read',
      async ({ call, params: { viewId: id }, body: { seq } }) => {
        // Not in the audit log: it changes nothing for other members, and is frequent.
        const mark = await transact(call.pool, tx => markSeen(tx, toViewCall(call), { id, seq }))
        return succeed(call, 200, { seq: mark })
      },
      {
        project: 'views.markSeen',
        body: ViewMarkInput,
        response: { 200: SuccessOf(ViewMark) },
        detail: { operationId: 'markViewSeen', summary: 'Mark the events of a view as seen', tags },
      },
    )
}

function toViewCall({
  actor,
  organizationId,
  projectId,
  role,
  admitted,
}: CallOn<'project'>): ViewCall {
  return { actor, organizationId, projectId, role, accountId: toReaderId(admitted) }
}
