import { Elysia } from 'elysia'
import { invalidKey } from '../../base/errors.ts'
import { toId } from '../../base/ids.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import type { Pool } from '../../database/pool.ts'
import type { Key } from './count-requests.ts'
import type { KeyGuard } from './guard.ts'
import { Me, parseScopes } from './schema.ts'

interface Row {
  name: string
  rate_limit: number
  scopes: string
  expires_at: Date | null
  project_id: string
  project: string
  organization_id: string
  organization: string
}

/** The route of /v1 that describes the API key of the request. */
export function currentKeyRoutes({ guard, lists }: { guard: KeyGuard; lists: Pool }) {
  return new Elysia({ name: 'keys' })
    .use(guard)
    .get('/v1/me', async ({ call }) => succeed(call, 200, await getMe(lists, call.key)), {
      scope: 'any',
      response: { 200: SuccessOf(Me, 'The key, its project and its organization.') },
      detail: { operationId: 'getMe', summary: 'Get the current API key', tags: ['Keys'] },
    })
}

/** Throws `unauthorized` if the project was deleted meanwhile. */
async function getMe(lists: Pool, { id: keyId, organizationId }: Key): Promise<Me> {
  const [row] = await lists.of(organizationId).run(
    sql => sql<Row[]>`
      select
        k.name, k.rate_limit, array_to_string(k.scopes, ' ') as scopes, k.expires_at,
        p.id as project_id, p.name as project, o.id as organization_id, o.name as organization
      from api_keys k
        join projects p on p.id = k.project_id and p.deleted_at is null
        join organizations o on o.id = p.organization_id
      where k.id = ${keyId}
    `,
  )
  if (!row) throw invalidKey()
  return {
    organization: { id: toId('org', row.organization_id), name: row.organization },
    project: { id: toId('prj', row.project_id), name: row.project },
    key: {
      id: toId('key', keyId),
      name: row.name,
      limit: row.rate_limit,
      scopes: parseScopes(row.scopes),
      expiresAt: row.expires_at?.toISOString() ?? null,
    },
  }
}
