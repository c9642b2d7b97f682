import { writeAudit } from '../../access/audit/audit.ts'
import type { CallOn } from '../../access/guard/guard.ts'
import { isAtLeast } from '../../access/guard/permissions.ts'
import { lockProject } from '../../access/organizations/projects.ts'
import { Fault } from '../../base/errors.ts'
import { newId, parseId, toId } from '../../base/ids.ts'
import { toLength } from '../../base/period.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { findChannel, lockLog } from '../../log/channels/channels.ts'
import { appendOwn } from '../../log/events/append.ts'
import type { State } from '../../log/events/state.ts'
import type { Heartbeat, HeartbeatEdit, HeartbeatPings, NewHeartbeat } from './schema.ts'

const MAX_HEARTBEATS = 500
const MAX_LISTED_BODY = 10_000

/** A request about a project's heartbeats. `baseUrl` is that of the server. */
export type HeartbeatCall = { baseUrl: string } & Pick<
  CallOn<'project'>,
  'actor' | 'organizationId' | 'projectId' | 'role'
>

/** A heartbeat by its uuids. */
export interface Place {
  id: string
  projectId: string
  channelId: string
  name: string
}

/** Appends an event to the thread of a heartbeat. The log is locked. */
export async function tell(
  tx: Tx,
  place: Place,
  [state, what, description = '']: [state: State, what: string, description?: string],
): Promise<void> {
  await appendOwn(tx, place, {
    ...{ title: `${place.name} ${what}`, state, source: 'heartbeat' },
    thread: `heartbeat:${toId('hbt', place.id)}`,
    ...(description !== '' && { description }),
  })
}

/** Stores when a heartbeat is due, and sets its timer. The row is locked. */
export async function storeHeartbeat(tx: Tx, { projectId, id }: Place): Promise<void> {
  await tx`select store_heartbeat(h) from heartbeats h where h.project_id = ${projectId} and h.id = ${id}`
}

/** Returns the length of a run as the end of a sentence. Nothing if it is unknown. */
export function toAfter(ms: string | null): string {
  return ms === null ? '' : ` after ${toLength(Math.round(Number(ms) / 1000))}`
}

/** Lists the heartbeats of a project by name, or the one with this uuid. */
export async function listHeartbeats(
  sql: Queryable,
  { projectId, role, baseUrl }: HeartbeatCall,
  id?: string,
): Promise<{ items: Heartbeat[] }> {
  const rows = await sql<Heartbeat[]>`
    select
      h.id, h.name, c.public_id as "channelId", c.name as "channelName", h.period_s as "periodSeconds",
      h.grace_s as "graceSeconds", h.status, h.address as url, to_iso(h.created_at) as "createdAt",
      to_iso(h.last_ping_at) as "lastPingAt", to_iso(h.started_at) as "startedAt", to_iso(due_of(h)) as "dueAt"
    from heartbeats h
      cross join lateral channel_by_id(h.project_id, h.channel_id) c
    where h.project_id = ${projectId} ${id ? sql`and h.id = ${id}` : sql``}
    order by lower(h.name), h.id
  `
  const toUrl = (address: string | null) =>
    isAtLeast(role, 'member') ? `${baseUrl}/ping/${address}` : null
  return { items: rows.map(row => ({ ...row, id: toId('hbt', row.id), url: toUrl(row.url) })) }
}

/** Lists the newest 20 pings of a heartbeat, newest first. Throws `not_found`. */
export async function listPings(
  sql: Queryable,
  projectId: string,
  id: string,
): Promise<HeartbeatPings> {
  const [found] = await sql<[HeartbeatPings?]>`
    select coalesce(json_agg(json_build_object(
        'number', p.number, 'at', to_iso(p.at), 'kind', p.kind, 'exitCode', p.exit_code, 'runId', p.run_id,
        'tookMs', p.took_ms, 'method', p.method, 'userAgent', p.user_agent, 'body', left(p.body, ${MAX_LISTED_BODY}::int)
      ) order by p.number desc) filter (where p.number is not null), '[]') as items
    from heartbeats h
      left join heartbeat_pings p on p.project_id = h.project_id and p.heartbeat_id = h.id
    where h.project_id = ${projectId} and h.id = ${parseId('hbt', id) ?? null}
    group by h.id
  `
  return found ?? missing()
}

