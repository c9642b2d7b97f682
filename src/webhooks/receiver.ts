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

interface Row {
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
 * The webhook of a delivery, undefined when there is none any more. `mayProbe` takes the place of the probe where a pause
 * is over: only one can have it at a time.
 */
export async function findReceiver(
  sql: Queryable,
  { projectId, targetId, mayProbe }: { projectId: string; targetId: string; mayProbe: boolean },
  secrets: Secrets,
): Promise<Receiver | undefined> {
  const [row] = await sql<Row[]>`
    with probe as (
      update webhooks set paused_until = now() + make_interval(secs => ${PROBE_S})
      where project_id = ${projectId} and id = ${targetId}
        and failures >= ${FAILURES_TO_PAUSE} and paused_until <= now() and disabled_at is null
        and ${mayProbe}
      returning id
    )
    select
      w.url, w.preset, w.secret,
      case when w.previous_until > now() then w.previous_secret end as previous_secret,
      w.disabled_at, w.paused_until, exists (select from probe) as is_probe,
      p.name as project, o.id as organization_id, o.name as organization, clock_timestamp() as now
    from webhooks w
      join projects p on p.id = w.project_id and p.deleted_at is null
      join organizations o on o.id = p.organization_id and o.deleted_at is null
    where w.project_id = ${projectId} and w.id = ${targetId} and w.deleted_at is null
  `
  if (!row) return undefined
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
