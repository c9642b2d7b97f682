import type { Fragment, Queryable } from '../db/sql.ts'
import type { Page } from '../http/envelope.ts'
import { toPage, toSlice, type PageQuery } from '../http/paging.ts'
import { parseId, toId } from '../ids.ts'
import { noKey, type KeyPlace } from './keys.ts'
import { parseScopes, type ApiKey } from './schema.ts'
import { PREFIX } from './token.ts'

interface Row {
  id: string
  name: string
  last_four: string
  rate_limit: number
  scopes: string
  created_at: Date
  created_by: string | null
  last_used_at: Date | null
  expires_at: Date | null
  revoked_at: Date | null
  requests: string
}

/** A page of a project's keys, newest first. */
export async function listKeys(
  sql: Queryable,
  projectId: string,
  query: PageQuery = {},
): Promise<Page<ApiKey>> {
  const { after, rows } = toSlice('key', query)
  const keys = await selectKeys(
    sql,
    sql`k.project_id = ${projectId} ${after ? sql`and k.id < ${after}` : sql``}`,
    rows,
  )
  return toPage(keys, query, ({ id }) => id)
}

/** One key of a project. Throws `not_found`. */
export async function getKey(sql: Queryable, { projectId, id }: KeyPlace): Promise<ApiKey> {
  const [key] = await selectKeys(
    sql,
    sql`k.project_id = ${projectId} and k.id = ${parseId('key', id) ?? null}`,
    1,
  )
  if (!key) throw noKey()
  return key
}

async function selectKeys(sql: Queryable, where: Fragment, limit: number): Promise<ApiKey[]> {
  const rows = await sql<Row[]>`
    select
      k.id, k.name, k.last_four, k.rate_limit, array_to_string(k.scopes, ' ') as scopes,
      k.created_at, p.name as created_by, k.last_used_at, k.expires_at, k.revoked_at, (
        select string_agg(coalesce(u.requests, 0)::text, ' ' order by h.hour)
        from generate_series(
            date_trunc('hour', now()) - interval '23 hours', date_trunc('hour', now()), interval '1 hour'
          ) as h (hour)
          left join key_usage u on u.key_id = k.id and u.hour = h.hour
      ) as requests
    from api_keys k
      left join people p on p.id = k.created_by
    where ${where}
    order by k.id desc
    limit ${limit}
  `
  return rows.map(toApiKey)
}

function toApiKey(row: Row): ApiKey {
  return {
    id: toId('key', row.id),
    name: row.name,
    prefix: PREFIX,
    lastFour: row.last_four,
    limit: row.rate_limit,
    scopes: parseScopes(row.scopes),
    createdAt: row.created_at.toISOString(),
    createdBy: row.created_by,
    lastUsedAt: row.last_used_at?.toISOString() ?? null,
    expiresAt: row.expires_at?.toISOString() ?? null,
    revokedAt: row.revoked_at?.toISOString() ?? null,
    requestsPerHour: row.requests.split(' ').map(Number),
  }
}
