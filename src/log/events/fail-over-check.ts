import { Fault } from '../../base/errors.ts'
import { setNewest } from '../../base/functions.ts'
import { logger } from '../../base/log.ts'
import { startLoop } from '../../base/loop.ts'
import { registerGauge } from '../../base/metrics.ts'
import { toArray } from '../../database/arrays.ts'
import type { Pool } from '../../database/pool.ts'
import type { Primary } from '../../database/primary.ts'
import { isUnavailable, sqlState, type Sql } from '../../database/sql.ts'

const log = logger('db')
const EVERY_MS = 1_000
/** How many checks leave the decision to servers that ran before the fail-over. */
const UNVERIFIED_CHECKS = 10
/** The primary is searched after this time, and when a check takes longer than the next one. */
const SEARCH_EVERY_MS = 5_000
const LATE_MS = 2_000
const MAX_PROJECTS = 1_000
const MAX_RECENT = 10_000

/** An event that this process has acknowledged or published; ids are uuids. */
export interface KnownEvent {
  projectId: string
  seq: number
  id: string
}

export interface FailOverCheck {
  /**
   * Remembers an event. The last one of each batch is enough: a fail-over that loses a commit also
   * loses all later ones.
   */
  remember(event: KnownEvent): void
  stop(): Promise<void>
}

export interface FailOverCheckOptions {
  pool: Pool
  /** The hosts of the database, if there are several. */
  primary: Primary | undefined
  /** Replaces the connections of all pools at once. */
  leave(): void
  everyMs?: number | undefined
}

interface State {
  epoch: string
  /** The timeline on which the epoch is valid. Null on the first start. */
  stored: number | null
  /** Null on a standby, and for a Postgres that does not tell it. */
  timeline: number | null
  isStandby: boolean
  startedAt: string
  /** True if commits wait for a standby. */
  isSynchronous: boolean
  /** The processes of servers that check this database, with this one. */
  servers: number
}

/**
 * Checks every second whether a standby was promoted. If it lacks an event that this process has
 * acknowledged or published, a new epoch begins, and the feed tells its clients. If no server ran
 * through the fail-over, or one did not outlive it, nobody knows, and a new epoch begins as well.
 */
