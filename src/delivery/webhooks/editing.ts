import { isDeepStrictEqual } from 'node:util'
import { writeAudit, type Actor } from '../../access/audit/audit.ts'
import type { AuditAction } from '../../access/audit/actions.ts'
import { toArray } from '../../database/arrays.ts'
import type { Fragment, Queryable, Tx } from '../../database/sql.ts'
import type { Egress } from '../../http/egress/egress.ts'
import { Fault } from '../../base/errors.ts'
import { InvalidRequest, invalidField } from '../../http/validation.ts'
import { newId, parseId, toId } from '../../base/ids.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import { toName } from '../../access/guard/schema.ts'
import { lockProject } from '../../access/organizations/projects.ts'
import { pauseTarget, resumeTarget, type TargetOfKind } from '../outbox/targets.ts'
import { findPresetProblem, type Preset } from './presets.ts'
import { AUDIT_WEBHOOKS_REMOVED, type NewWebhook, type WebhookChanges } from './webhook-schema.ts'
import {
  NO_OWN_REQUEST,
  changeOwnRequest,
  openOwnRequest,
  sealOwnRequest,
  type OwnRequest,
} from './own-request.ts'
import { toSealedCell } from './sealing.ts'
import { formatPreviousSecrets, newSigningSecret, parsePreviousSecrets } from './signing.ts'
import { lockWebhook, webhookNotFound, toWebhookUuid } from './webhooks.ts'

const MAX_WEBHOOKS = 50
/** The most former secrets that sign. With more rotations in a grace period, the oldest end. */
const MAX_PREVIOUS = 5
const HOUR_MS = 3_600_000

/** The account that changes a webhook, and the webhook's project. */
export interface Editor {
  actor: Actor
  organizationId: string
  projectId: string
}

/** Throws `InvalidRequest` for a URL that the egress guard refuses. */
export function checkUrl(egress: Egress, url: string): void {
  const problem = egress.findProblem(url)
  if (problem !== undefined) throw invalidField('url', 'invalid_value', problem)
}

/**
 * Creates a webhook with a URL that `checkUrl` has accepted. Returns its id and its secret, which
 * cannot be read again.
 */
export async function createWebhook(
  tx: Tx,
  editor: Editor,
  { url, name, channels = null, preset = 'standard', viewId, ...changes }: NewWebhook,
  secrets: Secrets,
): Promise<{ id: string; secret: string }> {
  const { projectId } = editor
  const own = changeOwnRequest(NO_OWN_REQUEST, changes, false)
  const address = toAddress(url, preset, own)
  await lockProject(tx, projectId)
  const [{ count }] = await tx<[{ count: number }]>`
    select count(*)::int as count from webhooks where project_id = ${projectId} and deleted_at is null
  `
  if (count >= MAX_WEBHOOKS) {
    throw new Fault(
      'conflict',
      `A project has at most ${MAX_WEBHOOKS} webhooks. Delete one that you do not need`,
    )
  }
  const { id, uuid } = newId('whk')
  const secret = newSigningSecret()
  await tx`
    insert into webhooks (project_id, id, name, url, host, preset, has_all_channels, secret, own_request, view_id)
    values (
      ${projectId}, ${uuid}, ${toName(name ?? address.host)},
      ${secrets.seal(address.href, toSealedCell('url', uuid))}, ${address.host}, ${preset},
      ${channels === null}, ${secrets.seal(secret, toSealedCell('secret', uuid))},
      ${sealOwnRequest(secrets, uuid, own)}, ${viewId ? (await findView(tx, projectId, viewId)).uuid : null}
    )
  `
  await setChannels(tx, projectId, uuid, channels)
  await auditWebhook(tx, editor, 'webhook.created', uuid, { host: address.host, preset })
  return { id, secret }
}

/**
 * Changes the given fields of a webhook. With another URL, preset, body or header its failures are
 * forgotten, and its pending deliveries become due. Throws `not_found`.
 */
