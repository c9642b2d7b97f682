import { writeAudit, type Actor } from '../../access/audit/audit.ts'
import { toName } from '../../access/guard/schema.ts'
import { hashSecret, newSecret } from '../../access/guard/secret.ts'
import { lockProject } from '../../access/organizations/projects.ts'
import type { AuditAction } from '../../access/audit/actions.ts'
import { Fault } from '../../base/errors.ts'
import { newId, parseId, toId } from '../../base/ids.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { invalidField } from '../../http/validation.ts'
import { toDisplayName } from '../channels/name.ts'
import { readDrafts, toEvents } from './convert.ts'
import { readBody } from './read-body.ts'
import type {
  Hook,
  HookChanges,
  HookRequestRecord,
  NewHook,
  PresetName,
  PreviewInput,
} from './schema.ts'
import { toSealedCell } from './sealing.ts'
import { SCHEMES } from './signature.ts'

const MAX_HOOKS = 100
const MAX_PREVIEWS = 3
/** The requests that a hook keeps. */
export const MAX_REQUESTS = 20

/** A change of the hooks of a project. Ids are uuids. */
export interface HookCall {
  actor: Actor
  organizationId: string
  projectId: string
}

interface Sealing {
  secrets: Secrets
}

/** Creates a hook. Returns it with its token. Throws `conflict` and `InvalidRequest`. */
export async function createHook(
  tx: Tx,
  call: HookCall,
  { preset, name, channel, secret = null, template = null }: NewHook,
  { secrets }: Sealing,
): Promise<{ hook: Hook; token: string }> {
  const { projectId } = call
  check(preset, { secret, template })
  await lockProject(tx, projectId)
  const [{ n }] = await tx<[{ n: number }]>`
    select count(*)::int as n from hooks where project_id = ${projectId}
  `
  if (n >= MAX_HOOKS)
    throw new Fault(
      'conflict',
      `A project has at most ${MAX_HOOKS} inbound hooks. Delete one first.`,
    )
  const { uuid } = newId('hok')
  const token = newSecret(256)
  await tx`
    insert into hooks (project_id, id, name, preset, channel, token_hash, secret, template)
    values (
      ${projectId}, ${uuid}, ${toName(name)}, ${preset}, ${toDisplayName(channel)},
      decode(${hashSecret(token)}, 'hex'), ${secret && secrets.seal(secret, toSealedCell(uuid))},
      ${template && JSON.stringify(template)}::text::jsonb
    )
  `
  return { hook: await finish(tx, call, { uuid, action: 'hook.created' }), token }
}

/** Changes a hook. Throws `not_found` and `InvalidRequest`. */
export async function editHook(
  tx: Tx,
  call: HookCall,
  id: string,
  changes: HookChanges,
  { secrets }: Sealing,
): Promise<Hook> {
  const { projectId } = call
  const { name, channel, secret, template, isOn } = changes
  await lockProject(tx, projectId)
  const { uuid, preset } = await findHook(tx, projectId, id)
  check(preset, { secret, template })
  await tx`
    update hooks set
      name = coalesce(${name === undefined ? null : toName(name)}, name),
      channel = coalesce(${channel === undefined ? null : toDisplayName(channel)}, channel),
      secret = case when ${secret === undefined} then secret
        else ${secret ? secrets.seal(secret, toSealedCell(uuid)) : null} end,
      template = case when ${template === undefined} then template
        else ${template ? JSON.stringify(template) : null}::text::jsonb end,
      is_on = coalesce(${isOn ?? null}, is_on)
    where project_id = ${projectId} and id = ${uuid}
  `
  const details = { fields: Object.keys(changes).sort().join(' ') }
  return finish(tx, call, { uuid, action: 'hook.edited', details })
}

/** Gives a hook another token, which it returns. The former one ends at once. */
export async function rotateHook(
  tx: Tx,
  call: HookCall,
  id: string,
): Promise<{ hook: Hook; token: string }> {
  const { projectId } = call
  await lockProject(tx, projectId)
  const { uuid } = await findHook(tx, projectId, id)
  const token = newSecret(256)
  await tx`
    update hooks set token_hash = decode(${hashSecret(token)}, 'hex')
    where project_id = ${projectId} and id = ${uuid}
  `
  return { hook: await finish(tx, call, { uuid, action: 'hook.rotated' }), token }
}

