import { toArray } from '../../database/arrays.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import type { Queryable } from '../../database/sql.ts'
import { toEventJson } from '../../log/events/event-json.ts'
import { FAILURES_TO_PAUSE } from './circuit-breaker.ts'
import type { ProjectContext } from './message.ts'
import type { Preset } from './presets.ts'
import { toSealedCell } from './sealing.ts'
import { parsePreviousSecrets } from './signing.ts'

/** A webhook as the sender needs it. Ids are uuids. */
export interface WebhookTarget {
  projectId: string
  id: string
  url: string
  preset: Preset
  /** A response counts only if the webhook still has this generation. */
  generation: number
  /** The secrets that sign now. During a rotation there are several. */
  signingSecrets: string[]
  context: ProjectContext
  disabledAtMs: number | null
  pausedUntilMs: number | null
  /** True if the last attempt failed. */
  hasFailures: boolean
  /** True for the one attempt that is made after a pause. */
  isProbe: boolean
  /**
   * Undefined unless the endpoint has asked to wait until `pausedUntilMs`, which may be over.
   * `hasEarlier`: another delivery goes first.
   */
  limit: { hasEarlier: boolean } | undefined
  /**
   * The current time, by the clock of the database. `checkedNowMs` leaves out a jump forward until
   * deadlines are extended.
   */
  nowMs: number
  checkedNowMs: number
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
  previousSecret: string | null
  previousUntilMs: number | null
  generation: number
  disabledAtMs: number | null
  pausedUntilMs: number | null
  hasFailures: boolean
  isProbe: boolean
  limit: WebhookTarget['limit']
  project: string
  organizationId: string
  organization: string
  nowMs: number
  checkedNowMs: number
}

/** How long other deliveries wait for the outcome of a probe. */
const PROBE_S = 30

/** A webhook with the event of an attempt, which is undefined if deleted. */
interface FoundWebhook {
  row: SealedWebhookTarget
  eventJson: string | undefined
}

/**
 * Returns the webhooks of attempts with their events, in their order; undefined for deleted
 * webhooks. With `mayProbe`, one delivery of a webhook whose pause is over becomes its probe.
 */
export async function findWebhookTargets(
  sql: Queryable,
  ids: readonly (WebhookTargetId & { eventId?: string })[],
  { mayProbe }: { mayProbe: boolean },
): Promise<(FoundWebhook | undefined)[]> {
  const rows = await sql<ReadRow[]>`
    select project_id || ' ' || id as key, event_text, webhook
    from read_webhook_deliveries(
      project_ids => ${toArray(ids.map(({ projectId }) => projectId))}::uuid[],
      webhook_ids => ${toArray(ids.map(({ targetId }) => targetId))}::uuid[],
      event_ids => ${toArray(ids.map(({ eventId }) => eventId))}::uuid[],
      may_probe => ${mayProbe},
      failures_to_pause => ${FAILURES_TO_PAUSE},
      probe_s => ${PROBE_S}
    )
  `
  const read = new Map(rows.map(row => [row.key, row]))
  const limits = await findLimits(
    sql,
    ids.filter(one => {
      const webhook = read.get(`${one.projectId} ${one.targetId}`)?.webhook
      return webhook?.pausedUntilMs !== null && webhook?.hasProbe === false
    }),
  )
  return ids.map(({ projectId, targetId, eventId }) => {
    const webhook = read.get(`${projectId} ${targetId}`)?.webhook
    if (!webhook) return undefined
    const text = read.get(`${projectId} ${eventId}`)?.event_text ?? undefined
    const limit = limits.get([targetId, eventId].filter(Boolean).join(' '))
    const { hasProbe, ...rest } = webhook
    // The first attempt that has something to send is the probe.
    const isProbe = hasProbe && text !== undefined
    if (isProbe) webhook.hasProbe = false
    const eventJson = text === undefined ? undefined : toEventJson(text)
    return { row: { ...rest, isProbe, limit }, eventJson }
  })
}

/** A row of `read_webhook_deliveries`: a webhook, or the text of an event. */
interface ReadRow {
  key: string
  event_text: string | null
  webhook: (Omit<SealedWebhookTarget, 'isProbe' | 'limit'> & { hasProbe: boolean }) | null
}

/** Deliveries of a place are this much later than their request at most. */
const MAX_PLACE = '2 ms'

/**
 * Returns the limits of those webhooks that wait, or have just waited, as their receiver asked. The
 * attempts of such a webhook are made in the order of their requests, in whatever process.
 */
async function findLimits(
  sql: Queryable,
  ids: readonly (WebhookTargetId & { eventId?: string })[],
): Promise<ReadonlyMap<string, NonNullable<WebhookTarget['limit']>>> {
  if (ids.length === 0) return new Map()
  const rows = await sql<{ key: string; hasEarlier: boolean }[]>`
    select
      concat_ws(' ', t.id, t.event_id) as key,
      exists (
        select
        from outbox p
        where p.kind = 'webhook' and p.target_id = t.id
          and p.available_at <= least(now(), o.requested_at + ${MAX_PLACE}::interval)
          and (p.requested_at, p.event_id) < (o.requested_at, o.event_id)
      ) or exists (
        select
        from outbox p
        where p.kind = 'webhook' and p.target_id = t.id
          -- A delivery in flight is due when its lease ends.
          and p.available_at between now() and now() + interval '1 minute' and p.token is not null
          and (p.requested_at, p.event_id) < (o.requested_at, o.event_id)
      ) as "hasEarlier"
    from unnest(
        ${toArray(ids.map(({ projectId }) => projectId))}::uuid[],
        ${toArray(ids.map(({ targetId }) => targetId))}::uuid[],
        ${toArray(ids.map(({ eventId }) => eventId))}::uuid[]
      ) as t (project_id, id, event_id)
      join webhooks w on w.project_id = t.project_id and w.id = t.id
      left join outbox o on o.project_id = t.project_id and o.event_id = t.event_id
        and o.kind = 'webhook' and o.target_id = t.id
    where w.failures < ${FAILURES_TO_PAUSE}
  `
  return new Map(rows.map(({ key, hasEarlier }) => [key, { hasEarlier }]))
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
  if (row.previousSecret !== null) {
    const text = secrets.open(row.previousSecret, toSealedCell('previous_secret', targetId))
    const times = { lastUntilMs: row.previousUntilMs ?? Infinity, nowMs: row.nowMs }
    signingSecrets.push(...parsePreviousSecrets(text, times).map(({ secret }) => secret))
  }
  return {
    projectId,
    id: targetId,
    url: secrets.open(row.url, toSealedCell('url', targetId)),
    preset: row.preset,
    generation: row.generation,
    signingSecrets,
    context: {
      project: { id: projectId, name: row.project },
      organization: { id: row.organizationId, name: row.organization },
    },
    disabledAtMs: row.disabledAtMs,
    pausedUntilMs: row.pausedUntilMs,
    hasFailures: row.hasFailures,
    isProbe: row.isProbe,
    limit: row.limit,
    nowMs: row.nowMs,
    checkedNowMs: row.checkedNowMs,
  }
}
