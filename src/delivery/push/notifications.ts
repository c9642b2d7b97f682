import { writeAudit, type Actor } from '../../access/audit/audit.ts'
import { toId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { toPage, parsePageQuery, type PageQuery } from '../../http/paging.ts'
import { invalidField } from '../../http/validation.ts'
import { channelNotFound, toChannelUuid } from '../../log/channels/channels.ts'
import type {
  ChannelNotificationSettings,
  ChannelNotificationSettingsInput,
  DefaultNotificationSettings,
  DefaultNotificationSettingsInput,
  NotificationSettingsPage,
} from './notification-schema.ts'

/** The defaults: notifications for every event, with bursts collapsed. */
const INITIAL_SETTINGS: DefaultNotificationSettings = {
  state: 'on',
  muteUntil: null,
  collapse: true,
}

/** An account and the project that its settings are for. Ids are uuids. */
export interface Recipient {
  organizationId: string
  projectId: string
  accountId: string
  actor: Actor
}

/** Stored settings. A column is null if it was not set, or if a mute has ended. */
interface Row {
  state: 'on' | 'mute' | null
  mute_until: Date | null
  collapse: boolean | null
}

/** Returns the settings for a project, and a page of the channels that have their own. */
export async function getNotifications(
  sql: Queryable,
  recipient: Recipient,
  query: PageQuery,
): Promise<NotificationSettingsPage> {
  const { after, rows: limit } = parsePageQuery('chn', query)
  const rows = await sql<(Row & { channel_id: string })[]>`
    select n.channel_id, ${settingColumns(sql)}
    from notification_settings n
    where n.project_id = ${recipient.projectId} and n.account_id = ${recipient.accountId}
      and n.channel_id is not null
      ${after ? sql`and n.channel_id > ${after}` : sql``}
      and (n.mute_until is null or n.mute_until > now() or n.collapse is not null)
    order by n.channel_id
    limit ${limit}
  `
  const project = await getDefaultSettings(sql, recipient)
  const items = rows.map(row => toChannelSettings(row.channel_id, row, project))
  return { default: project, ...toPage(items, query, ({ channelId }) => channelId) }
}

/** Returns the settings for one channel. Throws `not_found`. */
export async function getChannelNotifications(
  sql: Queryable,
  recipient: Recipient,
  channelId: string,
): Promise<ChannelNotificationSettings> {
  const uuid = toChannelUuid(channelId)
  const [row] = await sql<Row[]>`
    select ${settingColumns(sql)}
    from channel_by_id(${recipient.projectId}, ${uuid}) c
      left join notification_settings n
        on n.project_id = c.project_id and n.channel_id = c.id and n.account_id = ${recipient.accountId}
  `
  if (!row) throw channelNotFound()
  return toChannelSettings(uuid, row, await getDefaultSettings(sql, recipient))
}

/** Changes the settings for all channels without settings of their own. */
export async function setDefaultNotifications(
  tx: Tx,
  recipient: Recipient,
  input: DefaultNotificationSettingsInput,
): Promise<DefaultNotificationSettings> {
  await store(tx, recipient, null, input)
  return getDefaultSettings(tx, recipient)
}

/** Changes the settings for one channel. Throws `not_found`. */
export async function setChannelNotifications(
  tx: Tx,
  recipient: Recipient,
  { channelId, input }: { channelId: string; input: ChannelNotificationSettingsInput },
): Promise<ChannelNotificationSettings> {
  const uuid = toChannelUuid(channelId)
  // The lock keeps the channel from being deleted meanwhile.
  const found = await tx`
    select id from channels where project_id = ${recipient.projectId} and id = ${uuid} for key share
  `
  if (found.count === 0) throw channelNotFound()
  await store(tx, recipient, uuid, input)
  return getChannelNotifications(tx, recipient, channelId)
}

/**
 * Stores the settings for a channel; for the whole project if the channel is null. If `collapse` is
 * absent, it stays unchanged.
 */
async function store(
  tx: Tx,
  { organizationId, projectId, accountId, actor }: Recipient,
  channelId: string | null,
  { state, muteUntil = null, collapse }: ChannelNotificationSettingsInput,
): Promise<void> {
  if (state !== 'mute' && muteUntil !== null) {
    throw invalidField('muteUntil', 'invalid_value', 'Requires the state mute')
  }
  const stored = await tx`
    insert into notification_settings as n (project_id, account_id, channel_id, state, mute_until, collapse)
    select
      ${projectId}::uuid, ${accountId}::uuid, ${channelId}::uuid, ${state === 'default' ? null : state}::text,
      ${muteUntil}::timestamptz, ${collapse ?? null}::boolean
    where ${muteUntil}::timestamptz is null or ${muteUntil}::timestamptz > now()
    on conflict (project_id, account_id, channel_id) do update set
      state = excluded.state, mute_until = excluded.mute_until,
      collapse = case when ${collapse === undefined} then n.collapse else excluded.collapse end
  `
  if (stored.count === 0) {
    throw invalidField('muteUntil', 'out_of_range', 'Must be in the future')
  }
  await tx`
    delete from notification_settings
    where project_id = ${projectId} and account_id = ${accountId}
      and channel_id is not distinct from ${channelId}::uuid
      and state is null and collapse is null
  `
  await writeAudit(tx, actor, {
    action: 'notifications.edited',
    organizationId,
    projectId,
    target: channelId === null ? toId('prj', projectId) : toId('chn', channelId),
    details: { state, hasEnd: muteUntil !== null, ...(collapse !== undefined && { collapse }) },
  })
}

async function getDefaultSettings(
  sql: Queryable,
  { projectId, accountId }: Recipient,
): Promise<DefaultNotificationSettings> {
  const [row] = await sql<Row[]>`
    select ${settingColumns(sql)}
    from notification_settings n
    where n.project_id = ${projectId} and n.account_id = ${accountId} and n.channel_id is null
  `
  return row ? withFallback(row, INITIAL_SETTINGS) : INITIAL_SETTINGS
}

function settingColumns(sql: Queryable) {
  return sql`
    case when n.mute_until is null or n.mute_until > now() then n.state end as state,
    case when n.mute_until > now() then n.mute_until end as mute_until,
    n.collapse
  `
}

function toChannelSettings(
  channelId: string,
  row: Row,
  project: DefaultNotificationSettings,
): ChannelNotificationSettings {
  return {
    channelId: toId('chn', channelId),
    isDefault: row.state === null,
    isCollapseDefault: row.collapse === null,
    ...withFallback(row, project),
  }
}

/** Fills in each missing setting from `fallback`. */
function withFallback(
  { state, mute_until, collapse }: Row,
  fallback: DefaultNotificationSettings,
): DefaultNotificationSettings {
  return {
    ...(state === null
      ? { state: fallback.state, muteUntil: fallback.muteUntil }
      : { state, muteUntil: mute_until?.toISOString() ?? null }),
    collapse: collapse ?? fallback.collapse,
  }
}
