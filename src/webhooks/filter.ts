import { toArray } from '../db/arrays.ts'
import type { Fragment, Queryable, Tx } from '../db/sql.ts'
import { invalidField, Invalid } from '../http/validation.ts'
import { parseId } from '../ids.ts'

/**
 * Sets the channels whose events a webhook is for; null for all. Throws `Invalid` where there are none, or one is not of
 * the project.
 */
export async function setChannels(
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
    throw invalidField('channels', 'too_short', 'Name at least one channel, or send null for all')
  }
  const uuids = ids.map(id => parseId('chn', id))
  const rows = await tx<{ channel_id: string }[]>`
    insert into webhook_channels (project_id, webhook_id, channel_id)
    select c.project_id, ${webhookId}, c.id
    from channels c
    where c.project_id = ${projectId} and c.id = any(${toArray(uuids)}::uuid[])
    returning channel_id
  `
  const known = new Set(rows.map(row => row.channel_id))
  const unknown = uuids.flatMap((uuid, at) => (uuid && known.has(uuid) ? [] : [at]))
  if (unknown.length === 0) return
  throw new Invalid(
    unknown.map(at => ({
      path: ['channels', String(at)],
      code: 'invalid_value',
      message: 'No channel of this project has this id',
    })),
  )
}

/** Whether an event `e` is one that the webhook `w` is for. */
export function isWanted(sql: Queryable): Fragment {
  return sql`(
    w.has_all_channels
    or exists (
      select from webhook_channels wc
      where wc.project_id = w.project_id and wc.webhook_id = w.id and wc.channel_id = e.channel_id
    )
  )`
}
