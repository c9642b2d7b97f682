import { AuditLog } from '../audit/audit-log.tsx'
import { usePages } from '../components/use-pages.ts'

/** The audit log of an organization, which can be filtered by its members. */
export function AuditTab({ organization }: { organization: string }) {
  const members = usePages('GET /api/organizations/:organizationId/members', {
    organizationId: organization,
    limit: 50,
  })
  return (
    <AuditLog
      organization={organization}
      members={members.items.map(({ person: { id, name } }) => ({ id, name }))}
    />
  )
}