/** Creates a heartbeat. Throws `InvalidRequest`, and `conflict` if the project has too many. */
export async function createHeartbeat(
  tx: Tx,
  call: HeartbeatCall,
  { name, channel, periodSeconds, graceSeconds }: NewHeartbeat,
): Promise<Heartbeat> {
  const { projectId } = call
  await lockProject(tx, projectId)
  const channelId = await findChannel(tx, projectId, channel)
  const { uuid } = newId('hbt')
  const made = await tx`
    insert into heartbeats (project_id, id, channel_id, name, period_s, grace_s)
    select ${projectId}, ${uuid}, ${channelId}, ${name}, ${periodSeconds}, ${graceSeconds}
    where (select count(*) from heartbeats where project_id = ${projectId}) < ${MAX_HEARTBEATS}
  `
  if (made.count === 0)
    throw new Fault('conflict', `A project has at most ${MAX_HEARTBEATS} heartbeats`)
  return readChanged(tx, call, 'created', uuid)
}

/**
 * Changes a heartbeat. A pause ends what it has told, and the end of a pause makes it new. Throws
 * `InvalidRequest`, `not_found`, and `conflict` for another channel while it is down.
 */
export async function editHeartbeat(
  tx: Tx,
  call: HeartbeatCall,
  id: string,
  edit: HeartbeatEdit,
): Promise<Heartbeat> {
  const { projectId } = call
  const { isPaused: wanted, newAddress = false, ...fields } = edit
  const { name, channel, periodSeconds, graceSeconds } = fields
  const before = await lockHeartbeat(tx, projectId, id)
  const isDown = before.status === 'down'
  const isPaused = wanted === (before.status === 'paused') ? undefined : wanted
  const channelId = channel === undefined ? null : await findChannel(tx, projectId, channel)
  if (isDown && isPaused) await tell(tx, before, ['resolved', 'was paused'])
  else if (isDown && channelId !== null && channelId !== before.channelId)
    throw new Fault('conflict', 'It is down. Pause it before you choose another channel.')
  const details = {
    ...(isPaused !== undefined && { isPaused }),
    ...(newAddress && { newAddress }),
  }
  if (Object.keys({ ...fields, ...details }).length === 0)
    return (await listHeartbeats(tx, call, before.id)).items[0]!
  await tx`
    update heartbeats h set
      name = coalesce(${name ?? null}, h.name), channel_id = coalesce(${channelId}, h.channel_id),
      address = case when ${newAddress} then gen_random_uuid() else h.address end,
      period_s = coalesce(${periodSeconds ?? null}, h.period_s), grace_s = coalesce(${graceSeconds ?? null}, h.grace_s),
      started_at = case when ${isPaused === undefined} then h.started_at end,
      status = case when ${isPaused === undefined} then h.status when ${isPaused === true} then 'paused' else 'new' end
    where h.project_id = ${projectId} and h.id = ${before.id}
  `
  await storeHeartbeat(tx, before)
  return readChanged(tx, call, 'edited', before.id, details)
}

/** Deletes a heartbeat with its pings, and ends what it has told. Throws `not_found`. */
export async function deleteHeartbeat(tx: Tx, call: HeartbeatCall, id: string): Promise<void> {
  const before = await lockHeartbeat(tx, call.projectId, id)
  if (before.status === 'down') await tell(tx, before, ['resolved', 'was deleted'])
  await readChanged(tx, call, 'deleted', before.id)
  // Its timer finds that it is gone.
  await tx`delete from heartbeats where project_id = ${call.projectId} and id = ${before.id}`
}

/** Locks the log, and a heartbeat by its public id. Throws `not_found`. */
async function lockHeartbeat(tx: Tx, projectId: string, id: string) {
  await lockLog(tx, projectId)
  const [found] = await tx<[(Place & Pick<Heartbeat, 'status'>)?]>`
    select h.project_id as "projectId", h.id, h.channel_id as "channelId", h.name, h.status
    from heartbeats h
    where h.project_id = ${projectId} and h.id = ${parseId('hbt', id) ?? null}
    for update
  `
  return found ?? missing()
}

/** Returns a heartbeat, and writes the audit log. */
async function readChanged(
  tx: Tx,
  call: HeartbeatCall,
  what: 'created' | 'edited' | 'deleted',
  uuid: string,
  details: object = {},
): Promise<Heartbeat> {
  const { actor, organizationId, projectId } = call
  const { items } = await listHeartbeats(tx, call, uuid)
  const { id: target, name } = items[0]!
  const entry = { organizationId, projectId, target, details: { name, ...details } }
  await writeAudit(tx, actor, { action: `heartbeat.${what}`, ...entry })
  return items[0]!
}

function missing(): never {
  throw new Fault('not_found', 'No heartbeat of this project has this id')
}
