import { Type, type Static } from '@sinclair/typebox'
import { parseId, toId } from '../../base/ids.ts'
import { toBrowserName } from '../../base/user-agent.ts'
import { toArray } from '../../database/arrays.ts'
import type { Pool } from '../../database/pool.ts'
import type { Fragment, Queryable } from '../../database/sql.ts'
import type { Page } from '../../http/envelope.ts'
import { PageQuery, toPage, parsePageQuery } from '../../http/paging.ts'
import { Text } from '../../http/rules.ts'
import { closed, Timestamp, Nullable } from '../../http/schema-parts.ts'
import { invalidField } from '../../http/validation.ts'
import { listActionsOn, toActionText, toDetailsText } from './actions.ts'

/** An entry of an audit log. */
export const AuditEntry = Type.Object(
  {
    id: Type.String(),
    at: Timestamp,
    actor: Type.String({
      description: '`account`, `token`, `API key`, `anonymous`, `command line` or `server`.',
    }),
    /** The account that acted, or that created the token. */
    person: Nullable(Type.Object({ id: Type.String(), name: Nullable(Type.String()) }, closed)),
    /** The management token that acted. */
    token: Nullable(Type.Object({ id: Type.String(), name: Type.String() }, closed)),
    /** The API key that acted. */
    key: Nullable(Type.Object({ id: Type.String(), name: Nullable(Type.String()) }, closed)),
    action: Type.String({ examples: ['key.created'] }),
    /** The action in words, as a predicate between actor and target. */
    actionText: Type.String({ examples: ['created the API key'] }),
    project: Nullable(Type.Object({ id: Type.String(), name: Nullable(Type.String()) }, closed)),
    /** The public id of the target. */
    target: Nullable(Type.String()),
    /** The present name of the target, or else its name when the entry was written. */
    targetName: Nullable(Type.String()),
    details: Type.Record(Type.String(), Type.Unknown()),
    /** The details in words, except the name. */
    detailsText: Type.String({ examples: ['role member'] }),
    address: Nullable(Type.String()),
    /** The browser in words, from the User-Agent. */
    browser: Nullable(Type.String()),
  },
  closed,
)
export type AuditEntry = Static<typeof AuditEntry>

/** The filters of a log. */
export const AuditFilters = Type.Object({
  person: Type.Optional(
    Text({ minLength: 1, maxLength: 100, description: 'The id of the account that acted.' }),
  ),
  action: Type.Optional(
    Text({ minLength: 1, maxLength: 100, description: 'The action, such as `key.created`.' }),
  ),
  about: Type.Optional(
    Text({
      minLength: 1,
      maxLength: 100,
      description: 'The first part of the action, such as `key`.',
    }),
  ),
})
export type AuditFilters = Static<typeof AuditFilters>

export const AuditQuery = Type.Object({
  ...PageQuery.properties,
  ...AuditFilters.properties,
})
export type AuditQuery = Static<typeof AuditQuery>

/** The entries that one statement of an export reads. */
const EXPORT_PAGE = 500
const NAMED_PREFIXES = ['per', 'key', 'chn', 'whk'] as const

interface Row {
  id: string
  at: Date
  actor: string
  account_id: string | null
  account_name: string | null
  key_id: string | null
  key: string | null
  token_id: string | null
  token_name: string | null
  action: string
  project_id: string | null
  project: string | null
  target: string | null
  details: AuditEntry['details']
  address: string | null
  user_agent: string | null
}

/**
 * Returns a page of an audit log, newest first. Without an organization, it is the log of the
 * installation.
 */
export async function listAuditEntries(
  sql: Queryable,
  organizationId: string | null,
  query: AuditQuery,
): Promise<Page<AuditEntry>> {
  const { after, rows: limit } = parsePageQuery('aud', query)
  const accountId = parseAccountFilter(query)
  const rows = await selectEntries(
    sql,
    sql`
      ${organizationId === null ? sql`a.organization_id is null` : sql`a.organization_id = ${organizationId}`}
      ${after ? sql`and a.id < ${after}` : sql``}
      ${accountId ? sql`and a.account_id = ${accountId}` : sql``}
      ${query.action === undefined ? sql`` : sql`and a.action = ${query.action}`}
      ${query.about === undefined ? sql`` : sql`and a.action = any(${toArray(listActionsOn(query.about))}::text[])`}
    `,
    limit,
  )
  return toPage(rows, query, ({ id }) => id)
}

async function selectEntries(
  sql: Queryable,
  where: Fragment,
  limit: number,
): Promise<AuditEntry[]> {
  const rows = await sql<Row[]>`
    select
      a.id, a.at, a.actor, a.account_id, coalesce(p.name, ${nameOfDeletedAccount(sql)}) as account_name,
      a.token_id, a.token_name, a.key_id, k.name as key, a.action, a.project_id, r.name as project,
      a.target, a.details, a.address, a.user_agent
    from audit_log a
      left join accounts p on p.id = a.account_id
      left join api_keys k on k.id = a.key_id
      left join projects r on r.id = a.project_id
    where ${where}
    order by a.id desc
    limit ${limit}
  `
  const names = await readNames(sql, rows)
  return rows.map(row => toEntry(row, names))
}

