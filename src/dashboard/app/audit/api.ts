import type { AuditEntry } from '../../../audit/entries.ts'
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
