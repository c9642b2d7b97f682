import { toArray, toPlaces } from '../db/arrays.ts'
import type { Queryable } from '../db/sql.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { FAILURES_TO_PAUSE } from './breaker.ts'
import type { Origin } from './message.ts'
import type { Preset } from './presets.ts'
import { toPlace } from './webhooks.ts'

/** What an attempt needs to know of a webhook; ids are uuids. */
export interface Receiver {
  projectId: string
  id: string
  url: string
  preset: Preset
  /** All that sign at the moment. */
  signingSecrets: string[]
  origin: Origin
  disabledAtMs: number | null
  pausedUntilMs: number | null
  /** Whether this attempt is the one that a pause that is over lets through. */
  isProbe: boolean
  /** By the clock of the database. */
  nowMs: number
}

/** A webhook by its uuids. */
export interface Target {
  projectId: string
  targetId: string
}

/** The same with its secrets sealed. */
export interface ReceiverRow {
  url: string
  preset: Preset
  secret: string
  previous_secret: string | null
  disabled_at: Date | null
  paused_until: Date | null
  is_probe: boolean
  project: string
  organization_id: string
  organization: string
  now: Date
}

/** How long the others wait for a probe. */
const PROBE_S = 30

/**
 * The webhooks of deliveries, in their order; undefined for what is none any more. `mayProbe` takes the place of the probe
 * where a pause is over: only one can have it at a time.
 */
export async function findReceivers(
  sql: Queryable,
  targets: readonly Target[],
  { mayProbe }: { mayProbe: boolean },
): Promise<(ReceiverRow | undefined)[]> {
  const rows = await sql<(ReceiverRow & { ord: number })[]>`
    with wanted as materialized (
      select t.project_id, t.id, t.ord
      from unnest(
        ${toArray(targets.map(({ projectId }) => projectId))}::uuid[],
        ${toArray(targets.map(({ targetId }) => targetId))}::uuid[]
      ) with ordinality as t (project_id, id, ord)
    ), free as materialized (
      select f.project_id, f.id, f.ord
      from (select project_id, id, min(ord) as ord from wanted group by project_id, id) f
        cross join lateral (
          select w.id
          from webhooks w
          where w.project_id = f.project_id and w.id = f.id
            and w.failures >= ${FAILURES_TO_PAUSE} and w.paused_until <= now() and w.disabled_at is null
            and ${mayProbe}
          -- Nobody here waits for what somebody else does with one of the webhooks.
          for no key update skip locked
        ) w
    ), probes as (
      update webhooks w set paused_until = now() + make_interval(secs => ${PROBE_S})
      from free f
      where w.project_id = f.project_id and w.id = f.id
      returning f.ord
    )
    select
      t.ord::int as ord, r.url, r.preset, r.secret, r.previous_secret, r.disabled_at, r.paused_until,
      exists (select from probes p where p.ord = t.ord) as is_probe,
      r.project, r.organization_id, r.organization, clock_timestamp() as now
    from wanted t
      cross join lateral (
        select
          w.url, w.preset, w.secret,
          case when w.previous_until > now() then w.previous_secret end as previous_secret,
          w.disabled_at, w.paused_until,
          p.name as project, o.id as organization_id, o.name as organization
        from webhooks w
          join projects p on p.id = w.project_id and p.deleted_at is null
          join organizations o on o.id = p.organization_id and o.deleted_at is null
        where w.project_id = t.project_id and w.id = t.id and w.deleted_at is null
        -- Keeps this a look-up for each.
        offset 0
      ) r
  `
  return toPlaces(rows, targets.length)
}

/** A webhook with its secrets opened. Throws an `Unreadable` where they cannot be. */
export function toReceiver(
  row: ReceiverRow,
  { projectId, targetId }: Target,
  secrets: Secrets,
): Receiver {
  const signingSecrets = [secrets.open(row.secret, toPlace('secret', targetId))]
  if (row.previous_secret !== null) {
    signingSecrets.push(secrets.open(row.previous_secret, toPlace('previous_secret', targetId)))
  }
  return {
    projectId,
    id: targetId,
    url: secrets.open(row.url, toPlace('url', targetId)),
    preset: row.preset,
    signingSecrets,
    origin: {
      project: { id: projectId, name: row.project },
      organization: { id: row.organization_id, name: row.organization },
    },
    disabledAtMs: row.disabled_at?.getTime() ?? null,
    pausedUntilMs: row.paused_until?.getTime() ?? null,
    isProbe: row.is_probe,
    nowMs: row.now.getTime(),
  }
}
