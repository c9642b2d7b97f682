import type { AuditEntry } from '../../../access/audit/entries.ts'
import type { Page } from '../../../http/envelope.ts'
import { request, type Result } from '../request.ts'

/** One page of the audit log of an organization, or of the server if it is undefined. */
export function readAudit(
  organization: string | undefined,
  { person, about, cursor }: { person: string; about: string; cursor: string | undefined },
): Promise<Result<Page<AuditEntry>>> {
  const place =
    organization === undefined ? 'server' : `organizations/${encodeURIComponent(organization)}`
  const query = new URLSearchParams({
    limit: '20',
    ...(person && { person }),
    ...(about && { about }),
    ...(cursor && { cursor }),
  })
  return request('GET', `/api/${place}/audit?${query}`)
}

/** Returns the path of the file with the entries that match the filters. */
export function toExportPath(
  organization: string,
  { person, about }: { person: string; about: string },
): string {
  const query = new URLSearchParams({ ...(person && { person }), ...(about && { about }) })
  return `/api/organizations/${encodeURIComponent(organization)}/audit/export?${query}`
}