/** Deletes a hook with its requests. Its events stay. Throws `not_found`. */
export async function deleteHook(tx: Tx, call: HookCall, id: string): Promise<void> {
  const { projectId } = call
  await lockProject(tx, projectId)
  const { uuid } = await findHook(tx, projectId, id)
  await finish(tx, call, { uuid, action: 'hook.deleted' })
  await tx`delete from hooks where project_id = ${projectId} and id = ${uuid}`
}

/** Writes the audit entry of a change. Returns the hook. */
async function finish(
  tx: Tx,
  { actor, organizationId, projectId }: HookCall,
  { uuid, action, details }: { uuid: string; action: AuditAction; details?: object },
): Promise<Hook> {
  const [hook] = (await listHooks(tx, projectId, uuid)).items as [Hook]
  const place = { organizationId, projectId, target: hook.id }
  await writeAudit(tx, actor, { action, ...place, details: { name: hook.name, ...details } })
  return hook
}

/** Throws `InvalidRequest` for what the program of the hook cannot have. */
function check(
  preset: PresetName,
  { secret, template }: { secret: string | null | undefined; template: object | null | undefined },
): void {
  const scheme = SCHEMES[preset]
  if (secret && !scheme)
    throw invalidField('secret', 'invalid_value', 'This program does not sign its requests')
  if (secret && !scheme?.secret.test(secret))
    throw invalidField('secret', 'invalid_format', 'No secret of this program. Copy all of it')
  if (template && preset !== 'generic')
    throw invalidField('template', 'invalid_value', 'Only the preset generic has one')
}

async function findHook(
  sql: Queryable,
  projectId: string,
  id: string,
): Promise<{ uuid: string } & Pick<Hook, 'preset' | 'name' | 'channel'>> {
  const [found] = await sql<({ uuid: string } & Pick<Hook, 'preset' | 'name' | 'channel'>)[]>`
    select id as uuid, preset, name, channel
    from hooks
    where project_id = ${projectId} and id = ${parseId('hok', id) ?? null}
  `
  if (!found) throw new Fault('not_found', 'No inbound hook of this project has this id')
  return found
}

/** Lists the hooks of a project, newest first, or the one with this uuid. */
export async function listHooks(
  sql: Queryable,
  projectId: string,
  id?: string,
): Promise<{ items: Hook[] }> {
  const rows = await sql<Hook[]>`
    select
      h.id, h.name, h.preset, h.channel, h.template, h.is_on as "isOn", h.secret is not null as "isVerified",
      h.requests::float8 as requests, h.refused::float8 as refused, to_iso(h.created_at) as "createdAt",
      (
        select to_iso(max(r.at)) from hook_requests r where r.project_id = h.project_id and r.hook_id = h.id
      ) as "lastRequestAt"
    from hooks h
    where h.project_id = ${projectId} ${id ? sql`and h.id = ${id}` : sql``}
    order by h.id desc
  `
  return { items: rows.map(row => ({ ...row, id: toId('hok', row.id) })) }
}

/** Lists the last requests to a hook, newest first. Throws `not_found`. */
export async function listRequests(
  sql: Queryable,
  projectId: string,
  id: string,
): Promise<{ items: HookRequestRecord[] }> {
  const { uuid } = await findHook(sql, projectId, id)
  const rows = await sql<HookRequestRecord[]>`
    select r.id, to_iso(r.at) as at, r.status, r.outcome, r.headers, r.body, to_json(r.event_ids) as "eventIds"
    from hook_requests r
    where r.project_id = ${projectId} and r.hook_id = ${uuid}
    order by r.id desc
    limit ${MAX_REQUESTS}
  `
  const items = rows.map(row => ({
    ...row,
    id: toId('hkr', row.id),
    eventIds: row.eventIds.map(one => toId('evt', one)),
  }))
  return { items }
}

/** Returns events that the last three requests would become with a template. Throws `not_found`. */
export async function previewHook(
  sql: Queryable,
  projectId: string,
  id: string,
  { template }: PreviewInput,
): Promise<{ events: Record<string, unknown>[] }> {
  const hook = await findHook(sql, projectId, id)
  const { items } = await listRequests(sql, projectId, id)
  const made = items.slice(0, MAX_PREVIEWS).map(async request => {
    const headers = new Headers(request.headers)
    const read = await readBody(Buffer.from(request.body), { headers, caller: projectId })
    const received = { ...read, headers, hook: { ...hook, id, template } }
    const drafts = readDrafts(received).drafts.slice(0, MAX_PREVIEWS)
    return toEvents(drafts, received).map(({ input }) => input)
  })
  return { events: (await Promise.all(made)).flat() }
}
