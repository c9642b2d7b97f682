import { isAtLeast, type Role } from '../../access/guard/permissions.ts'
import { lockProject } from '../../access/organizations/projects.ts'
import { writeAudit, type Actor } from '../../access/audit/audit.ts'
import type { AuditAction } from '../../access/audit/actions.ts'
import { FOREIGN_KEY_VIOLATION, sqlState, type Queryable, type Tx } from '../../database/sql.ts'
import { Fault } from '../../base/errors.ts'
import { toSearchFilters } from '../events/search-schema.ts'
import { invalidField } from '../../http/validation.ts'
import { newId, parseId, toId } from '../../base/ids.ts'
import { MAX_VIEWS, type NewView, type ViewEdit } from './schema.ts'

/** The role that changes what other members see. */
const SHARING_ROLE: Role = 'member'

/** A member who reads or changes views; ids are uuids. */
export interface ViewCall {
  actor: Actor
  organizationId: string
  projectId: string
  accountId: string
  role: Role
}

/** A view without its count. `markSeq` is the last seq that the account has seen. */
export interface StoredView {
  uuid: string
  name: string
  q: string
  isShared: boolean
  hasBell: boolean
  createdAt: string
  markSeq: bigint
}

/** Returns one view that the account sees. Throws `not_found`. */
export async function getView(
  sql: Queryable,
  call: Pick<ViewCall, 'projectId' | 'accountId'>,
  id: string,
): Promise<StoredView> {
  const [view] = await listViews(sql, call, toViewUuid(id))
  if (!view) throw viewNotFound()
  return view
}

/**
 * Saves a search as a view. Nothing in it is new yet. Throws `InvalidRequest` for a bad search,
 * `forbidden`, and `conflict` when there are too many views.
 */
export async function addView(tx: Tx, call: ViewCall, view: NewView): Promise<StoredView> {
  const { projectId, accountId } = call
  const isShared = view.isShared ?? false
  if (isShared) checkSharing(call)
  const q = checkSearch(view.q)
  await lockProject(tx, projectId)
  await checkRoom(tx, call, isShared)
  const { id, uuid } = newId('viw')
  await tx`
    insert into views (project_id, id, account_id, name, search, created_seq)
    select ${projectId}::uuid, ${uuid}::uuid, ${isShared ? null : accountId}::uuid, ${view.name.trim()}, ${q}, l.last_seq
    from log_of(${projectId}) l
  `
  await audit(tx, call, 'view.created', { target: id, isShared })
  return getView(tx, call, id)
}

/** Changes a view, or shares it. Throws `not_found`, and like `addView`. */
export async function editView(
  tx: Tx,
  call: ViewCall,
  { id, edit }: { id: string; edit: ViewEdit },
): Promise<StoredView> {
  const { projectId, accountId } = call
  const uuid = toViewUuid(id)
  await lockProject(tx, projectId)
  const before = await getView(tx, call, id)
  const isShared = edit.isShared ?? before.isShared
  if (before.isShared || isShared) checkSharing(call)
  if (isShared !== before.isShared) await checkRoom(tx, call, isShared)
  if (!isShared) await checkUnused(tx, projectId, uuid)
  const name = edit.name?.trim() ?? before.name
  const q = edit.q === undefined ? before.q : checkSearch(edit.q)
  await tx`
    update views set name = ${name}, search = ${q}, account_id = ${isShared ? null : accountId}::uuid
    where project_id = ${projectId} and id = ${uuid}
  `
  if (before.isShared && !isShared) await removeOthers(tx, call, uuid)
  await audit(tx, call, 'view.edited', { target: id, isShared })
  return getView(tx, call, id)
}

/** Removes the bells and marks of members who do not see a view any more. */
async function removeOthers(
  tx: Tx,
  { projectId, accountId }: ViewCall,
  uuid: string,
): Promise<void> {
  await tx`
    delete from view_bells
    where project_id = ${projectId} and view_id = ${uuid} and account_id <> ${accountId}
  `
  await tx`
    delete from view_marks
    where project_id = ${projectId} and view_id = ${uuid} and account_id <> ${accountId}
  `
}

/** Deletes a view. Throws `not_found`, `forbidden`, and `conflict` if a webhook uses it. */
export async function deleteView(tx: Tx, call: ViewCall, id: string): Promise<void> {
  await lockProject(tx, call.projectId)
  const { isShared, uuid } = await getView(tx, call, id)
  if (isShared) checkSharing(call)
  await checkUnused(tx, call.projectId, uuid)
  await tx`delete from views where project_id = ${call.projectId} and id = ${uuid}`
  await audit(tx, call, 'view.deleted', { target: id, isShared })
}

/**
 * Marks the events of a view up to `seq` as seen. A mark moves only forward, up to the head of the
 * log. Returns the new mark. Throws `not_found`.
 */
