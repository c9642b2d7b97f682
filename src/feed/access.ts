import { ACTIONS, isAtLeast, ROLES, type Role } from '../accounts/permissions.ts'
import { isExpired } from '../accounts/sessions.ts'
import { toArray } from '../db/arrays.ts'
import type { Queryable } from '../db/sql.ts'

/** The roles that may read a project's events, and so follow them. */
export const READERS = ROLES.filter(role => isAtLeast(role, ACTIONS['events.read'].role))

/** A session, and a project that it follows; null for a socket that follows none. */
export interface Grant {
  sessionId: string
  projectId: string | null
}

/** Where a project's log stands, for somebody who has a role in it. */
export interface Place {
  role: Role
  epoch: string
  head: number
  /** The last seq that is gone for good at the old end. */
  cut: number
}

export interface Pulse {
  epoch: string
  /** Places in `grants` of those that hold no longer. */
  lost: number[]
  /** How many seqs the log that is furthest ahead of its cursor is ahead. */
  behind: number
}

/** The place of a project's log; undefined where the session, the membership or the project is gone, or never was. */
export async function findPlace(
  sql: Queryable,
  { sessionId, projectId }: { sessionId: string; projectId: string },
): Promise<Place | undefined> {
  const [row] = await sql<{ role: Role; epoch: string; head: string; cut: string }[]>`
    select
      m.role, i.epoch, l.last_seq as head,
      greatest(
        l.cut_seq,
        coalesce((select min(e.seq) from events e where e.project_id = l.project_id), l.last_seq + 1) - 1
      ) as cut
    from sessions s
      join memberships m on m.person_id = s.person_id
      join organizations o on o.id = m.organization_id and o.deleted_at is null
      join projects p on p.organization_id = o.id and p.id = ${projectId} and p.deleted_at is null
      join event_logs l on l.project_id = p.id
      cross join installation i
    where s.id = ${sessionId} and not ${isExpired(sql)}
  `
  return row && { ...row, head: Number(row.head), cut: Number(row.cut) }
}

/** Looks after everything that is open in one statement; it joins sets, because it comes every second, for every open stream. */
export async function readPulse(
  sql: Queryable,
  grants: readonly Grant[],
  cursors: readonly { projectId: string; after: number }[],
): Promise<Pulse> {
  const [row] = await sql<[{ epoch: string; lost: string; behind: string }]>`
    select
      (select i.epoch from installation i) as epoch,
      (
        select coalesce(json_agg(g.ord - 1), '[]')::text
        from unnest(
            ${toArray(grants.map(({ sessionId }) => sessionId))}::uuid[],
            ${toArray(grants.map(({ projectId }) => projectId))}::uuid[]
          ) with ordinality as g (session_id, project_id, ord)
          left join sessions s on s.id = g.session_id and not ${isExpired(sql)}
          left join projects p on p.id = g.project_id and p.deleted_at is null
          left join organizations o on o.id = p.organization_id and o.deleted_at is null
          left join memberships m on m.organization_id = o.id and m.person_id = s.person_id
            and m.role = any(${toArray(READERS)}::text[])
        where s.id is null or g.project_id is not null and m.person_id is null
      ) as lost,
      (
        select coalesce(max(l.last_seq - c.after), 0)
        from unnest(
            ${toArray(cursors.map(({ projectId }) => projectId))}::uuid[],
            ${toArray(cursors.map(({ after }) => after))}::bigint[]
          ) as c (project_id, after)
          join event_logs l on l.project_id = c.project_id
      ) as behind
  `
  return { epoch: row.epoch, lost: JSON.parse(row.lost) as number[], behind: Number(row.behind) }
}

export async function readEpoch(sql: Queryable): Promise<string> {
  const [row] = await sql<[{ epoch: string }]>`select i.epoch from installation i`
  return row.epoch
}
