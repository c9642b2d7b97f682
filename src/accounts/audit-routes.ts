import type { Pool } from '../db/pool.ts'
import { PageOf } from '../http/envelope.ts'
import { AuditEntry, AuditQuery, listAuditEntries } from './audit-entries.ts'
import { apiEndpoint, type ApiEndpoint } from './endpoint.ts'

/** Who did what: in an organization, and for the operator what concerns none. */
export function auditRoutes({ pool }: { pool: Pool }): ApiEndpoint[] {
  return [
    apiEndpoint({
      method: 'GET',
      path: '/api/organizations/:organizationId/audit',
      action: 'audit.read',
      query: AuditQuery,
      success: { status: 200, data: PageOf(AuditEntry) },
      handle: async ({ organizationId, query }) =>
        JSON.stringify(await pool.run(sql => listAuditEntries(sql, organizationId, query))),
    }),
    apiEndpoint({
      method: 'GET',
      path: '/api/server/audit',
      action: 'server.read',
      query: AuditQuery,
      success: { status: 200, data: PageOf(AuditEntry) },
      handle: async ({ query }) =>
        JSON.stringify(await pool.run(sql => listAuditEntries(sql, null, query))),
    }),
  ]
}
