import { Elysia } from 'elysia'
import { toId } from '../../base/ids.ts'
import { transact } from '../../database/pool.ts'
import { succeedFile } from '../../http/call.ts'
import { FileOf, PageOf, SuccessOf } from '../../http/envelope.ts'
import { writeAudit } from '../audit/audit.ts'
import {
  AuditEntry,
  AuditFilters,
  AuditQuery,
  exportAuditEntries,
  listAuditEntries,
} from '../audit/entries.ts'
import { succeedRead, type SessionGuard } from '../guard/guard.ts'

const NDJSON = 'application/x-ndjson'
const response = { 200: SuccessOf(PageOf(AuditEntry), 'A page of the audit log.') }

/** Routes of the audit logs of organizations and of the installation. */
export function auditRoutes({ guard }: { guard: SessionGuard }) {
  return new Elysia({ name: 'accounts.audit' })
    .use(guard)
    .get(
      '/api/organizations/:organizationId/audit',
      ({ call, query }) =>
        succeedRead(call, sql => listAuditEntries(sql, call.organizationId, query)),
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
      '/api/organizations/:organizationId/audit/export',
      async ({ call, query: filters }) => {
        const { pool, organizationId, actor, checkAccess: check } = call
        const parts = exportAuditEntries(pool, { organizationId, filters, check })
        const target = toId('org', organizationId)
        await transact(pool, tx =>
          writeAudit(tx, actor, {
            action: 'audit.exported',
            organizationId,
            target,
            details: { ...filters },
          }),
        )
        return succeedFile(call, {
          name: 'tidings-audit-log.ndjson',
          contentType: NDJSON,
          parts,
        })
      },
      {
        organization: 'audit.read',
        query: AuditFilters,
        response: {
          200: FileOf(AuditEntry, {
            description: 'The entries, newest first. Each line is an entry in JSON.',
            contentType: NDJSON,
          }),
        },
        detail: {
          operationId: 'exportAuditEntries',
          summary: 'Export the audit log of an organization',
          tags: ['Organizations'],
        },
      },
    )
    .get(
      '/api/server/audit',
      ({ call, query }) => succeedRead(call, sql => listAuditEntries(sql, null, query)),
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