export async function markSeen(
  tx: Tx,
  call: Pick<ViewCall, 'projectId' | 'accountId'>,
  { id, seq }: { id: string; seq: number },
): Promise<number> {
  const { projectId, accountId } = call
  const { uuid } = await getView(tx, call, id)
  const [mark] = await tx<{ seq: string }[]>`
    insert into view_marks as m (project_id, view_id, account_id, seq)
    select l.project_id, v.id, ${accountId}::uuid, least(${seq}::bigint, l.last_seq)
    from log_of(${projectId}) l
      join views v on v.project_id = l.project_id and v.id = ${uuid}
    on conflict (project_id, view_id, account_id) do update set seq = greatest(m.seq, excluded.seq)
    returning m.seq
  `.catch((error: unknown) => {
    if (sqlState(error) !== FOREIGN_KEY_VIOLATION) throw error
    // It has been deleted meanwhile.
    throw viewNotFound()
  })
  if (!mark) throw viewNotFound()
  return Number(mark.seq)
}

/**
 * Lists the views of an account in a project, or the one of a uuid: its own ones, then the shared
 * ones, by name.
 */
export async function listViews(
  sql: Queryable,
  { projectId, accountId }: Pick<ViewCall, 'projectId' | 'accountId'>,
  viewId?: string,
): Promise<StoredView[]> {
  const rows = await sql<
    (Omit<StoredView, 'createdAt' | 'markSeq'> & { created_at: Date; mark_seq: string })[]
  >`
    select
      v.id as uuid, v.name, v.search as q, v.account_id is null as "isShared", v.created_at,
      exists (
        select
        from view_bells b
        where b.project_id = v.project_id and b.view_id = v.id and b.account_id = ${accountId}
      ) as "hasBell",
      coalesce(m.seq, v.created_seq) as mark_seq
    from views v
      left join view_marks m
        on m.project_id = v.project_id and m.view_id = v.id and m.account_id = ${accountId}
    where v.project_id = ${projectId} and (v.account_id is null or v.account_id = ${accountId})
      ${viewId === undefined ? sql`` : sql`and v.id = ${viewId}`}
    order by v.account_id nulls last, lower(v.name), v.id
    limit ${2 * MAX_VIEWS}
  `
  return rows.map(({ created_at: at, mark_seq, ...view }) => ({
    ...view,
    createdAt: at.toISOString(),
    markSeq: BigInt(mark_seq),
  }))
}

/** Throws `conflict` if a webhook uses a view. The lock of the project keeps others from it. */
async function checkUnused(tx: Tx, projectId: string, uuid: string): Promise<void> {
  const [webhook] = await tx<{ name: string }[]>`
    select name from webhooks where project_id = ${projectId} and view_id = ${uuid} and deleted_at is null limit 1
  `
  if (!webhook) return
  const message = `The webhook ${webhook.name} sends what this view finds. Choose another one there first.`
  throw new Fault('conflict', message)
}

function checkSharing({ role }: ViewCall): void {
  if (isAtLeast(role, SHARING_ROLE)) return
  throw new Fault(
    'forbidden',
    `A shared view requires the ${SHARING_ROLE} role; you are a ${role}.`,
  )
}

/** Returns a valid search without white space around it. */
function checkSearch(q: string): string {
  if (q.trim() === '') throw invalidField('q', 'required', 'Required')
  toSearchFilters({ q })
  return q.trim()
}

async function checkRoom(
  tx: Tx,
  { projectId, accountId }: ViewCall,
  isShared: boolean,
): Promise<void> {
  const [{ n }] = await tx<[{ n: number }]>`
    select count(*)::int as n
    from views
    where project_id = ${projectId} and account_id is not distinct from ${isShared ? null : accountId}::uuid
  `
  if (n < MAX_VIEWS) return
  const whose = isShared ? 'A project shares' : 'You can have'
  throw new Fault('conflict', `${whose} at most ${MAX_VIEWS} views. Delete one first.`)
}

/** Writes an entry of the audit log, without name and search, because they can name users. */
async function audit(
  tx: Tx,
  { actor, organizationId, projectId }: ViewCall,
  action: AuditAction,
  { target, isShared }: { target: string; isShared: boolean },
): Promise<void> {
  await writeAudit(tx, actor, { action, organizationId, projectId, target, details: { isShared } })
}

/** Returns the uuid in a view's id. Throws `not_found`. */
function toViewUuid(id: string): string {
  const uuid = parseId('viw', id)
  if (uuid === undefined) throw viewNotFound()
  return uuid
}

export function toViewId(uuid: string): string {
  return toId('viw', uuid)
}

function viewNotFound(): Fault {
  return new Fault('not_found', 'No view has this id')
}
