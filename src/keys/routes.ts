import type { Pool } from '../db/pool.ts'
import { invalidKey } from '../errors.ts'
import { toId } from '../ids.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
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

export function keyRoutes({ reads }: { reads: Pool }): Endpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/v1/me',
      operationId: 'getMe',
      summary: 'Get what the key opens',
      tag: 'Keys',
      success: { status: 200, description: 'The key, its project and organization.', data: Me },
      async handle({ key }) {
        const [row] = await reads.run(
          sql => sql<Row[]>`
            select
              k.name, k.rate_limit, array_to_string(k.scopes, ' ') as scopes, k.expires_at,
              p.id as project_id, p.name as project, o.id as organization_id, o.name as organization
            from api_keys k
              join projects p on p.id = k.project_id and p.deleted_at is null
              join organizations o on o.id = p.organization_id
            where k.id = ${key.id}
          `,
        )
        if (!row) throw invalidKey()
        const me: Me = {
          organization: { id: toId('org', row.organization_id), name: row.organization },
          project: { id: toId('prj', row.project_id), name: row.project },
          key: {
            id: toId('key', key.id),
            name: row.name,
            limit: row.rate_limit,
            scopes: parseScopes(row.scopes),
            expiresAt: row.expires_at?.toISOString() ?? null,
          },
        }
        return JSON.stringify(me)
      },
    }),
  ]
}