/** Returns the uuid of the account to filter by. Throws `InvalidRequest`. */
function parseAccountFilter({ person }: AuditFilters): string | undefined {
  if (person === undefined) return undefined
  const accountId = parseId('per', person)
  if (accountId !== undefined) return accountId
  throw invalidField('person', 'invalid_format', 'Must be the id of an account')
}

interface AuditExport {
  organizationId: string
  filters: AuditFilters
  /** Runs before each page but the first, and throws if the export may not continue. */
  check(): Promise<void>
}

/**
 * Returns the entries of an organization's log as lines of JSON, newest first, a page at a time.
 * Throws `InvalidRequest` for an invalid filter.
 */
export function exportAuditEntries(pool: Pool, options: AuditExport): AsyncGenerator<string> {
  parseAccountFilter(options.filters)
  return readLines(pool, options)
}

async function* readLines(
  pool: Pool,
  { organizationId, filters, check }: AuditExport,
): AsyncGenerator<string> {
  let cursor: string | null = null
  do {
    if (cursor !== null) await check()
    const query: AuditQuery = { ...filters, limit: EXPORT_PAGE, ...(cursor !== null && { cursor }) }
    const page = await pool.run(sql => listAuditEntries(sql, organizationId, query))
    yield page.items.map(entry => `${toLine(entry)}\n`).join('')
    cursor = page.nextCursor
  } while (cursor !== null)
}

/** Returns an entry as one line, also for programs that break lines at other characters. */
function toLine(entry: AuditEntry): string {
  return JSON.stringify(entry).replace(
    /[\u0085\u2028\u2029]/g,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Returns an expression: the name that the deleted account of the entry `a` had. */
function nameOfDeletedAccount(sql: Queryable): Fragment {
  // Every deletion has an entry in the log of the installation.
  return sql`(
    select d.details ->> 'name'
    from audit_log d
    where d.account_id = a.account_id and d.action = 'account.deleted' and d.organization_id is null
    order by d.id desc
    limit 1
  )`
}

/** Returns the present names of the entries' targets by uuid. */
async function readNames(
  sql: Queryable,
  rows: readonly Pick<Row, 'target' | 'project_id'>[],
): Promise<ReadonlyMap<string, string>> {
  const ids = toArray(rows.flatMap(({ target }) => toNamedUuid(target) ?? []))
  const projectIds = toArray([...new Set(rows.flatMap(row => row.project_id ?? []))])
  const found = await sql<{ id: string; name: string }[]>`
    select id, name from accounts where id = any(${ids}::uuid[])
    union all
    -- Every deletion of an account has an entry in the log of the installation.
    select account_id, details ->> 'name'
    from audit_log
    where account_id = any(${ids}::uuid[]) and action = 'account.deleted' and organization_id is null
    union all
    select id, name from api_keys where id = any(${ids}::uuid[])
    union all
    select id, name from channels_of_all(${projectIds}::uuid[]) where id = any(${ids}::uuid[])
    union all
    select id, name from webhooks
    where project_id = any(${projectIds}::uuid[]) and id = any(${ids}::uuid[])
  `
  return new Map(found.map(({ id, name }) => [id, name]))
}

/** Returns the uuid of a target that can have a present name. */
function toNamedUuid(target: string | null): string | undefined {
  return NAMED_PREFIXES.map(prefix => parseId(prefix, target ?? '')).find(
    uuid => uuid !== undefined,
  )
}

function toEntry(row: Row, names: ReadonlyMap<string, string>): AuditEntry {
  return {
    id: toId('aud', row.id),
    at: row.at.toISOString(),
    actor: row.actor,
    person:
      row.account_id === null ? null : { id: toId('per', row.account_id), name: row.account_name },
    key: row.key_id === null ? null : { id: toId('key', row.key_id), name: row.key },
    token:
      row.token_id && row.token_name !== null
        ? { id: toId('tok', row.token_id), name: row.token_name }
        : null,
    action: row.action,
    actionText: toActionText(row.action),
    project:
      row.project_id === null ? null : { id: toId('prj', row.project_id), name: row.project },
    target: row.target,
    targetName: toTargetName(row, names),
    details: row.details,
    detailsText: toDetailsText(row.details),
    address: row.address,
    // The command line and other programs have a user agent, too.
    browser: row.user_agent?.startsWith('Mozilla/') ? toBrowserName(row.user_agent) : null,
  }
}

function toTargetName(row: Row, names: ReadonlyMap<string, string>): string | null {
  const { name } = row.details
  // Projects and organizations keep the name that they had when the entry was written.
  return names.get(toNamedUuid(row.target) ?? '') ?? (typeof name === 'string' ? name : null)
}
