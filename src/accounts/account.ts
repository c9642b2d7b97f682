import type { Queryable } from '../db/sql.ts'
import { toId } from '../ids.ts'
import type { Role } from './permissions.ts'
import type { Account, Person } from './schema.ts'
import type { Admitted } from './sessions.ts'

interface Row {
  organization_id: string
  organization: string
  role: Role
  project_id: string | null
  project: string | null
}

/** Who is signed in, with their organizations and projects, oldest first. */
export async function getAccount(
  sql: Queryable,
  { person, isVerified }: Admitted,
): Promise<Account> {
  const rows = await sql<Row[]>`
    select o.id as organization_id, o.name as organization, m.role, p.id as project_id, p.name as project
    from memberships m
      join organizations o on o.id = m.organization_id and o.deleted_at is null
      left join projects p on p.organization_id = o.id and p.deleted_at is null
    where m.person_id = ${person.id}
    order by o.id, p.id
  `
  const organizations = new Map<string, Account['organizations'][number]>()
  for (const row of rows) {
    const id = toId('org', row.organization_id)
    const known = organizations.get(id) ?? {
      id,
      name: row.organization,
      role: row.role,
      projects: [],
    }
    organizations.set(id, known)
    if (row.project_id !== null) {
      known.projects.push({ id: toId('prj', row.project_id), name: row.project ?? '' })
    }
  }
  return { person: toPerson(person), isVerified, organizations: [...organizations.values()] }
}

/** A person under their public id. */
export function toPerson({ id, ...rest }: Admitted['person']): Person {
  return { id: toId('per', id), ...rest }
}
