import { findAuditEntries, type AuditEntry } from '../audit/entries.ts'
import { toArray } from '../db/arrays.ts'
import type { Queryable } from '../db/sql.ts'
import { toEventJson } from '../events/event-json.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { FAILURES_TO_PAUSE } from './circuit-breaker.ts'
import type { ProjectContext } from './message.ts'
import type { Preset } from './presets.ts'
import type { WebhookType } from './schema.ts'
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
  /** True if the last attempt failed. */
  hasFailures: boolean
  /** True for the one attempt that is made after a pause. */
  isProbe: boolean
  /** True if the endpoint has asked to wait until `pausedUntilMs`. */
  isLimited: boolean
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
  type: WebhookType
  url: string
  preset: Preset
  secret: string
  previousSecret: string | null
  disabledAtMs: number | null
  pausedUntilMs: number | null
  hasFailures: boolean
  isProbe: boolean
  isLimited: boolean
  project: string
  organizationId: string
  organization: string
  nowMs: number
}

/** How long other deliveries wait for the outcome of a probe. */
const PROBE_S = 30

/** A webhook with the event, or the audit entry, of an attempt. Both are undefined if deleted. */
interface FoundWebhook {
  row: SealedWebhookTarget
  eventJson: string | undefined
  entry: AuditEntry | undefined
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
      ${toArray(ids.map(({ projectId }) => projectId))}::uuid[],
      ${toArray(ids.map(({ targetId }) => targetId))}::uuid[],
      ${toArray(ids.map(({ eventId }) => eventId))}::uuid[],
      ${mayProbe}, ${FAILURES_TO_PAUSE}, ${PROBE_S}
    )
  `
  const read = new Map(rows.map(row => [row.key, row]))
  const limited = await findLimited(
    sql,
    ids.filter(one => {
      const webhook = read.get(`${one.projectId} ${one.targetId}`)?.webhook
      return webhook?.pausedUntilMs !== null && webhook?.hasProbe === false
    }),
  )
  const found = ids.map(({ projectId, targetId, eventId }) => {
    const webhook = read.get(`${projectId} ${targetId}`)?.webhook
    if (!webhook) return undefined
    const { hasProbe, ...rest } = webhook
    // The first attempt is the probe.
    webhook.hasProbe = false
    const text = read.get(`${projectId} ${eventId}`)?.event_text ?? undefined
    const isLimited = limited.has(targetId)
    return { row: { ...rest, isProbe: hasProbe, isLimited }, text }
  })
  const entries = await findEntries(
    sql,
    found.map(one => one?.row),
    ids,
  )
  return found.map(
    (one, nth) =>
      one && {
        row: one.row,
        eventJson: one.text === undefined ? undefined : toEventJson(one.text),
        entry: entries.get(ids[nth]?.eventId ?? ''),
      },
  )
}

/** A row of `read_webhook_deliveries`: a webhook, or the text of an event. */
interface ReadRow {
  key: string
  event_text: string | null
  webhook: (Omit<SealedWebhookTarget, 'isProbe' | 'isLimited'> & { hasProbe: boolean }) | null
}

/** Returns those of some paused webhooks that are paused because their endpoint asked to wait. */
async function findLimited(
  sql: Queryable,
  paused: readonly WebhookTargetId[],
): Promise<ReadonlySet<string>> {
  if (paused.length === 0) return new Set()
  const rows = await sql<{ id: string }[]>`
    select w.id
    from unnest(
        ${toArray(paused.map(({ projectId }) => projectId))}::uuid[],
        ${toArray(paused.map(({ targetId }) => targetId))}::uuid[]
      ) as t (project_id, id)
      join webhooks w on w.project_id = t.project_id and w.id = t.id
    where w.failures < ${FAILURES_TO_PAUSE}
  `
  return new Set(rows.map(({ id }) => id))
}

/** Returns the audit entries of attempts by uuid, each for a webhook of its own organization. */
async function findEntries(
  sql: Queryable,
  rows: readonly (SealedWebhookTarget | undefined)[],
  ids: readonly { eventId?: string }[],
): Promise<ReadonlyMap<string, AuditEntry>> {
  const wanted = new Map<string, string[]>()
  for (const [nth, row] of rows.entries()) {
    const id = ids[nth]?.eventId
    if (row?.type !== 'audit.entry' || id === undefined) continue
    wanted.set(row.organizationId, [...(wanted.get(row.organizationId) ?? []), id])
  }
  const entries = new Map<string, AuditEntry>()
  for (const [organizationId, entryIds] of wanted) {
    const found = await findAuditEntries(sql, organizationId, entryIds)
    for (const [id, entry] of found) entries.set(id, entry)
  }
  return entries
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
    signingSecrets.push(secrets.open(row.previousSecret, toSealedCell('previous_secret', targetId)))
  }
  return {
    projectId,
    id: targetId,
    url: secrets.open(row.url, toSealedCell('url', targetId)),
    preset: row.preset,
    signingSecrets,
    context: {
      project: { id: projectId, name: row.project },
      organization: { id: row.organizationId, name: row.organization },
    },
    disabledAtMs: row.disabledAtMs,
    pausedUntilMs: row.pausedUntilMs,
    hasFailures: row.hasFailures,
    isProbe: row.isProbe,
    isLimited: row.isLimited,
    nowMs: row.nowMs,
  }
}
