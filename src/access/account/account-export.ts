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
  /** The fields whose uuids order the items, one or two. An item has those of `ids` alone. */
  order: readonly string[]
  /** The fields whose uuids become public ids, with the prefixes. `NIL_UUID` becomes null. */
  ids: Readonly<Record<string, IdPrefix>>
  /** Selects the items of an account. */
  select(sql: Sql, accountId: string): Fragment
}

const OF_CHANNEL = {
  order: ['projectId', 'channelId'],
  ids: { projectId: 'prj', channelId: 'chn' },
} as const
const OF_VIEW = {
  order: ['projectId', 'viewId'],
  ids: { projectId: 'prj', viewId: 'viw' },
} as const

/** The parts of an account's data, in the order of the document. */
const SECTIONS: readonly Section[] = [
  {
    name: 'memberships',
    order: ['organizationId'],
    ids: { organizationId: 'org' },
    select: (sql, accountId) => sql`
      select m.organization_id as "organizationId", o.name, m.role, m.created_at as "joinedAt"
      from memberships m
        join organizations o on o.id = m.organization_id and o.deleted_at is null
      where m.account_id = ${accountId}
    `,
  },
  {
    name: 'sessions',
    order: ['id'],
    ids: { id: 'ses' },
    select: (sql, accountId) => sql`
      select
        s.id, s.created_at as "createdAt", s.last_seen_at as "lastSeenAt", s.verified_at as "verifiedAt",
        s.method, s.is_installed as "isInstalled", s.address, s.user_agent as "userAgent"
      from sessions s
      where s.account_id = ${accountId} and not ${isExpired(sql)}
    `,
  },
  {
    name: 'knownBrowsers',
    order: ['id'],
    ids: {},
    select: (sql, accountId) => sql`
      select d.id, d.last_used_at as "lastUsedAt"
      from known_devices d
      where d.account_id = ${accountId}
    `,
  },
  {
    name: 'passkeys',
    order: ['id'],
    ids: {},
    select: (sql, accountId) => sql`
      select
        k.id, k.name, k.is_synced as "isSynced", k.created_at as "createdAt",
        k.last_used_at as "lastUsedAt", k.disabled_at as "disabledAt"
      from passkeys k
      where k.account_id = ${accountId}
    `,
  },
  {
    name: 'connections',
    order: ['id'],
    ids: { id: 'con' },
    select: (sql, accountId) => sql`
      select
        c.id, c.provider, c.issuer, c.subject, c.created_at as "createdAt", c.last_used_at as "lastUsedAt"
      from openid_connections c
      where c.account_id = ${accountId}
    `,
  },
  {
    name: 'invites',
    order: ['id'],
    ids: { id: 'inv', organizationId: 'org' },
    select: (sql, accountId) => sql`
      select
        i.id, i.organization_id as "organizationId", i.role, i.email, i.created_at as "createdAt",
        i.expires_at as "expiresAt"
      from invites i
      where i.invited_by = ${accountId}
    `,
  },
  {
    name: 'managementTokens',
    order: ['id'],
    ids: { id: 'tok', organizationId: 'org' },
    select: (sql, accountId) => sql`
      select
        t.id, t.organization_id as "organizationId", t.name, t.role, t.last_four as "lastFour",
        t.created_at as "createdAt", t.last_used_at as "lastUsedAt", t.expires_at as "expiresAt"
      from management_tokens t
      where t.account_id = ${accountId}
    `,
  },
  {
    name: 'pushSubscriptions',
    order: ['id'],
    ids: { id: 'psh' },
    select: (sql, accountId) => sql`
      select
        d.id, d.host, d.label, d.is_on as "isOn", d.quiet_from as "quietFromMinutes",
        d.quiet_to as "quietToMinutes", d.quiet_zone as "quietZone", d.created_at as "createdAt",
        d.last_push_at as "lastPushAt", d.last_outcome as "lastOutcome"
      from push_subscriptions d
      where d.account_id = ${accountId}
    `,
  },
  {
    name: 'notificationSettings',
    ...OF_CHANNEL,
    select: (sql, accountId) => sql`
      select
        n.project_id as "projectId", coalesce(n.channel_id, ${NIL_UUID}) as "channelId", n.state,
        n.mute_until as "muteUntil", n.collapse
      from notification_settings n
      where n.account_id = ${accountId}
    `,
  },
  {
    name: 'readMarks',
    ...OF_CHANNEL,
    select: (sql, accountId) => sql`
      select
        n.project_id as "projectId", coalesce(n.channel_id, ${NIL_UUID}) as "channelId",
        n.seq::float8 as seq
      from read_marks n
      where n.account_id = ${accountId}
    `,
  },
  {
    name: 'views',
    ...OF_VIEW,
    select: (sql, accountId) => sql`
      select
        n.project_id as "projectId", n.id as "viewId", n.name, n.search as q, n.created_at as "createdAt"
      from views n
      where n.account_id = ${accountId}
    `,
  },
  {
    name: 'viewMarks',
    ...OF_VIEW,
    select: (sql, accountId) => sql`
      select n.project_id as "projectId", n.view_id as "viewId", n.seq::float8 as seq
      from view_marks n
      where n.account_id = ${accountId}
    `,
  },
  {
    name: 'viewBells',
    ...OF_VIEW,
    select: (sql, accountId) => sql`
      select n.project_id as "projectId", n.view_id as "viewId"
      from view_bells n
      where n.account_id = ${accountId}
    `,
  },
  {
    name: 'auditEntries',
    order: ['id'],
    ids: { id: 'aud', organizationId: 'org', projectId: 'prj' },
    select: (sql, accountId) => sql`
      select
        a.id, a.at, a.organization_id as "organizationId", a.project_id as "projectId", a.action,
        a.target, a.details, a.address, a.user_agent as "userAgent"
      from audit_log a
      where a.account_id = ${accountId}
    `,
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
        password_hash is not null as "hasPassword"
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
        from (${section.select(sql, accountId)}) as items
        where (${sql(section.order)}) > (${after.map((uuid, nth) => (nth === 0 ? sql`${uuid}` : sql`, ${uuid}`))})
        order by ${sql(section.order)}
        limit ${PAGE}
      `,
    )
    if (rows.length === 0) return
    yield separator + rows.map(row => JSON.stringify(toItem(section, row))).join(',')
    separator = ','
    const last = rows.at(-1)
    after = section.order.map(field => String(last?.[field]))
    if (rows.length < PAGE) return
  }
}

/** Returns a row with public ids. A membership names its organization. */
function toItem({ name, order, ids }: Section, row: Row): object {
  const shown = Object.entries(row).filter(([field]) => field in ids || !order.includes(field))
  const item: Row = Object.fromEntries(
    shown.map(([field, value]) => {
      const prefix = ids[field]
      if (prefix === undefined) return [field, value]
      const isSet = typeof value === 'string' && value !== NIL_UUID
      return [field, isSet ? toId(prefix, value) : null]
    }),
  )
  if (name !== 'memberships') return item
  const { organizationId, name: organization, ...rest } = item
  return { organization: { id: organizationId, name: organization }, ...rest }
}
