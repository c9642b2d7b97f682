import { writeAudit, type Actor } from '../audit/audit.ts'
import type { AuditAction } from '../audit/words.ts'
import type { Tx } from '../db/sql.ts'
import type { Egress } from '../egress/egress.ts'
import { Fault } from '../errors.ts'
import { invalidField } from '../http/validation.ts'
import { newId, toId } from '../ids.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { toName } from '../accounts/name.ts'
import { lockProject } from '../accounts/projects.ts'
import { setChannels } from './filter.ts'
import { findPresetProblem, type Preset } from './presets.ts'
import type { NewWebhook, WebhookChanges } from './schema.ts'
import { newSigningSecret } from './signing.ts'
import { noWebhook, toPlace, toWebhookUuid } from './webhooks.ts'

const MAX_WEBHOOKS = 50

/** Who changes a webhook of which project. */
export interface Editor {
  actor: Actor
  organizationId: string
  projectId: string
}

/** A webhook as it is while a transaction holds it. */
interface HeldWebhook {
  id: string
  name: string
  host: string
  url: string
  preset: Preset
  secret: string
  isEnabled: boolean
}

/** Throws `Invalid` for an address that nothing would be sent to. It resolves names: call it outside of transactions. */
export async function checkUrl(egress: Egress, url: string): Promise<void> {
  const problem = await egress.findProblem(url)
  if (problem !== undefined) throw invalidField('url', 'invalid_value', problem)
}

/** Makes a webhook for an address that was checked; its secret is in this answer and nowhere else. */
export async function createWebhook(
  tx: Tx,
  editor: Editor,
  { url, name, channels = null, preset = 'standard' }: NewWebhook,
  secrets: Secrets,
): Promise<{ id: string; secret: string }> {
  const { projectId } = editor
  const address = toAddress(url, preset)
  await lockProject(tx, projectId)
  const [{ count }] = await tx<[{ count: number }]>`
    select count(*)::int as count from webhooks where project_id = ${projectId} and deleted_at is null
  `
  if (count >= MAX_WEBHOOKS) {
    throw new Fault(
      'conflict',
      `A project has at most ${MAX_WEBHOOKS} webhooks: delete one that is not needed`,
    )
  }
  const { id, uuid } = newId('whk')
  const secret = newSigningSecret()
  await tx`
    insert into webhooks (project_id, id, name, url, host, preset, has_all_channels, secret)
    values (
      ${projectId}, ${uuid}, ${name === undefined ? address.host : toName(name)},
      ${secrets.seal(address.href, toPlace('url', uuid))}, ${address.host}, ${preset},
      ${channels === null}, ${secrets.seal(secret, toPlace('secret', uuid))}
    )
  `
  await setChannels(tx, projectId, uuid, channels)
  await audit(tx, editor, 'webhook.created', uuid, { host: address.host, preset })
  return { id, secret }
}

/** Changes what is given. */
export async function editWebhook(
  tx: Tx,
  editor: Editor,
  { id, changes }: { id: string; changes: WebhookChanges },
  secrets: Secrets,
): Promise<void> {
  const held = await holdWebhook(tx, editor.projectId, id, secrets)
  const preset = changes.preset ?? held.preset
  const address = toAddress(changes.url ?? held.url, preset)
  // A name that was not chosen goes with the host.
  const oldName = held.name === held.host ? address.host : held.name
  const name = changes.name === undefined ? oldName : toName(changes.name)
  await tx`
    update webhooks set
      name = ${name},
      url = ${secrets.seal(address.href, toPlace('url', held.id))},
      host = ${address.host},
      preset = ${preset},
      updated_at = now()
    where project_id = ${editor.projectId} and id = ${held.id}
  `
  if (changes.channels !== undefined) {
    await tx`
      update webhooks set has_all_channels = ${changes.channels === null}
      where project_id = ${editor.projectId} and id = ${held.id}
    `
    await setChannels(tx, editor.projectId, held.id, changes.channels)
  }
  const fields = Object.keys(changes).sort().join(' ')
  await audit(tx, editor, 'webhook.edited', held.id, { fields, host: address.host })
}

/** From the commit on nothing is sent to it, and its secrets are gone; what waits for it ends. */
export async function deleteWebhook(tx: Tx, editor: Editor, id: string): Promise<void> {
  const uuid = toWebhookUuid(id)
  const [gone] = await tx<{ host: string }[]>`
    update webhooks set
      deleted_at = now(), url = null, secret = null, previous_secret = null, previous_until = null
    where project_id = ${editor.projectId} and id = ${uuid} and deleted_at is null
    returning host
  `
  if (!gone) throw noWebhook()
  await audit(tx, editor, 'webhook.deleted', uuid, { host: gone.host })
}

/** A new secret; the old one signs as well for so many hours. */
export async function rotateWebhook(
  tx: Tx,
  editor: Editor,
  { id, graceHours }: { id: string; graceHours: number },
  secrets: Secrets,
): Promise<{ secret: string; previousUntil: Date | null }> {
  const held = await holdWebhook(tx, editor.projectId, id, secrets)
  const secret = newSigningSecret()
  const hasGrace = graceHours > 0
  const previous = hasGrace ? secrets.seal(held.secret, toPlace('previous_secret', held.id)) : null
  const [row] = await tx<{ previous_until: Date | null }[]>`
    update webhooks set
      secret = ${secrets.seal(secret, toPlace('secret', held.id))},
      previous_secret = ${previous},
      previous_until = case when ${hasGrace} then now() + make_interval(hours => ${graceHours}) end,
      updated_at = now()
    where project_id = ${editor.projectId} and id = ${held.id}
    returning previous_until
  `
  await audit(tx, editor, 'webhook.secretRotated', held.id, { graceHours })
  return { secret, previousUntil: row?.previous_until ?? null }
}

/** A webhook, locked. Throws `not_found`. */
async function holdWebhook(
  tx: Tx,
  projectId: string,
  id: string,
  secrets: Secrets,
): Promise<HeldWebhook> {
  const [row] = await tx<
    {
      id: string
      name: string
      host: string
      url: string
      preset: Preset
      secret: string
      is_enabled: boolean
    }[]
  >`
    select id, name, host, url, preset, secret, disabled_at is null as is_enabled
    from webhooks
    where project_id = ${projectId} and id = ${toWebhookUuid(id)} and deleted_at is null
    for no key update
  `
  if (!row) throw noWebhook()
  const { is_enabled: isEnabled, ...rest } = row
  return {
    ...rest,
    isEnabled,
    url: secrets.open(row.url, toPlace('url', row.id)),
    secret: secrets.open(row.secret, toPlace('secret', row.id)),
  }
}

/** For the audit log: never more of an address than its host. */
export async function audit(
  tx: Tx,
  { actor, organizationId, projectId }: Editor,
  action: AuditAction,
  webhookId: string,
  details: Readonly<Record<string, string | number>> = {},
): Promise<void> {
  const target = toId('whk', webhookId)
  await writeAudit(tx, actor, { action, organizationId, projectId, target, details })
}

/** An address that was checked, as it is kept. */
function toAddress(text: string, preset: Preset): URL {
  const url = new URL(text)
  url.hash = ''
  const problem = findPresetProblem(preset, url)
  if (problem !== undefined) throw invalidField('url', 'invalid_value', problem)
  return url
}