export async function editWebhook(
  tx: Tx,
  editor: Editor,
  { id, changes }: { id: string; changes: WebhookChanges },
  secrets: Secrets,
): Promise<void> {
  const { projectId } = editor
  // Until the end, the view can neither be deleted nor become private.
  if (changes.viewId) await lockProject(tx, projectId)
  const locked = await lockWebhook(tx, projectId, id)
  const place = toSealedCell('url', locked.id)
  const preset = changes.preset ?? locked.preset
  const oldUrl = secrets.open(locked.url, place)
  const oldOwn = openOwnRequest(secrets, locked.id, locked.own)
  const isElsewhere = new URL(changes.url ?? oldUrl).origin !== new URL(oldUrl).origin
  const own = changeOwnRequest(oldOwn, changes, isElsewhere)
  const address = toAddress(changes.url ?? oldUrl, preset, own)
  const isMoved =
    address.href !== oldUrl || preset !== locked.preset || !isDeepStrictEqual(own, oldOwn)
  const { viewId } = changes
  const view = viewId ? await findView(tx, projectId, viewId) : undefined
  // A name that was never set is the host, and changes with it.
  const oldName = locked.name === locked.host ? address.host : locked.name
  const name = changes.name === undefined ? oldName : toName(changes.name ?? address.host)
  await tx`
    update webhooks set
      name = ${name}, url = ${secrets.seal(address.href, place)}, host = ${address.host}, preset = ${preset},
      own_request = ${sealOwnRequest(secrets, locked.id, own)},
      ${changes.channels === undefined ? tx`` : tx`has_all_channels = ${changes.channels === null},`}
      ${viewId === undefined ? tx`` : tx`view_id = ${view?.uuid ?? null},`}
      ${isMoved ? tx`${forgiven(tx)},` : tx``}
      updated_at = now()
    where project_id = ${projectId} and id = ${locked.id}
  `
  if (isMoved && locked.isEnabled) await resumeTarget(tx, toTarget(locked.id))
  if (changes.channels !== undefined) {
    await setChannels(tx, projectId, locked.id, changes.channels)
  }
  const fields = Object.keys(changes).sort().join(' ')
  await auditWebhook(tx, editor, 'webhook.edited', locked.id, { fields, host: address.host })
}

/**
 * Deletes a webhook and its secrets. Its pending deliveries end as cancelled. Throws `not_found`.
 */
export async function deleteWebhook(tx: Tx, editor: Editor, id: string): Promise<void> {
  const uuid = toWebhookUuid(id)
  const [gone] = await tx<{ host: string }[]>`
    update webhooks set
      deleted_at = now(), url = null, secret = null, previous_secret = null, previous_until = null,
      own_request = null, view_id = null
    where project_id = ${editor.projectId} and id = ${uuid} and deleted_at is null
    returning host
  `
  if (!gone) throw webhookNotFound()
  await resumeTarget(tx, toTarget(uuid))
  await auditWebhook(tx, editor, 'webhook.deleted', uuid, { host: gone.host })
}

/**
 * Creates a new secret and returns it. For `graceHours`, messages are also signed with the previous
 * secret, and with those before it until their own time. Without hours, all of them end now. Throws
 * `not_found`.
 */
export async function rotateWebhook(
  tx: Tx,
  editor: Editor,
  { id, graceHours }: { id: string; graceHours: number },
  secrets: Secrets,
): Promise<{ secret: string; previousUntil: Date | null }> {
  const locked = await lockWebhook(tx, editor.projectId, id)
  const uuid = locked.id
  const place = toSealedCell('previous_secret', uuid)
  const secret = newSigningSecret()
  const nowMs = locked.now.getTime()
  const untilMs = nowMs + graceHours * HOUR_MS
  const old = { secret: secrets.open(locked.secret, toSealedCell('secret', uuid)), untilMs }
  const older = locked.previousSecret === null ? '' : secrets.open(locked.previousSecret, place)
  const lastUntilMs = locked.previousUntil?.getTime() ?? nowMs
  const still = parsePreviousSecrets(older, { lastUntilMs, nowMs })
  const previous = [old, ...still].slice(0, MAX_PREVIOUS)
  const hasGrace = graceHours > 0
  const previousUntil = hasGrace ? new Date(Math.max(...previous.map(one => one.untilMs))) : null
  await tx`
    update webhooks set
      secret = ${secrets.seal(secret, toSealedCell('secret', uuid))},
      previous_secret = ${hasGrace ? secrets.seal(formatPreviousSecrets(previous), place) : null},
      previous_until = ${previousUntil}, generation = generation + 1, updated_at = now()
    where project_id = ${editor.projectId} and id = ${uuid}
  `
  await auditWebhook(tx, editor, 'webhook.secretRotated', uuid, { graceHours })
  return { secret, previousUntil }
}

