import { Fault } from '../../base/errors.ts'
import { NIL_UUID, toId, type IdPrefix } from '../../base/ids.ts'
import type { Pool } from '../../database/pool.ts'
import type { Fragment, Sql } from '../../database/sql.ts'
import { isExpired } from '../guard/sessions.ts'

/** The items that one statement reads. */
const PAGE = 500

type Row = Record<string, unknown>

/** A list of an export. It leaves out secrets and their hashes. */
interface Section {
  name: string
  /** The columns, with the table. A field has the name of its column in camelCase. */
  select(sql: Sql): Fragment
  /** The columns whose uuids order the items, one or two. An item has those of `ids` alone. */
  order: readonly string[]
  /** The columns whose uuids become public ids, with the prefixes. `NIL_UUID` becomes null. */
  ids: Readonly<Record<string, IdPrefix>>
  /** The column of the account. */
  owner?: string
}

const OF_ID = { order: ['id'], ids: {} }
const OF_CHANNEL = {
  order: ['project_id', 'channel_id'],
  ids: { project_id: 'prj', channel_id: 'chn' },
} as const
const OF_VIEW = {
  order: ['project_id', 'view_id'],
  ids: { project_id: 'prj', view_id: 'viw' },
} as const

/** The parts of an account's data, in the order of the document. */
const SECTIONS: readonly Section[] = [
  {
    name: 'memberships',
    select: sql => sql`
      m.organization_id, o.name, m.role, m.created_at as joined_at
      from memberships m
        join organizations o on o.id = m.organization_id and o.deleted_at is null
    `,
    order: ['organization_id'],
    ids: { organization_id: 'org' },
  },
  {
    name: 'sessions',
    select: sql => sql`
      id, created_at, last_seen_at, verified_at, method, is_installed, address, user_agent
      from (select * from sessions s where not ${isExpired(sql)}) as s
    `,
    order: ['id'],
    ids: { id: 'ses' },
  },
  {
    name: 'knownBrowsers',
    select: sql => sql`id, last_used_at from known_devices d`,
    ...OF_ID,
  },
  {
    name: 'passkeys',
    select: sql => sql`id, name, is_synced, created_at, last_used_at, disabled_at from passkeys k`,
    ...OF_ID,
  },
  {
    name: 'connections',
    select: sql =>
      sql`id, provider, issuer, subject, created_at, last_used_at from openid_connections c`,
    order: ['id'],
    ids: { id: 'con' },
  },
  {
    name: 'invites',
    select: sql => sql`id, organization_id, role, email, created_at, expires_at from invites i`,
    order: ['id'],
    ids: { id: 'inv', organization_id: 'org' },
    owner: 'invited_by',
  },
  {
    name: 'managementTokens',
    select: sql => sql`
      id, organization_id, name, role, last_four, created_at, last_used_at, expires_at
      from management_tokens t
    `,
    order: ['id'],
    ids: { id: 'tok', organization_id: 'org' },
  },
  {
    name: 'pushSubscriptions',
    select: sql => sql`
      id, host, label, is_on, quiet_hours, mutes, has_quiet_summary, lets_critical_through, created_at,
      last_push_at, last_outcome
      from push_subscriptions d
    `,
    order: ['id'],
    ids: { id: 'psh' },
  },
  {
    name: 'notificationSettings',
    select: sql => sql`
      project_id, coalesce(channel_id, ${NIL_UUID}) as channel_id, state, mute_until, collapse
      from notification_settings n
    `,
    ...OF_CHANNEL,
  },
  {
    name: 'readMarks',
    select: sql => sql`
      project_id, coalesce(channel_id, ${NIL_UUID}) as channel_id, seq::float8 as seq
      from read_marks n
    `,
    ...OF_CHANNEL,
  },
  {
    name: 'views',
    select: sql => sql`project_id, id as view_id, name, search as q, created_at from views n`,
    ...OF_VIEW,
  },
  {
    name: 'viewMarks',
    select: sql => sql`project_id, view_id, seq::float8 as seq from view_marks n`,
    ...OF_VIEW,
  },
  {
    name: 'viewBells',
    select: sql => sql`project_id, view_id from view_bells n`,
    ...OF_VIEW,
  },
  {
    name: 'acknowledgements',
    select: sql => sql`project_id, event_id, at, until from acknowledgements n`,
    order: ['project_id', 'event_id'],
    ids: { project_id: 'prj', event_id: 'evt' },
  },
  {
    name: 'answers',
    select: sql => sql`project_id, id as event_id, action, ended_at as at from questions n`,
    order: ['project_id', 'event_id'],
    ids: { project_id: 'prj', event_id: 'evt' },
  },
  {
    name: 'silences',
    select: sql => sql`project_id, id as silence_id, reason, created_at, ends_at from silences n`,
    order: ['project_id', 'silence_id'],
    ids: { project_id: 'prj', silence_id: 'sil' },
  },
  {
    name: 'auditEntries',
    select: sql => sql`
      id, at, organization_id, project_id, action, target, details, address, user_agent
      from audit_log a
    `,
    order: ['id'],
    ids: { id: 'aud', organization_id: 'org', project_id: 'prj' },
  },
]

