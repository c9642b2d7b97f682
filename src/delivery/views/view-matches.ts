import { toReason } from '../../base/errors.ts'
import { limitLines, logger } from '../../base/log.ts'
import { createWakeUpSignal } from '../../base/wake-up.ts'
import { toArray } from '../../database/arrays.ts'
import { toLock } from '../../database/locks.ts'
import { transact, type Pool } from '../../database/pool.ts'
import { isUnreachable, type Fragment, type Queryable, type Tx } from '../../database/sql.ts'
import { toConditions } from '../../log/events/event-conditions.ts'
import { resolveFilters } from '../../log/events/resolved-filters.ts'
import { parseSaved } from '../../log/events/search-query.ts'
import { WITHHELD_SENTENCES } from '../push/dispatch.ts'
import { enqueueFound } from '../webhooks/dispatch.ts'
import type { KindName } from '../outbox/delivery-kind.ts'

const POLL_MS = 1_000
/** Ranges that follow each other become one of at most this many events. */
const MAX_EVENTS = 500
/**
 * The time for one statement. After it the range is halved. The time of a single event doubles with
 * each failure, up to that of any statement.
 */
const MATCH_MS = 1_000
const MAX_DOUBLINGS = 3
const MAX_REST_MS = 60_000

const log = logger('outbox')
const warnOfView = limitLines((reason, times) =>
  log.warning('A view could not be matched. Its notifications and webhooks come later: {reason}', {
    reason,
    times,
  }),
)

/** A row of `bell_ranges`. Ids are uuids, and seqs are texts. */
interface ViewRange {
  organizationId: string
  projectId: string
  id: string
  /** The views to match: those with a bell (push), or those of webhooks. */
  kind: KindName
  viewId: string | null
  fromSeq: string
  toSeq: string
  failures: number
}

/** A range that no other process works on. It consists of these rows, which follow each other. */
interface ClaimedRange extends ViewRange {
  ids: string[]
}

/** The ids of the events that match a view. */
interface Matches {
  viewId: string
  eventIds: string[]
}

/**
 * Matches events with the views that have a bell or a webhook, and enqueues their deliveries. The
 * views of a project share a statement. If anything fails, each view gets a range of its own, and a
 * range that fails is halved. A single event is tried again until it succeeds, so none is lost.
 */
export function createViewMatcher(pool: Pool) {
  // When the ranges that have failed are tried again, by id.
  const resting = new Map<string, number>()

  /**
   * Handles one range of each organization that no other process works for. Returns how many, and
   * the number of deliveries.
   */
  async function run(): Promise<{ ranges: number; deliveries: number }> {
    const nowMs = performance.now()
    for (const [id, untilMs] of resting) if (untilMs <= nowMs) resting.delete(id)
    const found = await pool.run(sql => findRanges(sql, [...resting.keys()]))
    let ranges = 0
    let deliveries = 0
    for (const range of found) {
      const count = await handle(range)
      if (count === undefined) continue
      ranges++
      deliveries += count
    }
    return { ranges, deliveries }
  }

  async function handle(found: ViewRange): Promise<number | undefined> {
    try {
      return await transact(pool, async tx => {
        const range = await claim(tx, found)
        return range && enqueue(tx, range, await findMatches(tx, range))
      })
    } catch (error) {
      const restMs = Math.min(MAX_REST_MS, MATCH_MS * 2 ** found.failures)
      resting.set(found.id, performance.now() + restMs)
      if (isSingle(found)) warnOfView(toReason(error))
    }
    try {
      await transact(pool, async tx => {
        const range = await claim(tx, found)
        if (range) await split(tx, range)
      })
    } catch (error) {
      if (isUnreachable(error)) throw error
      warnOfView(toReason(error))
    }
    return 0
  }

  return { run }
}

