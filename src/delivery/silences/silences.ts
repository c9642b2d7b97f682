import { writeAudit, type Actor } from '../../access/audit/audit.ts'
import { toAuthor, type Admitted } from '../../access/guard/caller.ts'
import { lockProject } from '../../access/organizations/projects.ts'
import { Fault } from '../../base/errors.ts'
import { newId, parseId, toId } from '../../base/ids.ts'
import type { Fragment, Queryable, Tx } from '../../database/sql.ts'
import { invalidField } from '../../http/validation.ts'
import { findChannel } from '../../log/channels/channels.ts'
import { FORMER_MEMBER } from '../../log/events/threads.ts'
import { nextQuiet } from '../push/quiet-hours.ts'
import type { NewSilence, Silence } from './schema.ts'

const MAX_SILENCES = 100

/** A change of a project's silences. Ids are uuids. */
export interface SilenceCall {
  actor: Actor
  organizationId: string
  projectId: string
  /** Absent for an API key. */
  admitted?: Pick<Admitted, 'account' | 'token'>
}

/**
 * Begins a silence. Throws `InvalidRequest` for fields that do not fit together, and `conflict` if
 * nothing is open that it could wait for, or if the project has too many.
 */
export async function beginSilence(
  tx: Tx,
  call: SilenceCall,
  { channel, thread, minutes, untilResolved = false, hours, reason }: NewSilence,
): Promise<Silence> {
  const { actor, organizationId, projectId, admitted } = call
  const author = admitted && toAuthor(admitted)
  if (thread !== undefined && channel === undefined)
    throw invalidField('channel', 'required', '`thread` requires its channel')
  if ([minutes !== undefined, untilResolved, hours !== undefined].filter(Boolean).length !== 1)
    throw invalidField('minutes', 'required', 'Give one of `minutes`, `untilResolved` and `hours`')
  await lockProject(tx, projectId)
  const channelId = channel ? await findChannel(tx, projectId, channel) : null
  const [{ n, now }] = await tx<[{ n: number; now: Date }]>`
    select count(*)::int as n, now() from silences s where s.project_id = ${projectId} and ${isLeft(tx)}
  `
  if (n >= MAX_SILENCES)
    throw new Fault('conflict', `A project has at most ${MAX_SILENCES} silences. End one first.`)
  const next = hours && nextQuiet(hours, now)
  if (next === null) throw invalidField('hours', 'invalid_value', 'These hours never come')
  const { uuid, id } = newId('sil')
  const endsAt = next?.to ?? (minutes ? new Date(now.getTime() + minutes * 60_000) : null)
  await tx`
    insert into silences (
      project_id, id, channel_id, thread, account_id, key_name, reason, created_at, starts_at, ends_at, hours
    )
    values (
      ${projectId}, ${uuid}, ${channelId}, ${thread ?? null}, ${author?.accountId ?? null},
      coalesce(${author?.tokenName ?? null}, (select k.name from api_keys k where k.id = ${actor.keyId ?? null})), ${reason}, ${now}, ${next?.from ?? now}, ${endsAt},
      ${hours ? JSON.stringify(hours) : null}::text::jsonb
    )
  `
  if (untilResolved) {
    const [open] = await tx<[{ seq: string | null }]>`
      select max(t.thread_seq) as seq from open_threads(${projectId}, ${uuid}) t
    `
    if (open.seq === null)
      throw new Fault('conflict', 'No thread in it is open. Give it a length of time.')
    await tx`
      update silences set thread_seq = ${open.seq}
      where project_id = ${projectId} and id = ${uuid} and thread is not null
    `
  }
  // Its first attempt finds out when it is due.
  await tx`
    insert into outbox (project_id, event_id, kind, target_id)
    values (${projectId}, ${uuid}, 'timer', ${uuid})
  `
  await writeAudit(tx, actor, { action: 'silence.created', organizationId, projectId, target: id })
  const { items } = await listSilences(tx, projectId, uuid)
  return items[0]!
}

/**
 * Ends a silence, and tells members within a second of what it kept quiet and still fires. Throws
 * `not_found`.
 */
export async function endSilence(
  tx: Tx,
  { actor, organizationId, projectId }: SilenceCall,
  id: string,
): Promise<void> {
  const uuid = parseId('sil', id)
  const ended = await tx`
    update silences s set ends_at = now(), hours = null
    where s.project_id = ${projectId} and s.id = ${uuid ?? null} and ${isLeft(tx)}
  `
  if (ended.count === 0) throw new Fault('not_found', 'No silence of this project has this id')
  // An attempt that has begun loses its lease, because it would wait for the former end.
  await tx`
    update outbox set available_at = now(), token = null
    where project_id = ${projectId} and (event_id, kind, target_id) = (${uuid ?? null}, 'timer', ${uuid ?? null})
  `
  await writeAudit(tx, actor, { action: 'silence.ended', organizationId, projectId, target: id })
}

/** Those that have ended stay until members are told. */
function isLeft(sql: Queryable): Fragment {
  return sql`(s.ends_at is null or s.ends_at > now() or s.hours is not null)`
}

/** Lists the silences of a project that have not ended, newest first, or the one with this uuid. */
export async function listSilences(
  sql: Queryable,
  projectId: string,
  id?: string,
): Promise<{ items: Silence[] }> {
  const rows = await sql<Silence[]>`
    select
      s.id, c.public_id as "channelId", c.name as "channelName", s.thread, s.reason,
      coalesce(a.name, s.key_name, ${FORMER_MEMBER}) as by, to_iso(s.created_at) as "createdAt",
      to_iso(s.starts_at) as "startsAt", to_iso(s.ends_at) as "endsAt", s.ends_at is null as "untilResolved",
      s.hours, s.starts_at <= now() and coalesce(s.ends_at > now(), true) as "isActive"
    from silences s
      left join lateral channel_by_id(s.project_id, s.channel_id) c on true
      left join accounts a on a.id = s.account_id
    where s.project_id = ${projectId} and ${isLeft(sql)} ${id ? sql`and s.id = ${id}` : sql``}
    order by s.id desc
  `
  const items = rows.map(row => ({ ...row, id: toId('sil', row.id) }))
  return { items }
}