/**
 * Yields the parts of a JSON document with all data of an account. Each page is read with a
 * deadline of its own, so the size of the document needs no memory. Throws `not_found`.
 */
export async function* exportAccount(pool: Pool, accountId: string): AsyncGenerator<string> {
  const [account] = await pool.run(
    sql => sql<{ id: string; at: Date }[]>`
      select
        id, now() as at, name, email, is_operator as "isOperator", created_at as "createdAt",
        quiet_hours as "quietHours", password_hash is not null as "hasPassword"
      from accounts
      where id = ${accountId}
    `,
  )
  if (!account) throw new Fault('not_found', 'The account was deleted')
  const { id, at, ...fields } = account
  const head = { exportedAt: at, account: { id: toId('per', id), ...fields } }
  yield JSON.stringify(head).slice(0, -1)
  for (const section of SECTIONS) {
    yield `,${JSON.stringify(section.name)}:[`
    yield* exportItems(pool, accountId, section)
    yield ']'
  }
  yield '}\n'
}

async function* exportItems(
  pool: Pool,
  accountId: string,
  section: Section,
): AsyncGenerator<string> {
  let after = section.order.map(() => NIL_UUID)
  let separator = ''
  for (;;) {
    const rows = await pool.run(
      sql => sql<Row[]>`
        select *
        from (select ${section.select(sql)} where ${sql(section.owner ?? 'account_id')} = ${accountId}) as items
        where (${sql(section.order)}) > (${after.map((uuid, nth) => (nth === 0 ? sql`${uuid}` : sql`, ${uuid}`))})
        order by ${sql(section.order)}
        limit ${PAGE}
      `,
    )
    if (rows.length === 0) return
    yield separator + rows.map(row => JSON.stringify(toItem(section, row))).join(',')
    separator = ','
    const last = rows.at(-1)
    after = section.order.map(column => String(last?.[column]))
    if (rows.length < PAGE) return
  }
}

/** Returns a row as an item, with public ids. A membership names its organization. */
function toItem({ name, order, ids }: Section, row: Row): object {
  const shown = Object.entries(row).filter(([column]) => column in ids || !order.includes(column))
  const item: Row = Object.fromEntries(
    shown.map(([column, value]) => {
      const field = column.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())
      const prefix = ids[column]
      if (prefix === undefined) return [field, value]
      const isSet = typeof value === 'string' && value !== NIL_UUID
      return [field, isSet ? toId(prefix, value) : null]
    }),
  )
  if (name !== 'memberships') return item
  const { organizationId, name: organization, ...rest } = item
  return { organization: { id: organizationId, name: organization }, ...rest }
}
