import { writeAudit, type Actor } from '../audit/audit.ts'
import { noChannel, toChannelUuid } from '../channels/channels.ts'
import type { Queryable, Tx } from '../db/sql.ts'
import { toPage, toSlice, type PageQuery } from '../http/paging.ts'
import { invalidField } from '../http/validation.ts'
import { toId } from '../ids.ts'
import type {
  ChannelNotification,
  ChannelNotificationInput,
  Notification,
  NotificationInput,
  NotificationSettings,
} from './schema.ts'

const ON: Notification = { state: 'on', muteUntil: null }

/** Whose wishes, and of which project. */
export interface Wisher {
  organizationId: string
  projectId: string
  personId: string
  actor: Actor
}

interface Row {
  state: 'on' | 'mute'
  mute_until: Date | null
}

/** What somebody wants of a project: of all its channels, and a page of those for which they want something else. */
export async function getNotifications(
  sql: Queryable,
  wisher: Wisher,
  query: PageQuery,
): Promise<NotificationSettings> {
  const { after, rows: limit } = toSlice('chn', query)
  const rows = await sql<(Row & { channel_id: string })[]>`
    select n.channel_id, n.state, n.mute_until
    from channel_notifications n
    where n.project_id = ${wisher.projectId} and n.person_id = ${wisher.personId}
      and n.channel_id is not null
      ${after ? sql`and n.channel_id > ${after}` : sql``}
      and (n.mute_until is null or n.mute_until > now())
    order by n.channel_id
    limit ${limit}
  `
  const items = rows.map(row => toChannelSetting(row.channel_id, row))
  return {
    default: await getDefault(sql, wisher),
    ...toPage(items, query, ({ channelId }) => channelId),
  }
}

/** What somebody wants of one channel. Throws `not_found`. */
export async function getChannel(
  sql: Queryable,
  wisher: Wisher,
  channelId: string,
): Promise<ChannelNotification> {
  const { projectId, personId } = wisher
  const uuid = toChannelUuid(channelId)
  const [row] = await sql<(Row | { state: null; mute_until: null })[]>`
    select n.state, n.mute_until
    from channels c
      left join channel_notifications n
        on n.project_id = c.project_id and n.channel_id = c.id and n.person_id = ${personId}
          and (n.mute_until is null or n.mute_until > now())
    where c.project_id = ${projectId} and c.id = ${uuid}
  `
  if (!row) throw noChannel()
  if (row.state !== null) return toChannelSetting(uuid, row)
  return toDefaultSetting(uuid, await getDefault(sql, wisher))
}

/** What they want of the channels for which they have said nothing. */
export async function setDefault(
  tx: Tx,
  wisher: Wisher,
  wish: NotificationInput,
): Promise<Notification> {
  await keep(tx, wisher, null, wish)
  return getDefault(tx, wisher)
}

/** What they want of one channel. Throws `not_found`. */
export async function setChannel(
  tx: Tx,
  wisher: Wisher,
  { channelId, wish }: { channelId: string; wish: ChannelNotificationInput },
): Promise<ChannelNotification> {
  const { projectId, personId, organizationId, actor } = wisher
  const uuid = toChannelUuid(channelId)
  // Held, so that nobody clears it away meanwhile.
  const found = await tx`
    select id from channels where project_id = ${projectId} and id = ${uuid} for key share
  `
  if (found.count === 0) throw noChannel()
  const { state, muteUntil } = wish
  if (state !== 'default') {
    await keep(tx, wisher, uuid, { state, ...(muteUntil !== undefined && { muteUntil }) })
    const [row] = await tx<Row[]>`
      select state, mute_until
      from channel_notifications
      where project_id = ${projectId} and person_id = ${personId} and channel_id = ${uuid}
    `
    return toChannelSetting(uuid, row)
  }
  checkUntil(wish)
  await tx`
    delete from channel_notifications
    where project_id = ${projectId} and person_id = ${personId} and channel_id = ${uuid}
  `
  await writeAudit(tx, actor, {
    action: 'notifications.edited',
    organizationId,
    projectId,
    target: channelId,
    details: { state },
  })
  return toDefaultSetting(uuid, await getDefault(tx, wisher))
}

async function keep(
  tx: Tx,
  { organizationId, projectId, personId, actor }: Wisher,
  channelId: string | null,
  wish: NotificationInput,
): Promise<void> {
  checkUntil(wish)
  const { state, muteUntil = null } = wish
  const kept = await tx`
    insert into channel_notifications (project_id, person_id, channel_id, state, mute_until)
    select ${projectId}::uuid, ${personId}::uuid, ${channelId}::uuid, ${state}, ${muteUntil}::timestamptz
    where ${muteUntil}::timestamptz is null or ${muteUntil}::timestamptz > now()
    on conflict (project_id, person_id, channel_id) do update set
      state = excluded.state, mute_until = excluded.mute_until
  `
  if (kept.count === 0) {
    throw invalidField('muteUntil', 'out_of_range', 'Must be in the future')
  }
  await writeAudit(tx, actor, {
    action: 'notifications.edited',
    organizationId,
    projectId,
    target: channelId === null ? toId('prj', projectId) : toId('chn', channelId),
    details: { state, hasEnd: muteUntil !== null },
  })
}

function checkUntil({ state, muteUntil }: ChannelNotificationInput): void {
  if (state === 'mute' || muteUntil === undefined || muteUntil === null) return
  throw invalidField('muteUntil', 'invalid_value', 'Goes with the state mute alone')
}

async function getDefault(sql: Queryable, { projectId, personId }: Wisher): Promise<Notification> {
  const [row] = await sql<Row[]>`
    select state, mute_until
    from channel_notifications
    where project_id = ${projectId} and person_id = ${personId} and channel_id is null
      and (mute_until is null or mute_until > now())
  `
  return row ? toSetting(row) : ON
}

function toChannelSetting(channelId: string, row: Row | undefined): ChannelNotification {
  return { channelId: toId('chn', channelId), isDefault: false, ...(row ? toSetting(row) : ON) }
}

function toDefaultSetting(channelId: string, setting: Notification): ChannelNotification {
  return { channelId: toId('chn', channelId), isDefault: true, ...setting }
}

function toSetting({ state, mute_until }: Row): Notification {
  return { state, muteUntil: mute_until?.toISOString() ?? null }
}
