import type { Role } from '../../access/guard/permissions.ts'
import type { Invite, Member, Project } from '../../access/organizations/schema.ts'
import { isAtLeast } from '../../access/guard/permissions.ts'
import type { ProjectChannel } from '../../log/channels/schema.ts'
import { TidingsError } from '../../../clients/typescript/src/errors.ts'
import type { CurrentToken } from '../../access/tokens/schema.ts'
import type { View, Views } from '../../log/views/schema.ts'
import type { Webhook } from '../../delivery/webhooks/webhook-schema.ts'
import type { ManagementApi } from './api.ts'
import type { ProjectEntry, StateFile } from './file.ts'

export type ChannelState = Pick<
  ProjectChannel,
  | 'id'
  | 'slug'
  | 'name'
  | 'icon'
  | 'description'
  | 'isArchived'
  | 'keepDays'
  | 'level'
  | 'escalation'
>
type WebhookState = Pick<
  Webhook,
  'id' | 'name' | 'url' | 'type' | 'preset' | 'channels' | 'body' | 'headers' | 'viewId'
>

/** A project as the server has it. Lists that the file does not name are empty. */
export interface ProjectState extends Pick<Project, 'id' | 'name' | 'keepDays'> {
  channels: readonly ChannelState[]
  webhooks: readonly WebhookState[]
  /** The views that all members share. */
  views: readonly Pick<View, 'id' | 'name'>[]
}

/** The part of an organization that a file is about, as the server has it. */
export interface State {
  organization: { id: string; name: string }
  /** The role with which the token acts. */
  role: Role
  /** Why the token cannot change the organization itself. Undefined if only its role counts. */
  organizationRefusal: string | undefined
  projects: readonly ProjectState[]
  members: readonly { id: string; email: string; role: Role }[]
  /** The open invites that are for one e-mail address. Empty unless the role is admin or owner. */
  invites: readonly { email: string; role: Role }[]
}

/** Reads what the server has of the things that `file` names. */
export async function readState(api: ManagementApi, file: StateFile): Promise<State> {
  const token = await api.request<CurrentToken>('GET', '/api/token')
  const { id, name, role, projects } = findOrganization(token, file.organization?.trim())
  const entries = file.projects ?? []
  const known: ProjectState[] = []
  for (const entry of entries) {
    const found = findOnly(projects, entry.name.trim(), 'project')
    if (found) known.push(await readProject(api, found.id, entry))
  }
  const needsOrganization = (file.members ?? []).length > 0 || known.length < entries.length
  const refusal = needsOrganization ? await findRefusal(api, id) : undefined
  const hasMembers = (file.members ?? []).length > 0 && refusal === undefined
  const path = `/api/organizations/${id}`
  const members = hasMembers ? await api.list<Member>(`${path}/members?`) : []
  const invites =
    hasMembers && isAtLeast(role, 'admin') ? await api.list<Invite>(`${path}/invites?`) : []
  return {
    organization: { id, name },
    role,
    organizationRefusal: refusal,
    projects: known,
    members: members.map(member => ({
      id: member.person.id,
      email: member.person.email,
      role: member.role,
    })),
    invites: invites.flatMap(({ email, role: invited }) =>
      email === null ? [] : [{ email, role: invited }],
    ),
  }
}

type TokenOrganization = CurrentToken['organizations'][number]

function findOrganization(
  { organizations }: CurrentToken,
  wanted: string | undefined,
): TokenOrganization {
  if (wanted === undefined) {
    const [only] = organizations
    if (only && organizations.length === 1) return only
    throw new Error(
      organizations.length === 0
        ? 'The token reaches no organization.'
        : `The token reaches ${organizations.length} organizations. Name one of them in the file: organization: ${organizations[0]?.id}`,
    )
  }
  const found =
    organizations.find(({ id }) => id === wanted) ?? findOnly(organizations, wanted, 'organization')
  if (!found) {
    throw new Error(`The token reaches no organization ${JSON.stringify(wanted)}.`)
  }
  return found
}

/** Returns the item of that name, or undefined. Throws if there are several. */
export function findOnly<Item extends { name: string }>(
  items: readonly Item[],
  name: string,
  kind: string,
): Item | undefined {
  const found = items.filter(item => item.name === name)
  if (found.length > 1) {
    throw new Error(
      `${found.length} ${kind}s have the name ${JSON.stringify(name)}. Give each its own name first.`,
    )
  }
  return found[0]
}

async function readProject(
  api: ManagementApi,
  id: string,
  { channels = [], webhooks = [] }: ProjectEntry,
): Promise<ProjectState> {
  const path = `/api/projects/${id}`
  const { name, keepDays } = await api.request<Project>('GET', path)
  const needsViews = webhooks.some(({ view }) => view != null)
  const { items: views } = needsViews
    ? await api.request<Views>('GET', `${path}/views`)
    : { items: [] }
  const needsChannels = channels.length > 0 || webhooks.length > 0
  return {
    id,
    name,
    keepDays,
    channels: needsChannels ? await api.list<ChannelState>(`${path}/channels?archived=true`) : [],
    webhooks: webhooks.length > 0 ? await api.list<WebhookState>(`${path}/webhooks?`) : [],
    views: views.filter(({ isShared }) => isShared),
  }
}

/** Returns why the token cannot reach the organization itself: it may be limited to projects. */
async function findRefusal(api: ManagementApi, id: string): Promise<string | undefined> {
  try {
    await api.request('GET', `/api/organizations/${id}`)
    return undefined
  } catch (error) {
    if (error instanceof TidingsError && error.code === 'forbidden') return error.message
    throw error
  }
}
