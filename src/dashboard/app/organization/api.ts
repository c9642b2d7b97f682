import type {
  Invite,
  Member,
  NewInvite,
  Organization,
  Project,
  ProjectChange,
} from '../../../access/organizations/schema.ts'
import type { NewResetLink, OpenResetLink } from '../../../access/sign-in/schema.ts'
import type { Role } from '../../../access/guard/permissions.ts'
import type { Page } from '../../../http/envelope.ts'
import { toApiPath as toProjectPath } from '../api-paths.ts'
import { request, type Result } from '../request.ts'

export type { Invite, Member, NewInvite, NewResetLink, OpenResetLink, Project }

export function createOrganization(name: string): Promise<Result<Organization>> {
  return request('POST', '/api/organizations', { name })
}

export function renameOrganization(
  organization: string,
  name: string,
): Promise<Result<Organization>> {
  return request('PATCH', toPath(organization), { name })
}

export function readOrganization(organization: string): Promise<Result<Organization>> {
  return request('GET', toPath(organization))
}

export function requireSecondFactor(
  organization: string,
  requiresSecondFactor: boolean,
): Promise<Result<Organization>> {
  return request('PATCH', toPath(organization), { requiresSecondFactor })
}

export function deleteOrganization(organization: string): Promise<Result<unknown>> {
  return request('DELETE', toPath(organization))
}

export function leaveOrganization(organization: string): Promise<Result<unknown>> {
  return request('DELETE', toPath(organization, 'membership'))
}

export function createProject(organization: string, name: string): Promise<Result<Project>> {
  return request('POST', toPath(organization, 'projects'), { name })
}

export function readProject(project: string): Promise<Result<Project>> {
  return request('GET', toProjectPath(project))
}

/** Changes of a project; `keepDays` may be invalid input, which the server rejects. */
export type ProjectEdit = Pick<ProjectChange, 'name'> & { keepDays?: number | string | null }

export function editProject(project: string, change: ProjectEdit): Promise<Result<Project>> {
  return request('PATCH', toProjectPath(project), change)
}

export function deleteProject(project: string): Promise<Result<unknown>> {
  return request('DELETE', toProjectPath(project))
}

export function readMembers(
  organization: string,
  cursor: string | undefined,
): Promise<Result<Page<Member>>> {
  return request('GET', `${toPath(organization, 'members')}?${toQuery(cursor)}`)
}

export function changeRole(
  organization: string,
  member: string,
  role: Role,
): Promise<Result<Member>> {
  return request('PATCH', toPath(organization, 'members', member), { role })
}

export function removeMember(organization: string, member: string): Promise<Result<unknown>> {
  return request('DELETE', toPath(organization, 'members', member))
}

export function createResetLink(
  organization: string,
  member: string,
): Promise<Result<NewResetLink>> {
  return request('POST', toPath(organization, 'members', member, 'reset-link'))
}

export function readResetLinks(
  organization: string,
  cursor: string | undefined,
): Promise<Result<Page<OpenResetLink>>> {
  return request('GET', `${toPath(organization, 'reset-links')}?${toQuery(cursor)}`)
}

export function withdrawResetLink(organization: string, link: string): Promise<Result<unknown>> {
  return request('DELETE', toPath(organization, 'reset-links', link))
}

export function readInvites(
  organization: string,
  cursor: string | undefined,
): Promise<Result<Page<Invite>>> {
  return request('GET', `${toPath(organization, 'invites')}?${toQuery(cursor)}`)
}

export function createInvite(
  organization: string,
  invite: { role: string; email: string | null },
): Promise<Result<NewInvite>> {
  return request('POST', toPath(organization, 'invites'), invite)
}

export function withdrawInvite(organization: string, invite: string): Promise<Result<unknown>> {
  return request('DELETE', toPath(organization, 'invites', invite))
}

function toPath(organization: string, ...more: string[]): `/api/organizations/${string}` {
  return `/api/organizations/${[organization, ...more].map(encodeURIComponent).join('/')}`
}

function toQuery(cursor: string | undefined): URLSearchParams {
  return new URLSearchParams({ limit: '50', ...(cursor && { cursor }) })
}
