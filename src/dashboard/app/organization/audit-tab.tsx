import { AuditLog } from '../audit/audit-log.tsx'
import { usePages } from '../components/use-pages.ts'
import { readMembers } from './api.ts'

/** The audit log of an organization, which can be filtered by its members. */
export function AuditTab({ organization }: { organization: string }) {
  const members = usePages(organization, cursor => readMembers(organization, cursor))
  return (
    <AuditLog
      organization={organization}
      members={members.items.map(({ person: { id, name } }) => ({ id, name }))}
    />
  )
}
