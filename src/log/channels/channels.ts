import { writeAudit, type Actor } from '../../access/audit/audit.ts'
import { toArray } from '../../database/arrays.ts'
import type { Fragment, Queryable, Tx } from '../../database/sql.ts'
import { projectNotFound } from '../../access/organizations/projects.ts'
import { Fault } from '../../base/errors.ts'
import type { Page } from '../../http/envelope.ts'
import { toPage, parsePageQuery, type PageQuery } from '../../http/paging.ts'
import { invalidField } from '../../http/validation.ts'
import { takeChannel } from '../../http/limits/quotas.ts'
import { newId, parseId } from '../../base/ids.ts'
import { hasNothingToFind, NOTHING_TO_FIND } from '../../base/text-search.ts'
import { checkEscalation, saveEscalation } from './escalation.ts'
import { toEmoji } from './icon.ts'
import { toRank, type Level } from './level.ts'
import { toDisplayName, toSlug } from './name.ts'
import type {
  Channel,
  ChannelEdit,
  NewChannel,
  ProjectChannel,
  ProjectChannelQuery,
  ProjectChannels,
} from './schema.ts'

/** The most alarms and questions that are counted. */
const MAX_ALARMS = 100

/** An account that reads a project; both are uuids. */
export interface Reader {
  projectId: string
  accountId: string
}

/** Lists a page of a project's channels, newest first. */
export async function listChannels(
  sql: Queryable,
  projectId: string,
  query: PageQuery,
): Promise<Page<Channel>> {
  const { after, rows: limit } = parsePageQuery('chn', query)
  // Ids are in the order of creation (uuid version 7).
  const channels = await sql<Channel[]>`
    select public_id as id, name, icon, to_iso(created_at) as "createdAt"
    from channels
    where project_id = ${projectId} ${after ? sql`and channels.id < ${after}` : sql``}
    order by channels.id desc
    limit ${limit}
  `
  return toPage(channels, query, ({ id }) => id)
}

/**
 * Lists a page of a project's channels as `reader` sees them, newest first. Throws `InvalidRequest`
 * if a search has nothing to find.
 */
export async function listProjectChannels(
  sql: Queryable,
  reader: Reader,
  query: ProjectChannelQuery,
): Promise<ProjectChannels> {
  const { archived, search = '' } = query
  const { after, rows: limit } = parsePageQuery('chn', query)
  const text = search.trim()
  if (text !== '' && hasNothingToFind(text)) {
    throw invalidField('search', 'invalid_format', NOTHING_TO_FIND)
  }
  const wanted = sql`
    ${archived === 'true' ? sql`` : sql`and not c.is_archived`}
    ${text === '' ? sql`` : sql`and strpos(fold_text(c.name), fold_text(${text})) > 0`}
  `
  const where = sql`${wanted} ${after ? sql`and c.id < ${after}` : sql``}`
  const channels = await selectChannels(sql, reader, where, limit)
  const [counts] = await sql<[{ total: number; alarms: number }]>`
    select
      count(*)::int as total,
      (select firing from count_alarms(${reader.projectId}, ${MAX_ALARMS})) as alarms
    from channels c
    where c.project_id = ${reader.projectId} ${wanted}
  `
  // A statement may not read nodes and coordinator together.
  const [{ questions }] = await sql<[{ questions: number }]>`
    select count_questions(${reader.projectId}, ${MAX_ALARMS}) as questions
  `
  const page = toPage(channels, query, ({ id }) => id)
  return { ...page, total: counts.total, alarms: counts.alarms + questions }
}

/** The most channels that one name can mean, if it is no id and no first name. */
const MAX_NAMESAKES = 100

/**
 * Finds the uuids of channels by names. An id takes precedence over the first name of a channel,
 * and that over the names that channels were given later. Up to 100 channels can have one of these.
 * Each name is looked up in indexes, whatever the number of channels.
 */
export async function findChannels(
  sql: Queryable,
  projectId: string,
  names: readonly string[],
): Promise<string[]> {
  if (names.length === 0) return []
  const rows = await sql<{ id: string }[]>`
    select distinct coalesce(by_id.id, by_slug.id, by_name.id) as id
    from unnest(
        ${toArray(names.map(one => parseId('chn', one)))}::uuid[], ${toArray(names.map(toSlug))}::text[]
      ) as asked (id, slug)
      left join lateral (
        select id from channels
        where project_id = ${projectId} and id between asked.id and asked.id
        order by id
        limit 1
      ) by_id on true
      left join lateral (
        select id from channels
        where project_id = ${projectId} and slug between asked.slug and asked.slug
        order by slug
        limit 1
      ) by_slug on true
      left join lateral (
        select id from channels
        where project_id = ${projectId} and by_id.id is null and by_slug.id is null
          and name_slug between asked.slug and asked.slug and name_slug <> slug
        order by name_slug
        limit ${MAX_NAMESAKES}
      ) by_name on true
    where coalesce(by_id.id, by_slug.id, by_name.id) is not null
  `
  return rows.map(({ id }) => id)
}

