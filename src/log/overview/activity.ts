import { toId } from '../../base/ids.ts'
import { toArray } from '../../database/arrays.ts'
import type { Queryable } from '../../database/sql.ts'
import { HOUR_MS } from '../events/time-buckets.ts'
import type { Unusual } from './schema.ts'
import { findDeviation, type Activity, type Deviation } from './unusual.ts'

const WEEK_MS = 7 * 24 * HOUR_MS
const PAST_WEEKS = 4
/** Rows of channels and weeks that are compared, of all projects of one organization. */
const MAX_ROWS = 10_000
const MAX_UNUSUAL_CHANNELS = 3

/** The activity of a project. */
export interface ProjectActivity {
  hours: number[]
  unusual: Unusual[]
}

/**
 * Returns the activity of projects of one organization, by their uuid. It reads the exact counts of
 * the last 24 hours, and of the same hours in four past weeks.
 */
export async function readActivity(
  sql: Queryable,
  projectIds: readonly string[],
  nowMs: number,
): Promise<Map<string, ProjectActivity>> {
  const hourMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS
  const hours = await readHours(sql, projectIds, hourMs)
  const weeks = await readWeeks(sql, projectIds, hourMs)
  return new Map(
    projectIds.map(id => {
      const of = weeks.filter(row => row.projectId === id)
      const whole = of.find(row => row.channel === null)
      const found = whole ? judge(whole, { nowMs, hourMs }) : []
      const unusual =
        found.length > 0
          ? found
          : of.filter(row => row.channel !== null).flatMap(row => judge(row, { nowMs, hourMs }))
      return [
        id,
        {
          hours: hours.get(id) ?? [],
          unusual: unusual.toSorted(byCount).slice(0, MAX_UNUSUAL_CHANNELS),
        },
      ]
    }),
  )
}

/** Counts the events of the last 24 hours by hour, for each project. */
async function readHours(
  sql: Queryable,
  projectIds: readonly string[],
  hourMs: number,
): Promise<Map<string, number[]>> {
  const firstMs = hourMs - 23 * HOUR_MS
  const rows = await sql<{ id: string; hour: Date; n: number }[]>`
    select p.id, e.hour, sum(e.n)::float8 as n
    from unnest(${toArray(projectIds)}::uuid[]) as p (id)
      cross join lateral counts_of_hours(p.id, ${new Date(firstMs)}, ${new Date(hourMs)}) e
    group by p.id, e.hour
  `
  const counts = new Map(projectIds.map(id => [id, new Array<number>(24).fill(0)]))
  for (const { id, hour, n } of rows) {
    const hours = counts.get(id)
    if (hours) hours[(hour.getTime() - firstMs) / HOUR_MS] = n
  }
  return counts
}

/** The activity of a project, or of one of its channels, in this week and the past ones. */
interface Weeks {
  projectId: string
  /** Null for the whole project. */
  channel: { id: string; name: string; icon: string | null } | null
  createdAt: Date
  /** Events that were accepted before this time may be gone. Null: all are kept. */
  keptSince: Date | null
  /** By the number of weeks ago. */
  activity: Activity[]
}

