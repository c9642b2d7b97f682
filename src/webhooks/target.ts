import { toArray, alignRows } from '../db/arrays.ts'
import type { Queryable } from '../db/sql.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { FAILURES_TO_PAUSE } from './circuit-breaker.ts'
import type { ProjectContext } from './message.ts'
import type { Preset } from './presets.ts'
import { toSealedCell } from './sealing.ts'

/** A webhook as the sender needs it. Ids are uuids. */
export interface WebhookTarget {
  projectId: string
  id: string
  url: string
  preset: Preset
  /** The secrets that sign now. During a rotation there are two. */
  signingSecrets: string[]
  context: ProjectContext
  disabledAtMs: number | null
  pausedUntilMs: number | null
  /** True for the one attempt that is made after a pause. */
  isProbe: boolean
  /** The current time, by the clock of the database. */
  nowMs: number
}

/** The uuids of a webhook. */
export interface WebhookTargetId {
  projectId: string
  targetId: string
}

/** A webhook with sealed secrets. */
export interface SealedWebhookTarget {
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

/** How long other deliveries wait for the outcome of a probe. */
const PROBE_S = 30

/**
 * Returns the webhooks of deliveries, in their order; undefined for deleted ones. With `mayProbe`,
 * one delivery of a webhook whose pause is over becomes its probe.
 */
export async function findWebhookTargets(
  sql: Queryable,
  ids: readonly WebhookTargetId[],
  { mayProbe }: { mayProbe: boolean },
): Promise<(SealedWebhookTarget | undefined)[]> {
  const rows = await sql<(SealedWebhookTarget & { ord: number })[]>`
    with wanted as materialized (
      select t.project_id, t.id, t.ord
      from unnest(
        ${toArray(ids.map(({ projectId }) => projectId))}::uuid[],
        ${toArray(ids.map(({ targetId }) => targetId))}::uuid[]
      ) with ordinality as t (project_id, id, ord)
    ), probe_candidates as materialized (
      select f.project_id, f.id, f.ord
      from (select project_id, id, min(ord) as ord from wanted group by project_id, id) f
        cross join lateral (
          select w.id
          from webhooks w
          where w.project_id = f.project_id and w.id = f.id
            and w.failures >= ${FAILURES_TO_PAUSE} and w.paused_until <= now() and w.disabled_at is null
            and ${mayProbe}
          -- A locked webhook must not delay the others.
          for no key update skip locked
        ) w
    ), probes as (
      update webhooks w set paused_until = now() + make_interval(secs => ${PROBE_S})
      from probe_candidates f
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
        -- Keeps Postgres from turning the lookups into one join.
        offset 0
      ) r
  `
  return alignRows(rows, ids.length)
}

/**
 * Opens the secrets of a webhook. Throws `UnreadableSecret` if they were sealed with another
 * APP_SECRET.
 */
export function openWebhookTarget(
  row: SealedWebhookTarget,
  { projectId, targetId }: WebhookTargetId,
  secrets: Pick<Secrets, 'open'>,
): WebhookTarget {
  const signingSecrets = [secrets.open(row.secret, toSealedCell('secret', targetId))]
  if (row.previous_secret !== null) {
    signingSecrets.push(
      secrets.open(row.previous_secret, toSealedCell('previous_secret', targetId)),
    )
  }
  return {
    projectId,
    id: targetId,
    url: secrets.open(row.url, toSealedCell('url', targetId)),
    preset: row.preset,
    signingSecrets,
    context: {
      project: { id: projectId, name: row.project },
      organization: { id: row.organization_id, name: row.organization },
    },
    disabledAtMs: row.disabled_at?.getTime() ?? null,
    pausedUntilMs: row.paused_until?.getTime() ?? null,
    isProbe: row.is_probe,
    nowMs: row.now.getTime(),
  }
}