/** Finds the uuid of a channel by its id or name. Throws `InvalidRequest`. */
export async function findChannel(sql: Queryable, projectId: string, name: string) {
  const [id] = await findChannels(sql, projectId, [name])
  if (id === undefined)
    throw invalidField('channel', 'invalid_value', 'No channel has this name or id')
  return id
}

/** Returns the names of channels by their uuid. */
export async function listChannelNames(
  sql: Queryable,
  projectId: string,
  channelIds: readonly string[],
): Promise<Map<string, string>> {
  if (channelIds.length === 0) return new Map()
  const rows = await sql<{ id: string; name: string }[]>`
    select id, name
    from channels
    where project_id = ${projectId} and id = any(${toArray(channelIds)}::uuid[])
  `
  return new Map(rows.map(({ id, name }) => [id, name]))
}

const FILLED_AT_A_TIME = 500

/**
 * Stores the slugs of the present names of channels that have none yet, because they were created
 * or restored by a former version. Returns false when none is left.
 */
export async function fillNameSlugs(sql: Queryable): Promise<boolean> {
  const rows = await sql<{ project_id: string; id: string; name: string }[]>`
    select project_id, id, name from channels where name_slug is null limit ${FILLED_AT_A_TIME}
  `
  await sql`
    update channels c set name_slug = n.slug
    from unnest(
      ${toArray(rows.map(row => row.project_id))}::uuid[], ${toArray(rows.map(({ id }) => id))}::uuid[],
      ${toArray(rows.map(({ name }) => name))}::text[], ${toArray(rows.map(({ name }) => toSlug(name)))}::text[]
    ) as n (project_id, id, name, slug)
    where c.project_id = n.project_id and c.id = n.id and c.name = n.name and c.name_slug is null
  `
  return rows.length === FILLED_AT_A_TIME
}

/** Returns one channel as `reader` sees it. Throws `not_found`. */
export async function getProjectChannel(
  sql: Queryable,
  reader: Reader,
  id: string,
): Promise<ProjectChannel> {
  const [channel] = await selectChannels(sql, reader, sql`and c.id = ${toChannelUuid(id)}`, 1)
  if (!channel) throw channelNotFound()
  return channel
}

/**
 * Creates a channel before its first event. Returns its id. Throws `conflict` if a channel has the
 * name, and `not_found` for a deleted project.
 */
export async function createChannel(
  tx: Tx,
  actor: Actor,
  { organizationId, projectId, channel, maxChannels }: NewChannelOf,
): Promise<string> {
  // Events create channels under this lock.
  const locked = await lockLog(tx, projectId)
  if (locked.count === 0) throw projectNotFound()
  const { id, uuid } = newId('chn')
  const { icon, description, isArchived = false, keepDays = null, level = 'normal' } = channel
  const { escalation } = channel
  if (escalation) await checkEscalation(tx, organizationId, escalation)
  const name = toDisplayName(channel.name)
  await takeChannel(tx, { projectId, slug: toSlug(name), maxChannels })
  const created = await tx`
    insert into channels (
      project_id, id, public_id, slug, name, name_slug, icon, description, is_archived, keep_days,
      level, created_at
    )
    values (
      ${projectId}, ${uuid}, ${id}, ${toSlug(name)}, ${name}, ${toSlug(name)},
      ${toEmoji(icon ?? '') ?? null}, ${description || null}, ${isArchived}, ${keepDays},
      ${toStored(level)}, now()
    )
    on conflict (project_id, slug) do nothing
  `
  if (created.count === 0) throw new Fault('conflict', 'A channel of the project has this name')
  if (level !== 'normal') await noteLevels(tx, projectId)
  if (escalation) await saveEscalation(tx, [projectId, uuid], escalation)
  await writeAudit(tx, actor, {
    action: 'channel.created',
    organizationId,
    projectId,
    target: id,
    details: {
      ...{ isArchived, keepDays, ...(level !== 'normal' && { level }) },
      ...(escalation && { escalation: true }),
    },
  })
  return id
}

interface NewChannelOf {
  organizationId: string
  projectId: string
  channel: NewChannel
  /** The quota of the organization. */
  maxChannels: number
}

/**
 * Changes the settings of a channel. A new name changes only the display name: events still find
 * the channel by its first name. A process that has cached the channel may return the old name for
 * 5 s. Throws `not_found`.
 */
