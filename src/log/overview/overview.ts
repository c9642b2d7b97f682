import { isAtLeast, type Role } from '../../access/guard/permissions.ts'
import type { AdmittedSession } from '../../access/guard/sessions.ts'
import { withTimeout } from '../../base/functions.ts'
import { Fault } from '../../base/errors.ts'
import { parseId, toId } from '../../base/ids.ts'
import { toArray } from '../../database/arrays.ts'
import type { Pool } from '../../database/pool.ts'
import { isUnavailable, type Queryable } from '../../database/sql.ts'
import { readActivity, type ProjectActivity } from './activity.ts'
import { MAX_COUNTED, type Overview, type OverviewProject } from './schema.ts'

const MAX_PROJECTS = 100
const NEWEST = 3
/** The time for one read of one organization, and for all of them. */
const READ_MS = 2_000
const TOTAL_MS = 6_000

interface OverviewOptions {
  /** For the list of projects. */
  pool: Pool
  /** For events and counts. Each organization has its own share. */
  searches: Pool
  nowMs: number
}

/**
 * Returns the overview of an account's projects. The organizations are read one after another, each
 * in its share of connections, so an account in many of them delays no other. An organization that
 * cannot be read in time leaves its projects incomplete.
 */
export async function getOverview(
  { account, session }: AdmittedSession,
  { pool, searches, nowMs }: OverviewOptions,
): Promise<Overview> {
  const all = await pool.run(sql => listOwnProjects(sql, account.id, session.id))
  const shown = all.slice(0, MAX_PROJECTS)
  const deadline = performance.now() + TOTAL_MS
  const projects: OverviewProject[] = []
  for (const [organizationId, own] of Map.groupBy(shown, one => one.organizationId)) {
    const share = searches.of(organizationId)
    const ids = own.map(({ id }) => id)
    /** Resolves to undefined if the database cannot read something, or needs more time. */
    const tryInTime = async <Result>(work: (sql: Queryable) => Promise<Result>) => {
      const leftMs = Math.min(READ_MS, deadline - performance.now())
      if (leftMs <= 0) return undefined
      const reading = share.run(work).catch((error: unknown) => {
        if (!isUnavailable(error)) throw error
        return undefined
      })
      return withTimeout(leftMs, reading, () => undefined)
    }
    const recent = await tryInTime(sql => readRecent(sql, ids, account.id))
    const activity = recent && (await tryInTime(sql => readActivity(sql, ids, nowMs)))
    for (const project of own) projects.push(toProject(project, recent, activity))
  }
  return { projects, more: all.length - shown.length }
}

/** Returns the ID of the project of an account that has an event. Throws `not_found`. */
export async function findProjectOf(
  eventId: string,
  { account, session }: AdmittedSession,
  pool: Pool,
): Promise<string> {
  const uuid = parseId('evt', eventId)
  const own = uuid ? await pool.run(sql => listOwnProjects(sql, account.id, session.id)) : []
  let failure: unknown
  for (const [organizationId, projects] of Map.groupBy(own, one => one.organizationId)) {
    const ids = projects.map(({ id }) => id)
    try {
      const [found] = await pool.of(organizationId).run(
        sql => sql<{ id: string }[]>`
          select p.id from unnest(${toArray(ids)}::uuid[]) as p (id)
          where find_event(p.id, ${uuid!}) is not null
          limit 1
        `,
      )
      if (found) return toId('prj', found.id)
    } catch (error) {
      if (!isUnavailable(error)) throw error
      failure = error
    }
  }
  throw failure ?? new Fault('not_found', 'No event has this id')
}

/** A project of an account; ids are uuids. */
interface OwnProject {
  id: string
  name: string
  organizationId: string
  organization: string
  role: Role
  head: number
}

async function listOwnProjects(
  sql: Queryable,
  accountId: string,
  sessionId: string,
): Promise<OwnProject[]> {
  return await sql<OwnProject[]>`
    select
      p.id, p.name, o.id as "organizationId", o.name as organization, m.role, l.last_seq::float8 as head
    from sessions s
      join memberships m on m.account_id = s.account_id
      join organizations o on o.id = m.organization_id and o.deleted_at is null
        and not lacks_second_factor(o.requires_second_factor, s.is_multi_factor)
      join projects p on p.organization_id = o.id and p.deleted_at is null
      cross join lateral log_of(p.id) l
    where s.id = ${sessionId} and s.account_id = ${accountId}
    order by o.id, p.id
  `
}