/** Matches in the background. `onDeliveries` is called when some were enqueued. */
export function startViewMatcher(pool: Pool, onDeliveries: () => void) {
  const matcher = createViewMatcher(pool)
  const wakeUp = createWakeUpSignal()
  let isStopped = false

  async function loop(): Promise<void> {
    while (!isStopped) {
      try {
        const { ranges, deliveries } = await matcher.run()
        if (deliveries > 0) onDeliveries()
        if (ranges > 0) continue
      } catch (error) {
        log.warning('Views are matched again in a second: {reason}', { reason: toReason(error) })
      }
      wakeUp.sendIn(POLL_MS)
      await wakeUp.sleep()
    }
  }

  const running = loop()
  return {
    wake: wakeUp.send,
    async stop(): Promise<void> {
      isStopped = true
      wakeUp.send()
      await running
    },
  }
}

/** Returns a range of each organization. Those that have failed come last. */
function findRanges(sql: Queryable, resting: readonly string[]): Promise<ViewRange[]> {
  return sql<ViewRange[]>`
    select distinct on (p.organization_id)
      p.organization_id as "organizationId", r.project_id as "projectId", r.id, r.kind, r.view_id as "viewId", r.from_seq as "fromSeq", r.to_seq as "toSeq",
      r.failures
    from bell_ranges r
      join projects p on p.id = r.project_id
    where r.id <> all(${toArray(resting)}::uuid[])
    order by p.organization_id, r.failures, random()
  `
}

/**
 * Claims a range until the end of the transaction, together with those that follow it. Undefined if
 * another process works for its organization, or has handled the range.
 *
 * No row is locked while events are matched, because the deletion of a view would wait for it.
 */
async function claim(tx: Tx, range: ViewRange): Promise<ClaimedRange | undefined> {
  const { organizationId, projectId, id, kind, viewId, fromSeq } = range
  const [lock] = await tx<[{ isMine: boolean }]>`
    select pg_try_advisory_xact_lock(${toLock(tx, 'bells', organizationId)}) as "isMine"
  `
  if (!lock.isMine) return undefined
  const [first, ...others] = await tx<Pick<ViewRange, 'id' | 'fromSeq' | 'toSeq'>[]>`
    select r.id, r.from_seq as "fromSeq", r.to_seq as "toSeq"
    from bell_ranges r
    where r.project_id = ${projectId} and (
      r.id = ${id}
      or ${viewId === null} and r.view_id is null and r.kind = ${kind} and r.from_seq > ${fromSeq}
    )
    order by r.from_seq
    limit ${MAX_EVENTS}
  `
  if (first?.id !== id) return undefined
  const ids = [id]
  let { toSeq } = first
  for (const next of others) {
    if (next.fromSeq !== toSeq || BigInt(next.toSeq) - BigInt(fromSeq) > MAX_EVENTS) break
    ids.push(next.id)
    toSeq = next.toSeq
  }
  return { ...range, ids, toSeq }
}

/** Returns the views of a range that have the bell of a member, or an enabled webhook. */
function findViews(
  sql: Queryable,
  { projectId, kind, viewId }: ViewRange,
): Promise<{ viewId: string; q: string }[]> {
  const user =
    kind === 'webhook'
      ? sql`
          webhooks w
          where w.project_id = v.project_id and w.view_id = v.id and w.deleted_at is null and w.disabled_at is null
        `
      : sql`
          view_bells b
            join memberships m on m.account_id = b.account_id and m.organization_id = p.organization_id
          where b.project_id = v.project_id and b.view_id = v.id
            and (v.account_id is null or v.account_id = b.account_id)
        `
  return sql<{ viewId: string; q: string }[]>`
    select v.id as "viewId", v.search as q
    from views v
      join projects p on p.id = v.project_id
    where v.project_id = ${projectId} and v.id = coalesce(${viewId}, v.id)
      and exists (select from ${user})
  `
}

/**
 * Matches the events of a range with its views in one statement. The limit also holds for the later
 * statements of the transaction.
 */