export async function editChannel(
  tx: Tx,
  actor: Actor,
  {
    organizationId,
    projectId,
    id,
    edit,
  }: { organizationId: string; projectId: string; id: string; edit: ChannelEdit },
): Promise<void> {
  const { name, icon, description, isArchived, keepDays, level, escalation } = edit
  if (escalation) await checkEscalation(tx, organizationId, escalation)
  // Appends read the levels of channels under this lock, and so do other edits.
  if (level !== undefined) await lockLog(tx, projectId)
  const changed = await tx`
    update channels set
      name = coalesce(${name === undefined ? null : toDisplayName(name)}, name),
      name_slug = coalesce(${name === undefined ? null : toSlug(name)}, name_slug),
      icon = ${icon === undefined ? tx`icon` : (toEmoji(icon ?? '') ?? null)},
      description = ${description === undefined ? tx`description` : description || null},
      is_archived = coalesce(${isArchived ?? null}, is_archived),
      keep_days = ${keepDays === undefined ? tx`keep_days` : keepDays},
      level = ${level === undefined ? tx`level` : toStored(level)}
    where project_id = ${projectId} and id = ${toChannelUuid(id)}
  `
  if (changed.count === 0) throw channelNotFound()
  if (level !== undefined) await noteLevels(tx, projectId)
  if (escalation !== undefined) await saveEscalation(tx, [projectId, toChannelUuid(id)], escalation)
  const fields = Object.entries({
    name,
    icon,
    description,
    isArchived,
    keepDays,
    level,
    escalation,
  })
    .filter(([, value]) => value !== undefined)
    .map(([field]) => field)
  if (fields.length === 0) return
  await writeAudit(tx, actor, {
    action: 'channel.edited',
    organizationId,
    projectId,
    target: id,
    details: {
      fields: fields.join(' '),
      ...(isArchived !== undefined && { isArchived }),
      ...(keepDays !== undefined && { keepDays }),
      ...(level !== undefined && { level }),
    },
  })
}

/**
 * Locks a project's log until the transaction ends. Every writer of events, channels, identities
 * and aliases does so first.
 */
export function lockLog(tx: Tx, projectId: string) {
  return tx`select from event_logs where project_id = ${projectId} for update`
}

/** Notes for the append whether channels of the project have levels. The log is locked. */
async function noteLevels(tx: Tx, projectId: string): Promise<void> {
  await tx`
    update event_logs set has_levels = exists (
      select from channels c where c.project_id = ${projectId} and c.level is not null
    )
    where project_id = ${projectId}
  `
}

function toStored(level: Level): number | null {
  return level === 'normal' ? null : toRank(level)
}

/**
 * Selects how many events `reader` has not read in the channel of a row `c`, up to 100. Without a
 * read mark, events since the membership began are unread.
 */
export function unreadColumn(sql: Queryable, { projectId, accountId }: Reader): Fragment {
  return sql`
    count_unread(
      project => c.project_id,
      channel => c.id,
      mark => (
        select max(r.seq)
        from read_marks r
        where r.project_id = ${projectId} and r.account_id = ${accountId}
          and (r.channel_id = c.id or r.channel_id is null)
      ),
      since => (
        select case when m.created_at <= now() then m.created_at else '-infinity' end
        from projects p
          join memberships m on m.organization_id = p.organization_id and m.account_id = ${accountId}
        where p.id = ${projectId}
      )
    )
  `
}

/** Returns the uuid in a channel's id. Throws `not_found`. */
export function toChannelUuid(id: string): string {
  const uuid = parseId('chn', id)
  if (!uuid) throw channelNotFound()
  return uuid
}

export function channelNotFound(): Fault {
  return new Fault('not_found', 'No channel of this project has this id')
}

async function selectChannels(
  sql: Queryable,
  reader: Reader,
  where: Fragment,
  limit: number,
): Promise<ProjectChannel[]> {
  // The page is selected first, so that Postgres counts only for its channels.
  return sql<ProjectChannel[]>`
    with page as materialized (
      select
        c.project_id, c.id, c.public_id, c.slug, c.name, c.icon, c.description, c.is_archived, c.keep_days,
        c.level, c.created_at
      from channels c
      where c.project_id = ${reader.projectId} ${where}
      order by c.id desc
      limit ${limit}
    )
    select
      c.public_id as id, c.slug, c.name, c.icon, c.description, c.is_archived as "isArchived", c.keep_days as "keepDays",
      coalesce(level_name(c.level), 'normal') as level, escalation_of(c.project_id, c.id) as escalation, to_iso(c.created_at) as "createdAt", l.seq::float8 as "lastSeq", to_iso(l.occurred_at) as "lastEventAt",
      ${unreadColumn(sql, reader)} as unread, is_muted(c.project_id, c.id, ${reader.accountId}) as "isMuted",
      t.counts::json as today
    from page c
      join hourly_counts_of_channels(
        project => ${reader.projectId},
        channels => array(select w.id from page w),
        first_hour => hour_of(now()) - interval '23 hours',
        last_hour => hour_of(now())
      ) t on t.channel_id = c.id
      cross join lateral newest_of_channel(c.project_id, c.id) l
    order by c.id desc
  `
}