/** The newest events of a project, and what the account has not seen of it. */
interface Recent {
  id: string
  unseen: number
  newest: string | null
  dead: number
  dead_at: Date | null
  webhooks: number
  firing: number
  acknowledged: number
  questions: number
  silenced: boolean
}

async function readRecent(
  sql: Queryable,
  projectIds: readonly string[],
  accountId: string,
): Promise<Map<string, Recent>> {
  const rows = await sql<Recent[]>`
    select p.id, u.n as unseen, n.newest, d.dead, d.dead_at, w.webhooks, a.firing, a.acknowledged,
      count_questions(p.id, ${MAX_COUNTED}) as questions,
      is_silenced(
        project => p.id, channel => null, thread_key => null, event_thread_seq => null
      ) as silenced
    from unnest(${toArray(projectIds)}::uuid[]) as p (id)
      cross join lateral (
        select
          (
            select max(r.seq) from read_marks r where r.project_id = p.id and r.account_id = ${accountId}
          ) as seq,
          (
            select case when m.created_at <= now() then m.created_at else '-infinity' end
            from projects o
              join memberships m on m.organization_id = o.organization_id and m.account_id = ${accountId}
            where o.id = p.id
          ) as since
      ) mark
      cross join lateral count_events_since(
        project => p.id,
        after_seq => coalesce(mark.seq, 0),
        since => case when mark.seq is null then coalesce(mark.since, 'infinity') else '-infinity' end,
        max_rows => ${MAX_COUNTED}
      ) u
      cross join lateral (
        select json_agg(
            json_build_object(
              'id', e.id, 'title', e.title, 'icon', e.icon, 'channelName', e.channel_name,
              'createdAt', to_iso(e.created_at),
              -- Servers of 0.3.0 call newest_events, so its rows have no level.
              'level', (select level_name(l.level) from event_by_id(p.id, e.id) l)
            )
            order by e.seq desc
          )::text as newest
        from newest_events(p.id, ${NEWEST}) e
      ) n
      cross join lateral (
        select count(*)::int as dead, max(d.at) as dead_at
        from (
          select d.at from dead_letters d where d.project_id = p.id order by d.id desc limit ${MAX_COUNTED}
        ) d
        where d.at between now() - interval '7 days' and now()
      ) d
      cross join lateral (
        select count(*)::int as webhooks
        from webhooks w
        where w.project_id = p.id and w.deleted_at is null
          and (
            w.disabled_at is not null
            or exists (
              select from delivery_targets t where t.kind = 'webhook' and t.id = w.id and t.paused_until > now()
            )
          )
      ) w
      cross join lateral count_alarms(p.id, ${MAX_COUNTED}) a
  `
  return new Map(rows.map(row => [row.id, row]))
}

function toProject(
  { id, name, organizationId, organization, role, head }: OwnProject,
  recent: ReadonlyMap<string, Recent> | undefined,
  activity: ReadonlyMap<string, ProjectActivity> | undefined,
): OverviewProject {
  const found = recent?.get(id)
  // json_agg of objects with a uuid as id.
  const newest = JSON.parse(found?.newest ?? '[]') as OverviewProject['newest']
  return {
    id: toId('prj', id),
    name,
    organization: { id: toId('org', organizationId), name: organization },
    head,
    unseen: found?.unseen ?? 0,
    newest: newest.map(event => ({ ...event, id: toId('evt', event.id) })),
    firing: found?.firing ?? 0,
    acknowledged: found?.acknowledged ?? 0,
    questions: found?.questions ?? 0,
    isSilenced: found?.silenced ?? false,
    hours: activity?.get(id)?.hours ?? [],
    unusual: activity?.get(id)?.unusual ?? [],
    failed: isAtLeast(role, 'admin')
      ? {
          deliveries: found?.dead ?? 0,
          lastAt: found?.dead_at?.toISOString() ?? null,
          webhooks: found?.webhooks ?? 0,
        }
      : null,
    isComplete: activity !== undefined,
  }
}
