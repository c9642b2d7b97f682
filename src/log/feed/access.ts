import { isExpired } from '../../access/guard/sessions.ts'
import { toArray } from '../../database/arrays.ts'
import type { Queryable } from '../../database/sql.ts'

/**
 * A session and a project that it follows. `projectId` is null for a socket without subscriptions.
 */
export interface Grant {
  sessionId: string
  projectId: string | null
}

/** The state of the log of a project that an account may read. Every member may. */
export interface LogState {
  /** The uuid of the organization of the project. */
  organizationId: string
  epoch: string
  head: number
  /** The last seq that retention has deleted; 0 for none. */
  expiredSeq: number
}

/** The result of one check of all sockets. */
export interface AccessCheck {
  epoch: string
  /** The indexes of the grants that are no longer valid. */
  revoked: number[]
  /** The largest distance, in seqs, between a cursor and the head of its log. */
  lag: number
  /** True if a log ends before a cursor. */
  hasLost: boolean
}

/** Returns undefined when the session, the membership or the project does not exist. */
export async function findLogState(
  sql: Queryable,
  { sessionId, projectId }: { sessionId: string; projectId: string },
): Promise<LogState | undefined> {
  const [row] = await sql<
    {
      organization_id: string
      epoch: string
      head: string
      expired_seq: string
    }[]
  >`
    select
      o.id as organization_id, i.epoch, l.last_seq as head,
      greatest(
        l.expired_seq,
        coalesce(first_seq_of(p.id), l.last_seq + 1) - 1
      ) as expired_seq
    from sessions s
      join memberships m on m.account_id = s.account_id
      join organizations o on o.id = m.organization_id and o.deleted_at is null
        and not lacks_second_factor(o.requires_second_factor, s.is_multi_factor)
      join projects p on p.organization_id = o.id and p.id = ${projectId} and p.deleted_at is null
      cross join lateral log_of(p.id) l
      cross join installation i
    where s.id = ${sessionId} and not ${isExpired(sql)}
  `
  return (
    row && {
      organizationId: row.organization_id,
      epoch: row.epoch,
      head: Number(row.head),
      expiredSeq: Number(row.expired_seq),
    }
  )
}

/**
 * Checks all grants and cursors. One statement covers all of them, because it runs every second.
 */
export async function checkAccess(
  sql: Queryable,
  grants: readonly Grant[],
  cursors: readonly { projectId: string; after: number }[],
): Promise<AccessCheck> {
  const [row] = await sql<[{ epoch: string; revoked: string; lag: string; lead: string }]>`
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
            and not lacks_second_factor(o.requires_second_factor, s.is_multi_factor)
          left join memberships m on m.organization_id = o.id and m.account_id = s.account_id
        where s.id is null or g.project_id is not null and m.account_id is null
      ) as revoked,
      d.*
    from (
      select coalesce(max(l.last_seq - c.after), 0) as lag, coalesce(max(c.after - l.last_seq), 0) as lead
      from unnest(
          ${toArray(cursors.map(({ projectId }) => projectId))}::uuid[],
          ${toArray(cursors.map(({ after }) => after))}::bigint[]
        ) as c (project_id, after)
        cross join lateral log_of(c.project_id) l
    ) d
  `
  const revoked = JSON.parse(row.revoked) as number[]
  return { epoch: row.epoch, revoked, lag: Number(row.lag), hasLost: Number(row.lead) > 0 }
}

/** Begins a new epoch in place of `epoch`, unless another server has. */
export async function renewEpoch(sql: Queryable, epoch: string): Promise<void> {
  await sql`update installation set epoch = gen_random_uuid() where epoch = ${epoch}`
}

export async function readEpoch(sql: Queryable): Promise<string> {
  const [row] = await sql<[{ epoch: string }]>`select i.epoch from installation i`
  return row.epoch
}