async function readWeeks(
  sql: Queryable,
  projectIds: readonly string[],
  hourMs: number,
): Promise<Weeks[]> {
  const starts = Array.from({ length: PAST_WEEKS + 1 }, (_, week) =>
    new Date(hourMs - week * WEEK_MS).toISOString(),
  )
  const rows = await sql<
    {
      project_id: string
      channel_id: string | null
      name: string | null
      icon: string | null
      created_at: Date
      kept_since: Date | null
      weeks: string
    }[]
  >`
    with counted as materialized (
      select
        p.id as project_id, e.channel_id, w.ord - 1 as week,
        coalesce(sum(e.n) filter (where e.hour = w.hour), 0) as running,
        coalesce(sum(e.n) filter (where e.hour = w.hour - interval '1 hour'), 0) as hour,
        coalesce(sum(e.n) filter (where e.hour < w.hour), 0) as day
      from unnest(${toArray(projectIds)}::uuid[]) as p (id)
        cross join unnest(${toArray(starts)}::timestamptz[]) with ordinality as w (hour, ord)
        cross join lateral counts_of_hours(p.id, w.hour - interval '24 hours', w.hour) e
      group by 1, 2, 3
    ), summed as (
      select
        c.project_id, c.channel_id,
        json_agg(json_build_array(c.week, c.running, c.hour, c.day))::text as weeks,
        sum(c.day + c.running) as n
      from (
        select project_id, channel_id, week, running, hour, day from counted
        union all
        select project_id, null, week, sum(running), sum(hour), sum(day)
        from counted
        group by project_id, week
      ) c
      group by c.project_id, c.channel_id
      -- Projects first, and then the channels with the most events.
      order by c.channel_id is not null, n desc
      limit ${MAX_ROWS}
    ), known as materialized (
      select
        c.project_id, c.id, c.name, c.icon, c.is_archived, c.created_at,
        coalesce(c.keep_days, p.keep_days) as keep_days
      from channels_of_all(${toArray(projectIds)}::uuid[]) c
        join projects p on p.id = c.project_id
    ), kept as materialized (
      select p.id as project_id, archived_before(p.id) as archived_before, min(c.keep_days) as keep_days
      from unnest(${toArray(projectIds)}::uuid[]) as p (id)
        left join known c on c.project_id = p.id
      group by p.id
    )
    select
      s.project_id, s.channel_id, c.name, c.icon, coalesce(c.created_at, p.created_at) as created_at, s.weeks,
      greatest(
        k.archived_before,
        now() - make_interval(days => case when s.channel_id is null then k.keep_days else c.keep_days end)
      ) as kept_since
    from summed s
      join projects p on p.id = s.project_id
      join kept k on k.project_id = s.project_id
      left join known c on c.project_id = s.project_id and c.id = s.channel_id
    -- An archived channel is out of use.
    where c.is_archived is not true
  `
  return rows.map(row => {
    const activity: Activity[] = starts.map(() => ({ running: 0, hour: 0, day: 0 }))
    // json_agg of four counts each.
    for (const [week, running, hour, day] of JSON.parse(row.weeks) as Four[])
      activity[week] = { running, hour, day }
    return {
      projectId: row.project_id,
      channel: row.channel_id === null ? null : toChannel(row.channel_id, row),
      createdAt: row.created_at,
      keptSince: row.kept_since,
      activity,
    }
  })
}

type Four = [number, number, number, number]

function toChannel(uuid: string, { name, icon }: { name: string | null; icon: string | null }) {
  return { id: toId('chn', uuid), name: name ?? '', icon }
}

interface Clock {
  nowMs: number
  /** The start of the present hour. */
  hourMs: number
}

function judge({ channel, createdAt, keptSince, activity }: Weeks, clock: Clock): Unusual[] {
  const [now, ...all] = activity
  // The spans of a week begin a day before its hour.
  const keptMs = clock.hourMs - 24 * HOUR_MS - (keptSince?.getTime() ?? -Infinity)
  const past = all.slice(0, Math.max(0, Math.floor(keptMs / WEEK_MS)))
  const knownWeeks = (clock.nowMs - createdAt.getTime()) / WEEK_MS
  const found = now && findDeviation(now, past, knownWeeks)
  if (!found) return []
  const { kind, count, usual } = found
  return [{ channel, kind, ...toSpan(found, clock), count, usual }]
}

function toSpan({ span }: Deviation, { nowMs, hourMs }: Clock): { from: string; to: string } {
  const hours = { running: 0, hour: 1, day: 24 }[span]
  return {
    from: new Date(hourMs - hours * HOUR_MS).toISOString(),
    to: new Date(span === 'running' ? nowMs : hourMs).toISOString(),
  }
}

/** The largest deviations first, by the number of events. */
function byCount(a: Unusual, b: Unusual): number {
  const toSize = ({ kind, count, usual }: Unusual) =>
    kind === 'loud' ? count - usual.most : usual.least - count
  return toSize(b) - toSize(a)
}