async function findMatches(tx: Tx, range: ClaimedRange): Promise<Matches[]> {
  const { projectId, fromSeq, toSeq, failures } = range
  if (failures < MAX_DOUBLINGS) {
    const limitMs = MATCH_MS * 2 ** failures
    await tx`select set_config('statement_timeout', ${String(limitMs)}, true)`
  }
  const conditions: Fragment[] = []
  for (const { viewId, q } of await findViews(tx, range)) {
    const filters = parseSaved(q)
    const resolved = filters && (await resolveFilters(tx, projectId, filters, { namesMs: 0 }))
    if (resolved) conditions.push(tx`(${viewId}::uuid, (${toConditions(tx, resolved)}))`)
  }
  const [first, ...others] = conditions
  if (!first) return []
  const rows = others.reduce((all, one) => tx`${all}, ${one}`, first)
  return tx<Matches[]>`
    select m.view_id as "viewId", json_agg(e.id) as "eventIds"
    from events e
      cross join lateral (values ${rows}) as m (view_id, matches)
    where e.project_id = ${projectId} and e.seq > ${fromSeq} and e.seq <= ${toSeq} and m.matches
    group by m.view_id
  `
}

/**
 * Enqueues deliveries of a range: for webhooks, or as pushes for accounts that had muted the
 * channel. Others are notified anyway. Returns the number of deliveries.
 */
async function enqueue(tx: Tx, range: ClaimedRange, matches: Matches[]): Promise<number> {
  const { projectId, kind, fromSeq, toSeq } = range
  let count = 0
  for (const { viewId, eventIds } of matches) {
    if (kind === 'webhook') {
      count += await enqueueFound(tx, projectId, { viewId, eventIds })
      continue
    }
    const [row] = await tx<[{ n: number }]>`
      select dispatch_view_pushes(
        project => ${projectId},
        view => ${viewId},
        from_seq => ${fromSeq},
        to_seq => ${toSeq},
        event_ids => ${toArray(eventIds)}::uuid[],
        sentences => ${WITHHELD_SENTENCES}::text::jsonb
      ) as n
    `
    count += row.n
  }
  await removeRange(tx, range)
  return count
}

async function removeRange(tx: Tx, { projectId, ids }: ClaimedRange): Promise<void> {
  await tx`
    delete from bell_ranges where project_id = ${projectId} and id = any(${toArray(ids)}::uuid[])
  `
}

/** Returns true if a range has a single event for a single view, so that it cannot be split. */
function isSingle({ viewId, fromSeq, toSeq }: ViewRange): boolean {
  return viewId !== null && BigInt(toSeq) - BigInt(fromSeq) <= 1n
}

/** Gives each view a range of its own, or halves it. Counts the failures of a single event. */
async function split(tx: Tx, range: ClaimedRange): Promise<void> {
  const { projectId, id, kind, viewId, fromSeq, toSeq } = range
  if (isSingle(range)) {
    await tx`
      update bell_ranges set failures = failures + 1 where project_id = ${projectId} and id = ${id}
    `
    return
  }
  const viewIds = viewId === null ? (await findViews(tx, range)).map(one => one.viewId) : [viewId]
  const middle = viewId === null ? toSeq : String((BigInt(fromSeq) + BigInt(toSeq)) / 2n)
  // Like the deletion of a view, it locks the view before the ranges.
  await tx`
    insert into bell_ranges (project_id, kind, view_id, from_seq, to_seq)
    select ${projectId}, ${kind}, v.id, s.from_seq, s.to_seq
    from unnest(${toArray(viewIds)}::uuid[]) as v (id)
      cross join (
        values (${fromSeq}::bigint, ${middle}::bigint), (${middle}::bigint, ${toSeq}::bigint)
      ) as s (from_seq, to_seq)
    where s.from_seq < s.to_seq
  `
  await removeRange(tx, range)
}
