import type { Queryable } from '../../database/sql.ts'
import { toRateLimitResult, type RateLimitResult } from '../../http/limits/rate-limit.ts'
import { toEffectiveRole, type AdmittedToken, type Ids } from './caller.ts'
import type { Role } from './permissions.ts'

/** Requests of one token per 60 seconds. */
const TOKEN_RATE_LIMIT = 300

interface Row {
  id: string
  name: string
  kind: 'personal' | 'organization'
  token_role: Role
  is_limited: boolean
  needs_second_factor: boolean
  account_id: string
  account: string
  email: string
  is_operator: boolean
  organization_id: string | null
  project_id: string | null
  role: Role | null
  used: number | null
  reset_at: number
  retry_after: number
}

/** A token, and the effect of its request on the rate limit, if it was counted. */
export interface CountedToken {
  admitted: AdmittedToken
  rateLimit: RateLimitResult | undefined
}

/**
 * Finds the live token that has the hash, and counts one request of it if `isCounting`. Nothing is
 * cached, so the next request of a withdrawn token is refused. Both limits of its role are read
 * anew for each request.
 */
export async function admitToken(
  sql: Queryable,
  { hash, organizationId, projectId, isCounting }: Ids & { hash: string; isCounting: boolean },
): Promise<CountedToken | undefined> {
  const [row] = await sql<Row[]>`
      with token as (
        select t.id, t.name, t.role, t.account_id, t.organization_id, t.project_ids, t.is_multi_factor
        from management_tokens t
        where t.hash = decode(${hash}, 'hex') and ${isLive(sql)}
      ), noted as (
        update management_tokens t set last_used_at = now()
        from token
        where t.id = token.id
          and (t.last_used_at is null or t.last_used_at not between now() - interval '1 minute' and now())
      ), counted as materialized (
        select c.*
        from token t
          cross join lateral count_in_rate_window(case when ${isCounting} then t.id end, 1) c
      )
      select
        t.id, t.name, case when t.organization_id is null then 'personal' else 'organization' end as kind,
        t.role as token_role, t.project_ids is not null as is_limited,
        coalesce(lacks_second_factor(o.requires_second_factor, t.is_multi_factor), false)
          as needs_second_factor,
        p.id as account_id, p.name as account, p.email, p.is_operator,
        o.id as organization_id, r.id as project_id, m.role,
        c.used, c.reset_at, c.retry_after
      from token t
        join accounts p on p.id = t.account_id
        left join projects r on r.id = ${projectId ?? null} and r.deleted_at is null
          and (t.project_ids is null or r.id = any(t.project_ids))
        left join organizations o on o.id = coalesce(${organizationId ?? null}, r.organization_id)
          and o.deleted_at is null and o.id = coalesce(t.organization_id, o.id)
        left join memberships m on m.organization_id = o.id and m.account_id = t.account_id
        left join counted c on true
    `
  return row && toCountedToken(row)
}

/**
 * The SQL condition that the token `t` is valid. An organization token ends with its organization.
 * The database deletes it with the membership of its creator.
 */
function isLive(sql: Queryable) {
  return sql`
    is_unexpired(t.expires_at, '365 days') and (
      t.organization_id is null or exists (
        select from organizations o where o.id = t.organization_id and o.deleted_at is null
      )
    )
  `
}

function toCountedToken(row: Row): CountedToken {
  const token = {
    id: row.id,
    name: row.name,
    kind: row.kind,
    role: row.token_role,
    isLimited: row.is_limited,
  }
  const window = {
    limit: TOKEN_RATE_LIMIT,
    used: row.used ?? 0,
    resetAt: row.reset_at,
    retryAfter: row.retry_after,
  }
  return {
    admitted: {
      token,
      account: {
        id: row.account_id,
        name: row.account,
        email: row.email,
        isOperator: row.is_operator,
      },
      isVerified: true,
      needsSecondFactor: row.needs_second_factor,
      organizationId: row.organization_id ?? undefined,
      projectId: row.project_id ?? undefined,
      role: row.role === null ? undefined : toEffectiveRole(row.role, token),
    },
    rateLimit: row.used === null ? undefined : toRateLimitResult(window, 1, 1),
  }
}
