import { Elysia } from 'elysia'
import { succeed } from '../http/call.ts'
import { PageOf, SuccessOf } from '../http/envelope.ts'
import { AuditEntry, AuditQuery, listAuditEntries } from '../audit/entries.ts'
import type { SessionGuard } from './guard.ts'

const response = { 200: SuccessOf(PageOf(AuditEntry), 'A page of the audit log.') }

/** Routes of the audit logs of organizations and of the installation. */
export function auditRoutes({ guard }: { guard: SessionGuard }) {
  return new Elysia({ name: 'accounts.audit' })
    .use(guard)
    .get(
      '/api/organizations/:organizationId/audit',
      async ({ call, query }) => {
        const { organizationId } = call
        const page = await call.pool.run(sql => listAuditEntries(sql, organizationId, query))
        return succeed(call, 200, page)
      },
      {
        organization: 'audit.read',
        query: AuditQuery,
        response,
        detail: {
          operationId: 'listAuditEntries',
          summary: 'List the audit log of an organization',
          tags: ['Organizations'],
        },
      },
    )
    .get(
      '/api/server/audit',
      async ({ call, query }) =>
        succeed(call, 200, await call.pool.run(sql => listAuditEntries(sql, null, query))),
      {
        installation: 'server.read',
        query: AuditQuery,
        response,
        detail: {
          operationId: 'listServerAuditEntries',
          summary: 'List the audit log of the installation',
          description: 'Entries that belong to no organization.',
          tags: ['Server'],
        },
      },
    )
}
