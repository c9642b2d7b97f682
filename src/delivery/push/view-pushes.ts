import { logger } from '../../base/log.ts'
import { toArray } from '../../database/arrays.ts'
import { QUERY_CANCELED, sqlState, type Queryable, type Tx } from '../../database/sql.ts'
import { toConditions } from '../../log/events/event-conditions.ts'
import { resolveFilters } from '../../log/events/resolved-filters.ts'
import { parseSearch } from '../../log/events/search-query.ts'
import type { TakenRange } from '../outbox/kind.ts'

/** The time for the views of one dispatch, for those of one organization, and for one statement. */
const TOTAL_MS = 300
const ORGANIZATION_MS = 200
const VIEW_MS = 40
/** The interval of log lines about views that were not matched. */
const REMIND_MS = 60_000

const log = logger('push')
let remindedMs = -Infinity

/** A view with a bell, and the seqs of the events to match; fromSeq is excluded. Ids are uuids. */
interface BelledView {
  organizationId: string
  projectId: string
  viewId: string
  q: string
  fromSeq: string
  toSeq: string
}

/**
 * Enqueues pushes of events that match a view with a bell, for accounts that have muted the
 * channel. A dispatch matches views for at most about 300 ms, and those of one organization for 200
 * ms. Organizations take turns, one view at a time. A range that takes too long is halved. Returns
 * the number of deliveries.
 */
export async function dispatchViewPushes(
  tx: Tx,
  ranges: readonly TakenRange[],
  sentences: string,
): Promise<number> {
  const deadline = performance.now() + TOTAL_MS
  const dispatched = ranges.filter(({ hasTargets }) => hasTargets)
  const views = await tx<BelledView[]>`
    select
      p.organization_id as "organizationId", v.project_id as "projectId", v.id as "viewId", v.search as q,
      r.from_seq as "fromSeq", r.to_seq as "toSeq"
    from unnest(
        ${toArray(dispatched.map(({ projectId }) => projectId))}::uuid[],
        ${toArray(dispatched.map(({ fromSeq }) => fromSeq))}::bigint[],
        ${toArray(dispatched.map(({ toSeq }) => toSeq))}::bigint[]
      ) as r (project_id, from_seq, to_seq)
      join projects p on p.id = r.project_id
      join views v on v.project_id = r.project_id
    where exists (
      select
      from view_bells b
        join memberships m on m.account_id = b.account_id and m.organization_id = p.organization_id
      where b.project_id = v.project_id and b.view_id = v.id
        and (v.account_id is null or v.account_id = b.account_id)
    )
    order by random()
  `
  const organizations = [...Map.groupBy(views, one => one.organizationId).values()].map(
    waiting => ({
      waiting,
      leftMs: ORGANIZATION_MS,
    }),
  )
  let count = 0
  for (;;) {
    const turns = organizations.filter(one => one.waiting.length > 0 && one.leftMs >= 1)
    if (turns.length === 0 || performance.now() + 1 > deadline) break
    for (const turn of turns) {
      const startedMs = performance.now()
      const limitMs = Math.min(VIEW_MS, turn.leftMs, deadline - startedMs)
      const [view, ...others] = turn.waiting
      if (!view || limitMs < 1) break
      const eventIds = await tryToMatch(tx, view, limitMs)
      turn.waiting = eventIds ? others : [...others, ...toHalves(view)]
      if (eventIds) count += await dispatchMatches(tx, { ...view, eventIds }, sentences)
      turn.leftMs -= performance.now() - startedMs
    }
  }
  remind(organizations.flatMap(({ waiting }) => waiting))
  return count
}

/** Returns the ids of the events that match a view; undefined if that takes too long. */
async function tryToMatch(
  tx: Tx,
  view: BelledView,
  limitMs: number,
): Promise<string[] | undefined> {
  try {
    return await tx.savepoint(tx => findMatches(tx, view, limitMs))
  } catch (error) {
    // The savepoint has undone the failed statement alone.
    if (sqlState(error) !== QUERY_CANCELED) throw error
    return undefined
  }
}

async function findMatches(
  sql: Queryable,
  { projectId, q, fromSeq, toSeq }: BelledView,
  limitMs: number,
): Promise<string[]> {
  const [{ before }] = await sql<[{ before: string }]>`
    select current_setting('statement_timeout') as before
  `
  await sql`select set_config('statement_timeout', ${String(Math.ceil(limitMs))}, true)`
  // The view was valid when it was saved.
  const resolved = await resolveFilters(sql, projectId, parseSearch(q).filters, { namesMs: 0 })
  const rows = resolved
    ? await sql<{ id: string }[]>`
        select e.id
        from events e
        where e.project_id = ${projectId} and e.seq > ${fromSeq} and e.seq <= ${toSeq}
          and ${toConditions(sql, resolved)}
      `
    : []
  await sql`select set_config('statement_timeout', ${before}, true)`
  return rows.map(({ id }) => id)
}

async function dispatchMatches(
  tx: Tx,
  { projectId, viewId, fromSeq, toSeq, eventIds }: BelledView & { eventIds: string[] },
  sentences: string,
): Promise<number> {
  if (eventIds.length === 0) return 0
  const [row] = await tx<[{ n: number }]>`
    select dispatch_view_pushes(
      project => ${projectId},
      view => ${viewId},
      from_seq => ${fromSeq},
      to_seq => ${toSeq},
      event_ids => ${toArray(eventIds)}::uuid[],
      sentences => ${sentences}::text::jsonb
    ) as n
  `
  return row.n
}

/** Halves the range of a view. A single event stays as it is. */
function toHalves(view: BelledView): BelledView[] {
  const [from, to] = [BigInt(view.fromSeq), BigInt(view.toSeq)]
  const middle = String((from + to) / 2n)
  if (to - from <= 1n) return [view]
  return [
    { ...view, toSeq: middle },
    { ...view, fromSeq: middle },
  ]
}

/** Logs that views were not matched with all events, once a minute. */
function remind(views: readonly BelledView[]): void {
  if (views.length === 0 || performance.now() - remindedMs < REMIND_MS) return
  remindedMs = performance.now()
  const projects = new Set(views.map(({ projectId }) => projectId)).size
  log.warning(
    'Views with a bell took too long in {projects} projects. Some matches are not notified of.',
    {
      projects,
    },
  )
}