export function startFailOverCheck(options: FailOverCheckOptions): FailOverCheck {
  const { pool, primary, leave, everyMs = EVERY_MS } = options
  /** The last known event of each project, before the last check. */
  const confirmed = new Map<string, KnownEvent>()
  let recent: KnownEvent[] = []
  let known: State | undefined
  let unverified = 0
  let searchedMs = performance.now()
  let hasTimelines = true

  async function check(): Promise<void> {
    if (performance.now() - searchedMs > SEARCH_EVERY_MS) await search()
    const seen = recent
    recent = []
    let state: State
    try {
      state = await pool.run(sql => readState(sql, hasTimelines))
      if (state.isStandby) {
        log.warning('The database is a standby. Reconnecting.')
        primary?.forget()
        leave()
        throw new Fault('unavailable', 'The database is a standby')
      }
      const before = known
      if (before && !isSame(before, state)) {
        const isDecided = await verify(before, state, [...confirmed.values(), ...seen])
        if (!isDecided) throw new Fault('unavailable', 'Waiting for the other servers')
      } else if (!before || unverified > 0) await start(state)
      known = state
    } catch (error) {
      recent = [...seen, ...recent].slice(-MAX_RECENT)
      throw error
    }
    for (const event of seen) setNewest(confirmed, event.projectId, event, MAX_PROJECTS)
  }

  /** A former primary can run on, cut off from the others. The new one has a later timeline. */
  async function search(): Promise<void> {
    searchedMs = performance.now()
    await primary?.find()
  }

  /**
   * After a promotion or a restart, checks that the events of this process are still there. Each
   * server checks its own events. Returns false while another server may still come to do so.
   */
  async function verify(
    before: State,
    state: State,
    events: readonly KnownEvent[],
  ): Promise<boolean> {
    let isLost = await pool.run(sql => findLost(sql, events))
    if (!isLost && isUnknown(before, state)) {
      if (++unverified < UNVERIFIED_CHECKS) return false
      isLost = true
    }
    unverified = 0
    log.info('The database started at {startedAt}. Its timeline is {timeline}.', { ...state })
    await settle(state, isLost)
    confirmed.clear()
    return true
  }

  /** At the start of this process, which knows nothing of the time before. */
  async function start(state: State): Promise<void> {
    const { stored, timeline } = state
    const isLater = stored !== null && timeline !== null && timeline > stored
    if (!isLater) {
      unverified = 0
      return settle(state, false)
    }
    // Another server may have run through the fail-over, and will decide.
    if (++unverified < UNVERIFIED_CHECKS) return
    unverified = 0
    await settle(state, true)
  }

  /** Stores the timeline, with a new epoch if events may be lost. */
  async function settle({ epoch, stored, timeline }: State, isLost: boolean): Promise<void> {
    if (isLost) {
      log.error(
        'A fail-over or a restart of the database may have lost events that were accepted. A new epoch begins.',
      )
    } else if (timeline === null || timeline === stored) return
    await pool.run(sql =>
      sql.begin(async tx => {
        await tx`set local synchronous_commit = on`
        if (isLost)
          await tx`update installation set epoch = gen_random_uuid() where epoch = ${epoch}`
        if (timeline === null) return
        await tx`
          insert into epoch_timeline (timeline) values (${timeline})
          on conflict (singleton) do update set timeline = excluded.timeline
        `
      }),
    )
  }

  async function run(): Promise<void> {
    // A frozen host does not reply. Its connections stay open.
    const late = setTimeout(() => void search().catch(() => {}), LATE_MS)
    await check().finally(() => clearTimeout(late))
  }

  function onFailure(reason: string, error: unknown): void {
    // Aurora and other forks of Postgres have no WAL files.
    if (hasTimelines && /^(0A|42)/.test(sqlState(error) ?? '')) {
      hasTimelines = false
      log.info('This database does not tell its timeline. Only its restarts are noticed.')
    } else if (error instanceof Fault || isUnavailable(error)) {
      log.debug('The check for a fail-over failed: {reason}', { reason })
    } else log.error('The check for a fail-over failed: {reason}', { reason })
  }

  const endFollowing = primary?.onMove(leave)
  const checks = startLoop({ everyMs, runsAtOnce: true, round: run, onFailure })
  registerGauge('tidings_database_timeline', 'The timeline of the database.', {
    read: () => known?.timeline ?? undefined,
  })
  return {
    remember(event) {
      recent.push(event)
      if (recent.length > 2 * MAX_RECENT) recent = recent.slice(-MAX_RECENT)
    },
    stop() {
      endFollowing?.()
      return checks.stop()
    },
  }
}

function isSame(one: State, other: State): boolean {
  return one.timeline === other.timeline && one.startedAt === other.startedAt
}

/**
 * Returns whether a promotion may have lost events that only a missing server knows. Commits that
 * waited for the standby are not lost, and a stored timeline was settled by another server.
 */
function isUnknown(before: State, { timeline, stored, servers }: State): boolean {
  const isPromoted = before.timeline !== null && timeline !== null && timeline > before.timeline
  const isSettled = stored === timeline
  return isPromoted && !isSettled && !before.isSynchronous && servers < before.servers
}

async function readState(sql: Sql, hasTimelines: boolean): Promise<State> {
  const [row] = await sql<[State]>`
    select
      i.epoch, t.timeline as stored, pg_is_in_recovery() as "isStandby",
      ${
        hasTimelines
          ? // The first eight digits of the name of a WAL file are its timeline.
            sql`case when not pg_is_in_recovery()
              then ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int
            end`
          : sql`null::int`
      } as timeline,
      pg_postmaster_start_time()::text as "startedAt",
      current_setting('synchronous_standby_names') <> '' as "isSynchronous",
      (
        select count(*)::int
        from pg_stat_activity a
        where a.application_name = 'tidings check' and a.datname = current_database()
      ) as servers
    from installation i
      left join epoch_timeline t on true
  `
  return row
}

/** Returns whether one of these events is gone, or another one has its seq. */
async function findLost(sql: Sql, events: readonly KnownEvent[]): Promise<boolean> {
  const [row] = await sql<[{ is_lost: boolean }]>`
    select exists (
      select
      from unnest(
          ${toArray(events.map(({ projectId }) => projectId))}::uuid[],
          ${toArray(events.map(({ seq }) => seq))}::bigint[],
          ${toArray(events.map(({ id }) => id))}::uuid[]
        ) as k (project_id, seq, id)
        join event_logs l on l.project_id = k.project_id
        left join events e on e.project_id = k.project_id and e.seq = k.seq
      where l.last_seq < k.seq or e.id <> k.id
    ) as is_lost
  `
  return row.is_lost
}
