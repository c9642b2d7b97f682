import { toArray } from '../../database/arrays.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import type { Queryable } from '../../database/sql.ts'
import { toEventJson } from '../../log/events/event-json.ts'
import { findAcknowledged, type AcknowledgedEvent } from './acknowledged.ts'
import type { ProjectContext } from './message.ts'
import type { Preset } from './presets.ts'
import { openOwnRequest, type OwnRequest } from './own-request.ts'
import { toSealedCell } from './sealing.ts'
import { parsePreviousSecrets } from './signing.ts'

/** The uuids of a webhook. */
export interface WebhookTargetId {
  projectId: string
  targetId: string
}

/** A webhook with sealed secrets. */
interface SealedWebhookTarget {
  url: string
  preset: Preset
  secret: string
  previousSecret: string | null
  previousUntilMs: number | null
  own: string | null
  /** A response counts only if the webhook still has this generation. */
  generation: number
  disabledAtMs: number | null
  /** The number of consecutive pauses. */
  pauses: number
  /** True if the last attempt failed, or if the webhook gets one attempt at a time. */
  hasFailures: boolean
  project: string
  organizationId: string
  organization: string
  /**
   * The current time, by the clock of the database. `checkedNowMs` leaves out a jump forward until
   * deadlines are extended.
   */
  nowMs: number
  checkedNowMs: number
}

/** The fields that become others when the secrets of a webhook are opened. */
type Closed = 'secret' | 'previousSecret' | 'previousUntilMs' | 'own'
type Names = 'project' | 'organizationId' | 'organization'

/** A webhook as the sender needs it. */
export interface WebhookTarget extends Omit<SealedWebhookTarget, Closed | Names>, OwnRequest {
  /** The uuids of its project and its own. */
  projectId: string
  id: string
  /** The secrets that sign now. During a rotation there are several. */
  signingSecrets: string[]
  context: ProjectContext
}

/** A webhook with the event of an attempt, which is undefined if deleted. */
interface FoundWebhook extends Partial<AcknowledgedEvent> {
  row: SealedWebhookTarget
  eventJson: string | undefined
}

/**
 * Returns the webhooks of attempts with their events, in their order; undefined for deleted
 * webhooks.
 */
export async function findWebhookTargets(
  sql: Queryable,
  ids: readonly (WebhookTargetId & { eventId?: string })[],
): Promise<(FoundWebhook | undefined)[]> {
  const rows = await sql<
    { key: string; event_text: string | null; webhook: SealedWebhookTarget | null }[]
  >`
    select project_id || ' ' || id as key, event_text, webhook
    from read_webhooks(
      project_ids => ${toArray(ids.map(({ projectId }) => projectId))}::uuid[],
      webhook_ids => ${toArray(ids.map(({ targetId }) => targetId))}::uuid[],
      event_ids => ${toArray(ids.map(({ eventId }) => eventId))}::uuid[]
    )
  `
  const read = new Map(rows.map(row => [row.key, row]))
  return Promise.all(
    ids.map(async ({ projectId, targetId, eventId }) => {
      const row = read.get(`${projectId} ${targetId}`)?.webhook
      const text = read.get(`${projectId} ${eventId}`)?.event_text
      if (!row) return undefined
      if (text || eventId === undefined)
        return { row, eventJson: text ? toEventJson(text) : undefined }
      // It is the id of an acknowledgement, or the event was deleted.
      return {
        row,
        eventJson: undefined,
        ...(await findAcknowledged(sql, projectId, { id: eventId })),
      }
    }),
  )
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
  const {
    secret,
    previousSecret,
    previousUntilMs,
    own,
    project,
    organizationId,
    organization,
    ...rest
  } = row
  const signingSecrets = [secrets.open(secret, toSealedCell('secret', targetId))]
  if (previousSecret !== null) {
    const text = secrets.open(previousSecret, toSealedCell('previous_secret', targetId))
    const times = { lastUntilMs: previousUntilMs ?? Infinity, nowMs: row.nowMs }
    signingSecrets.push(...parsePreviousSecrets(text, times).map(one => one.secret))
  }
  return {
    ...rest,
    projectId,
    id: targetId,
    url: secrets.open(row.url, toSealedCell('url', targetId)),
    ...openOwnRequest(secrets, targetId, own),
    signingSecrets,
    context: {
      project: { id: projectId, name: project },
      organization: { id: organizationId, name: organization },
    },
  }
}
