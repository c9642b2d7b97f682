import { Type, type Static } from '@sinclair/typebox'
import type { Pool } from '../db/pool.ts'
import type { Site } from '../http/site.ts'
import { RUNTIME } from '../platform.ts'
import { SOURCE_URL, VERSION } from '../version.ts'
import { apiEndpoint, type ApiEndpoint } from './endpoint.ts'

const closed = { additionalProperties: false } as const

/** The server itself, as its operator sees it. */
const ServerInfo = Type.Object(
  {
    version: Type.String(),
    runtime: Type.String(),
    /** Where the program's source can be had, if the package says. */
    source: Type.Optional(Type.String()),
    url: Type.String(),
    isHttps: Type.Boolean(),
    startedAt: Type.String({ format: 'date-time' }),
    database: Type.Object(
      { kind: Type.String(), version: Type.String(), bytes: Type.Integer() },
      closed,
    ),
    projects: Type.Integer(),
    /** Accepted so far by the projects that there are. */
    events: Type.Integer(),
  },
  closed,
)
type ServerInfo = Static<typeof ServerInfo>

export interface ServerParts {
  pool: Pool
  getSite(): Site
  databaseKind: string
  startedAt: Date
}

export function serverRoutes(parts: ServerParts): ApiEndpoint[] {
  const { pool, getSite } = parts
  return [
    apiEndpoint({
      method: 'GET',
      path: '/api/server',
      action: 'server.read',
      success: { status: 200, data: ServerInfo },
      async handle() {
        const [row] = await pool.run(
          sql => sql<[{ version: string; bytes: string; projects: number; events: string }]>`
            select
              current_setting('server_version') as version,
              pg_database_size(current_database()) as bytes,
              (select count(*)::int from projects where deleted_at is null) as projects,
              (select coalesce(sum(last_seq), 0)::bigint from event_logs) as events
          `,
        )
        const info: ServerInfo = {
          version: VERSION,
          runtime: RUNTIME,
          ...(SOURCE_URL !== undefined && { source: SOURCE_URL }),
          url: getSite().url,
          isHttps: getSite().isSecure,
          startedAt: parts.startedAt.toISOString(),
          database: { kind: parts.databaseKind, version: row.version, bytes: Number(row.bytes) },
          projects: row.projects,
          events: Number(row.events),
        }
        return JSON.stringify(info)
      },
    }),
  ]
}
