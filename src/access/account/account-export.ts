import { Fault } from '../../base/errors.ts'
import { NIL_UUID, toId } from '../../base/ids.ts'
import type { Pool } from '../../database/pool.ts'
import type { Sql } from '../../database/sql.ts'
import { isExpired } from '../guard/sessions.ts'

/** The items that one statement reads. */
const PAGE = 500

/** An item of an export. The items after it have greater keys. */
interface Row {
  key: string
}

/** A list of an export. It leaves out secrets and their hashes. */
interface Section {
  name: string
  /** Returns the next items, ordered by a key of one or two uuids. */
  read(sql: Sql, accountId: string, after: readonly [string, string]): PromiseLike<readonly Row[]>
  toItem(row: never): object
}

/** The parts of an account's data, in the order of the document. */
const SECTIONS: readonly Section[] = [
  {
    name: 'memberships',
    read: (sql, accountId, [after]) => sql`
      select m.organization_id as key, o.name, m.role, m.created_at as "joinedAt"
      from memberships m
        join organizations o on o.id = m.organization_id and o.deleted_at is null
      where m.account_id = ${accountId} and m.organization_id > ${after}
      order by m.organization_id
      limit ${PAGE}
    `,
    toItem: ({ key, name, ...item }: Row & { name: string }) => ({
      organization: { id: toId('org', key), name },
      ...item,
    }),
  },
  {
    name: 'sessions',
    read: (sql, accountId, [after]) => sql`
      select
        s.id as key, s.created_at as "createdAt", s.last_seen_at as "lastSeenAt", s.verified_at as "verifiedAt",
        s.method, s.is_installed as "isInstalled", s.address, s.user_agent as "userAgent"
      from sessions s
      where s.account_id = ${accountId} and s.id > ${after} and not ${isExpired(sql)}
      order by s.id
      limit ${PAGE}
    `,
    toItem: ({ key, ...item }: Row) => ({ id: toId('ses', key), ...item }),
  },
  {
    name: 'knownBrowsers',
    read: (sql, accountId, [after]) => sql`
      select d.id as key, d.last_used_at as "lastUsedAt"
      from known_devices d
      where d.account_id = ${accountId} and d.id > ${after}
      order by d.id
      limit ${PAGE}
    `,
    toItem: ({ key: _, ...item }: Row) => item,
  },
  {
    name: 'passkeys',
    read: (sql, accountId, [after]) => sql`
      select
        k.id as key, k.name, k.is_synced as "isSynced", k.created_at as "createdAt",
        k.last_used_at as "lastUsedAt", k.disabled_at as "disabledAt"
      from passkeys k
      where k.account_id = ${accountId} and k.id > ${after}
      order by k.id
      limit ${PAGE}
    `,
    toItem: ({ key: _, ...item }: Row) => item,
  },
  {
    name: 'connections',
    read: (sql, accountId, [after]) => sql`
      select
        c.id as key, c.provider, c.issuer, c.subject, c.created_at as "createdAt",
        c.last_used_at as "lastUsedAt"
      from openid_connections c
      where c.account_id = ${accountId} and c.id > ${after}
      order by c.id
      limit ${PAGE}
    `,
    toItem: ({ key, ...item }: Row) => ({ id: toId('con', key), ...item }),
  },
  {
    name: 'invites',
    read: (sql, accountId, [after]) => sql`
      select
        i.id as key, i.organization_id, i.role, i.email, i.created_at as "createdAt", i.expires_at as "expiresAt"
      from invites i
      where i.invited_by = ${accountId} and i.id > ${after}
      order by i.id
      limit ${PAGE}
    `,
    toItem: ({ key, organization_id, ...item }: Row & { organization_id: string }) => ({
      id: toId('inv', key),
      organizationId: toId('org', organization_id),
      ...item,
    }),
  },
  {
    name: 'managementTokens',
    read: (sql, accountId, [after]) => sql`
      select
        t.id as key, t.organization_id, t.name, t.role, t.last_four as "lastFour", t.created_at as "createdAt",
        t.last_used_at as "lastUsedAt", t.expires_at as "expiresAt"
      from management_tokens t
      where t.account_id = ${accountId} and t.id > ${after}
      order by t.id
      limit ${PAGE}
    `,
    toItem: ({ key, organization_id, ...item }: Row & { organization_id: string | null }) => ({
      id: toId('tok', key),
      organizationId: organization_id && toId('org', organization_id),
      ...item,
    }),
  },
  {
    name: 'pushSubscriptions',
    read: (sql, accountId, [after]) => sql`
      select
        d.id as key, d.host, d.label, d.is_on as "isOn", d.quiet_from as "quietFromMinutes",
        d.quiet_to as "quietToMinutes", d.quiet_zone as "quietZone", d.created_at as "createdAt",
        d.last_push_at as "lastPushAt", d.last_outcome as "lastOutcome"
      from push_subscriptions d
      where d.account_id = ${accountId} and d.id > ${after}
      order by d.id
      limit ${PAGE}
    `,
    toItem: ({ key, ...item }: Row) => ({ id: toId('psh', key), ...item }),
  },
  {
    name: 'notificationSettings',
    read: (sql, accountId, after) => sql`
      select ${keyOfChannel(sql)} as key, n.state, n.mute_until as "muteUntil", n.collapse
      from notification_settings n
      where n.account_id = ${accountId} and ${isAfterChannel(sql, after)}
      order by n.project_id, coalesce(n.channel_id, ${NIL_UUID})
      limit ${PAGE}
    `,
    toItem: toChannelItem,
  },
  {
    name: 'readMarks',
    read: (sql, accountId, after) => sql`
      select ${keyOfChannel(sql)} as key, n.seq::float8 as seq
      from read_marks n
      where n.account_id = ${accountId} and ${isAfterChannel(sql, after)}
      order by n.project_id, coalesce(n.channel_id, ${NIL_UUID})
      limit ${PAGE}
    `,
    toItem: toChannelItem,
  },
  {
    name: 'views',
    read: (sql, accountId, [project, view]) => sql`
      select
        n.project_id || ' ' || n.id as key, n.name, n.search as q, n.created_at as "createdAt"
      from views n
      where n.account_id = ${accountId} and (n.project_id, n.id) > (${project}::uuid, ${view}::uuid)
      order by n.project_id, n.id
      limit ${PAGE}
    `,
    toItem: toViewItem,
  },
  {
    name: 'viewMarks',
    read: (sql, accountId, after) => sql`
      select ${keyOfView(sql)} as key, n.seq::float8 as seq
      from view_marks n
      where n.account_id = ${accountId} and ${isAfterView(sql, after)}
      order by n.project_id, n.view_id
      limit ${PAGE}
    `,
    toItem: toViewItem,
  },
  {
    name: 'viewBells',
    read: (sql, accountId, after) => sql`
      select ${keyOfView(sql)} as key
      from view_bells n
      where n.account_id = ${accountId} and ${isAfterView(sql, after)}
      order by n.project_id, n.view_id
      limit ${PAGE}
    `,
    toItem: toViewItem,
  },
  {
    name: 'auditEntries',
    read: (sql, accountId, [after]) => sql`
      select
        a.id as key, a.at, a.organization_id, a.project_id, a.action, a.target, a.details, a.address,
        a.user_agent as "userAgent"
      from audit_log a
      where a.account_id = ${accountId} and a.id > ${after}
      order by a.id
      limit ${PAGE}
    `,
    toItem: ({
      key,
      organization_id,
      project_id,
      ...item
    }: Row & Record<'organization_id' | 'project_id', string | null>) => ({
      id: toId('aud', key),
      organizationId: organization_id && toId('org', organization_id),
      projectId: project_id && toId('prj', project_id),
      ...item,
    }),
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
  { read, toItem }: Section,
): AsyncGenerator<string> {
  let after: readonly [string, string] = [NIL_UUID, NIL_UUID]
  let separator = ''
  for (;;) {
    const rows = await pool.run(async sql => await read(sql, accountId, after))
    if (rows.length === 0) return
    yield separator + rows.map(row => JSON.stringify(toItem(row as never))).join(',')
    separator = ','
    const [first = NIL_UUID, second = NIL_UUID] = rows.at(-1)?.key.split(' ') ?? []
    after = [first, second]
    if (rows.length < PAGE) return
  }
}

/** Returns the key of a row `n` about a channel, or about all channels of a project. */
function keyOfChannel(sql: Sql) {
  return sql`n.project_id || ' ' || coalesce(n.channel_id, ${NIL_UUID})`
}

function isAfterChannel(sql: Sql, [project, channel]: readonly [string, string]) {
  return sql`(n.project_id, coalesce(n.channel_id, ${NIL_UUID})) > (${project}::uuid, ${channel}::uuid)`
}

/** Returns the key of a row `n` about a view. */
function keyOfView(sql: Sql) {
  return sql`n.project_id || ' ' || n.view_id`
}

function isAfterView(sql: Sql, [project, view]: readonly [string, string]) {
  return sql`(n.project_id, n.view_id) > (${project}::uuid, ${view}::uuid)`
}

function toViewItem({ key, ...item }: Row): object {
  const [project = '', view = ''] = key.split(' ')
  return { projectId: toId('prj', project), viewId: toId('viw', view), ...item }
}

function toChannelItem({ key, ...item }: Row): object {
  const [project = '', channel = ''] = key.split(' ')
  return {
    projectId: toId('prj', project),
    channelId: channel === NIL_UUID ? null : toId('chn', channel),
    ...item,
  }
}