/**
 * Enables a webhook, resets its failure counters, and makes its pending deliveries due. Throws
 * `not_found`, and `conflict` for one of the audit log.
 */
export async function enableWebhook(tx: Tx, editor: Editor, id: string): Promise<void> {
  const { projectId } = editor
  const { id: targetId, type } = await lockWebhook(tx, projectId, id)
  if (type === 'audit.entry') throw new Fault('conflict', AUDIT_WEBHOOKS_REMOVED)
  await tx`
    update webhooks set
      disabled_at = null, disabled_reason = null, ${forgiven(tx)}, updated_at = now()
    where project_id = ${projectId} and id = ${targetId}
  `
  await resumeTarget(tx, toTarget(targetId))
  await auditWebhook(tx, editor, 'webhook.enabled', targetId)
}

/** Disables a webhook, and shows `reason` to members. Throws `not_found`. */
export async function disableWebhook(
  tx: Tx,
  editor: Editor,
  { id, reason }: { id: string; reason: string },
): Promise<void> {
  const { id: uuid, isEnabled } = await lockWebhook(tx, editor.projectId, id)
  if (!isEnabled) return
  await tx`
    update webhooks set
      disabled_at = now(), disabled_reason = ${reason}, generation = generation + 1, updated_at = now()
    where project_id = ${editor.projectId} and id = ${uuid}
  `
  await pauseTarget(tx, toTarget(uuid), 'infinity')
  await auditWebhook(tx, editor, 'webhook.disabled', uuid, { reason })
}

function toTarget(targetId: string): TargetOfKind {
  return { kind: 'webhook', targetId }
}

/** The columns that begin a new generation without failures. */
function forgiven(sql: Queryable): Fragment {
  return sql`
    generation = generation + 1, failures = 0, failing_since = null, pauses = 0
  `
}

/** Writes an audit record. `details` must contain no part of a URL except its host. */
export async function auditWebhook(
  tx: Tx,
  { actor, organizationId, projectId }: Editor,
  action: AuditAction,
  webhookId: string,
  details: Readonly<Record<string, string | number>> = {},
): Promise<void> {
  const target = toId('whk', webhookId)
  await writeAudit(tx, actor, { action, organizationId, projectId, target, details })
}

/**
 * Sets the channels that a webhook is for; null for all. Throws `InvalidRequest` for an empty list
 * or an unknown channel.
 */
async function setChannels(
  tx: Tx,
  projectId: string,
  webhookId: string,
  ids: readonly string[] | null,
): Promise<void> {
  await tx`
    delete from webhook_channels where project_id = ${projectId} and webhook_id = ${webhookId}
  `
  if (ids === null) return
  if (ids.length === 0) {
    throw invalidField(
      'channels',
      'too_short',
      'Must contain at least one channel. Send null for all channels',
    )
  }
  const uuids = ids.map(id => parseId('chn', id))
  const rows = await tx<{ channel_id: string }[]>`
    insert into webhook_channels (project_id, webhook_id, channel_id)
    select c.project_id, ${webhookId}, c.id
    from channels_of(${projectId}) c
    where c.id = any(${toArray(uuids)}::uuid[])
    returning channel_id
  `
  const known = new Set(rows.map(row => row.channel_id))
  const unknown = uuids.flatMap((uuid, at) => (uuid && known.has(uuid) ? [] : [at]))
  if (unknown.length === 0) return
  throw new InvalidRequest(
    unknown.map(at => ({
      path: ['channels', String(at)],
      code: 'invalid_value',
      message: 'No channel of this project has this id',
    })),
  )
}

/** Finds a view that all members see. Throws `InvalidRequest`. */
export async function findView(
  sql: Queryable,
  projectId: string,
  id: string,
): Promise<{ uuid: string; search: string }> {
  const [view] = await sql<{ uuid: string; search: string }[]>`
    select id as uuid, search
    from views
    where project_id = ${projectId} and id = ${parseId('viw', id) ?? null}::uuid and account_id is null
  `
  if (view) return view
  throw invalidField('viewId', 'invalid_value', 'No shared view of this project has this id')
}

/** Converts a checked URL to the form in which it is stored. */
export function toAddress(text: string, preset: Preset, { body }: Pick<OwnRequest, 'body'>): URL {
  const url = new URL(text)
  url.hash = ''
  const problem = findPresetProblem(preset, url, body !== null)
  if (problem !== undefined) throw invalidField('url', 'invalid_value', problem)
  return url
}
