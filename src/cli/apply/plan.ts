import { isDeepStrictEqual } from 'node:util'
import { ACTIONS, isAtLeast, type ActionOn, type Role } from '../../access/guard/permissions.ts'
import { parseEmail } from '../../base/config/values.ts'
import { takeStart, replaceDisruptive } from '../../base/display-text.ts'
import { toEmoji } from '../../log/channels/icon.ts'
import { toDisplayName, toSlug } from '../../log/channels/name.ts'
import type { ChannelEntry, MemberEntry, ProjectEntry, StateFile, WebhookEntry } from './file.ts'
import { findOnly, type ChannelState, type ProjectState, type State } from './state.ts'

/** One request that changes the server. */
export interface Step {
  change: 'create' | 'update' | 'invite'
  kind: 'project' | 'channel' | 'webhook' | 'member'
  /** The name of the object. The e-mail address of a member. */
  name: string
  /** The name of the project that it belongs to, or that it is. */
  project?: string
  /** The new value of each field in words, such as `keepDays none -> 30`. */
  details: readonly string[]
  request: {
    method: 'POST' | 'PATCH'
    /** `{project}` stands for the id of the step's project, which an earlier step may create. */
    path: string
    /** Its `channels` are ids, or for a channel that an earlier step creates, its slug. */
    body: object & { readonly channels?: readonly string[] | null | undefined }
  }
}

/** How the server becomes what a file says. */
export interface Plan {
  steps: readonly Step[]
  /** Sentences about changes that are not allowed. With any, nothing is applied. */
  refused: readonly string[]
}

type Action = ActionOn<'organization' | 'project'>

/** Collects the parts of a plan. */
interface Draft {
  steps: Step[]
  refused: string[]
  /** Adds the step if the token may do all of the actions. Notes the refusal otherwise. */
  add(step: Step, ...actions: Action[]): void
}

/**
 * Plans the steps from `state` to `file`. Objects and fields that the file does not name stay as
 * they are.
 */
export function toPlan(file: StateFile, state: State): Plan {
  const draft = startDraft(state)
  for (const entry of file.projects ?? []) planProject(draft, entry, state)
  // Members come last: a change of the own role ends what the other steps need.
  for (const entry of file.members ?? []) planMember(draft, entry, state)
  const { steps, refused } = draft
  return { steps, refused }
}

function startDraft({ role, organizationRefusal }: State): Draft {
  const draft: Draft = {
    steps: [],
    refused: [],
    add(step, ...actions) {
      const problems = actions.flatMap(action => {
        const { on, role: needed } = ACTIONS[action]
        if (!isAtLeast(role, needed)) {
          return [`It requires the ${needed} role. The token's role is ${role}.`]
        }
        return on === 'organization' && organizationRefusal !== undefined
          ? [organizationRefusal]
          : []
      })
      if (problems.length === 0) draft.steps.push(step)
      else draft.refused.push(`${describeStep(step)}. ${problems[0]}`)
    },
  }
  return draft
}

/** Returns the step in plain words: `create webhook Ops in Web shop: url https://…`. */
export function describeStep({ change, kind, name, project, details }: Step): string {
  const place = project !== undefined && kind !== 'project' ? ` in ${project}` : ''
  const verb = change === 'update' ? '' : `${change} `
  const rest = details.length > 0 ? `: ${details.join(', ')}` : ''
  return `${verb}${kind} ${name}${place}${rest}`
}

function planProject(draft: Draft, entry: ProjectEntry, state: State): void {
  const name = entry.name.trim()
  const found = findOnly(state.projects, name, 'project')
  const step = { kind: 'project', name, project: name } as const
  if (!found) {
    const path = `/api/organizations/${state.organization.id}/projects`
    const request = { method: 'POST', path, body: { name } } as const
    draft.add({ ...step, change: 'create', details: [], request }, 'projects.create')
  }
  const project: ProjectState = found ?? {
    id: '',
    name,
    keepDays: null,
    channels: [],
    webhooks: [],
    views: [],
  }
  const { keepDays } = entry
  if (keepDays !== undefined && keepDays !== project.keepDays) {
    const request = {
      method: 'PATCH',
      path: '/api/projects/{project}',
      body: { keepDays },
    } as const
    const details = [toDetail('keepDays', project.keepDays, keepDays)]
    draft.add({ ...step, change: 'update', details, request }, 'project.edit')
  }
  for (const channel of entry.channels ?? []) planChannel(draft, channel, project)
  const isListed = (slug: string) =>
    (entry.channels ?? []).some(channel => toSlug(channel.name) === slug)
  for (const webhook of entry.webhooks ?? []) {
    planWebhook(draft, webhook, { project, isListed, role: state.role })
  }
}

/** Finds a channel by its first name, as events do. */
function findChannel(channels: readonly ChannelState[], slug: string): ChannelState | undefined {
  return channels.find(channel => channel.slug === slug)
}

/** The settings of a channel that its first event creates. */
const NEW_CHANNEL = {
  ...{ icon: null, description: null, isArchived: false, keepDays: null },
  level: 'normal',
  escalation: null,
} as const

function planChannel(draft: Draft, entry: ChannelEntry, { name: project, channels }: ProjectState) {
  const found = findChannel(channels, toSlug(entry.name))
  const { icon, description, isArchived, keepDays, level, escalation } = entry
  const { body, details } = toChanges<Omit<ChannelState, 'id' | 'slug' | 'name'>>(
    found ?? NEW_CHANNEL,
    {
      ...(icon !== undefined && { icon: icon?.trim() ? (toEmoji(icon) ?? icon) : null }),
      // The server stores an empty description as null.
      ...(description !== undefined && { description: description || null }),
      ...(isArchived !== undefined && { isArchived }),
      ...(keepDays !== undefined && { keepDays }),
      ...(level !== undefined && { level }),
      ...(escalation !== undefined && { escalation }),
    },
  )
  if (found && details.length === 0) return
  const name = found?.name ?? toDisplayName(entry.name)
  const place = '/api/projects/{project}/channels'
  const step = { kind: 'channel', name, project, details } as const
  // Retention requires the role that changes it for the project.
  const more = 'keepDays' in body ? (['project.edit'] as const) : []
  if (found) {
    const request = { method: 'PATCH', path: `${place}/${found.id}`, body } as const
    draft.add({ ...step, change: 'update', request }, 'channels.edit', ...more)
  } else {
    const request = { method: 'POST', path: place, body: { name, ...body } } as const
    draft.add({ ...step, change: 'create', request }, 'channels.create', ...more)
  }
}

interface WebhookPlace {
  project: ProjectState
  /** Returns whether the file has a channel with this slug, which an earlier step creates. */
  isListed(slug: string): boolean
  /** The role of the token. */
  role: Role
}

function planWebhook(
  draft: Draft,
  entry: WebhookEntry,
  { project: { name: project, channels, webhooks, views }, isListed, role }: WebhookPlace,
): void {
  const name = entry.name.trim()
  const what = `webhook ${name} in ${project}`
  const filter = entry.channels?.map(channel => {
    const slug = toSlug(channel)
    const id = findChannel(channels, slug)?.id
    return { name: channel.trim(), id: id ?? (isListed(slug) ? slug : undefined) }
  })
  const missing = filter?.filter(({ id }) => id === undefined) ?? []
  if (missing.length > 0) {
    const names = missing.map(channel => channel.name).join(', ')
    draft.refused.push(
      `${what} names channels that do not exist: ${names}. Add them to the channels of the project.`,
    )
    return
  }
  const viewId = entry.view && findOnly(views, entry.view.trim(), 'view')?.id
  const variables = Object.entries(entry.headers ?? {})
  const unset = variables.map(one => one[1]).filter(variable => !process.env[variable])
  if (unset.length > 0 || (entry.view && !viewId)) {
    draft.refused.push(
      unset.length > 0
        ? `${what} needs environment variables that are not set: ${unset.join(', ')}.`
        : `${what} names a view that is not shared: ${entry.view}. Share it first.`,
    )
    return
  }
  const values = variables.map(([header, variable]) => [header, process.env[variable] ?? ''])
  const headers = entry.headers && (Object.fromEntries(values) as Record<string, string>)
  const listed = filter && [...new Set(filter.map(({ id }) => id ?? ''))]
  const ids = entry.channels === undefined ? undefined : (listed ?? null)
  const url = toHref(entry.url)
  const found = findOnly(webhooks, name, 'webhook')
  const step = { kind: 'webhook', name, project } as const
  const place = '/api/projects/{project}/webhooks'
  if (!found) {
    const { type, preset, body: own } = entry
    const body = { name, url, type, preset, channels: ids, body: own, headers, viewId }
    const request = { method: 'POST', path: place, body } as const
    const details = [`url ${toShownUrl(url)}`]
    draft.add({ ...step, change: 'create', details, request }, 'webhooks.create')
    return
  }
  if (found.url === null) {
    draft.refused.push(
      `${what}. Comparing it requires the admin role. The token's role is ${role}.`,
    )
    return
  }
  if (entry.type !== undefined && entry.type !== found.type) {
    draft.refused.push(
      `${what}. Its type is ${found.type}, and cannot be changed. Give the new webhook another name.`,
    )
    return
  }
  // Two channels can have the same name, but not the same first name.
  const toSlugs = (list: readonly string[] | null) =>
    list?.map(id => channels.find(channel => channel.id === id)?.slug ?? id).sort() ?? null
  const changes = toChanges(
    {
      ...{ url: found.url, preset: found.preset, channels: toSlugs(found.channels) },
      ...{ body: found.body, headers: found.headers.join(' + '), viewId: found.viewId },
    },
    {
      url,
      preset: entry.preset,
      channels: ids && toSlugs(ids),
      body: entry.body,
      // Values of headers cannot be read, so only their names are compared.
      headers: headers && Object.keys(headers).join(' + '),
      viewId,
    },
  )
  if (changes.details.length === 0) return
  const body = {
    ...changes.body,
    ...('channels' in changes.body && { channels: ids }),
    // Values for one server are not kept for another one.
    ...(('headers' in changes.body || 'url' in changes.body) && { headers }),
  }
  const request = { method: 'PATCH', path: `${place}/${found.id}`, body } as const
  draft.add({ ...step, change: 'update', details: changes.details, request }, 'webhooks.edit')
}

function planMember(draft: Draft, entry: MemberEntry, state: State): void {
  const email = parseEmail(entry.email) ?? entry.email
  const { role } = entry
  const path = `/api/organizations/${state.organization.id}`
  const step = { kind: 'member', name: email } as const
  const invite = {
    ...step,
    change: 'invite',
    details: [`role ${role}`],
    request: { method: 'POST', path: `${path}/invites`, body: { email, role } },
  } as const
  if (state.organizationRefusal !== undefined) {
    draft.refused.push(`member ${email}. ${state.organizationRefusal}`)
    return
  }
  const member = state.members.find(one => one.email === email)
  if (member) {
    if (member.role === role) return
    const request = {
      method: 'PATCH',
      path: `${path}/members/${member.id}`,
      body: { role },
    } as const
    const details = [toDetail('role', member.role, role)]
    draft.add({ ...step, change: 'update', details, request }, 'members.changeRole')
    return
  }
  const invites = state.invites.filter(one => one.email === email)
  if (invites.some(one => one.role === role)) return
  if (invites.length > 0) {
    draft.refused.push(
      `member ${email}. An open invite has the role ${invites[0]?.role}. Withdraw it first.`,
    )
  } else if (isAtLeast(state.role, 'admin') && !isAtLeast(state.role, role)) {
    draft.refused.push(
      `${describeStep(invite)}. It is above the role of the token, which is ${state.role}.`,
    )
  } else {
    draft.add(invite, 'invites.create')
  }
}

/** Returns the given fields of `wanted` that differ from `present`, as a body and in words. */
function toChanges<Fields extends object>(
  present: Readonly<Fields>,
  wanted: { readonly [Name in keyof Fields]?: Fields[Name] | undefined },
): { body: Partial<Fields>; details: string[] } {
  const names = (Object.keys(wanted) as (keyof Fields & string)[]).filter(
    name => wanted[name] !== undefined && !isDeepStrictEqual(wanted[name], present[name]),
  )
  const body: Partial<Fields> = {}
  for (const name of names) body[name] = wanted[name]
  return { body, details: names.map(name => toDetail(name, present[name], wanted[name])) }
}

function toDetail(field: string, from: unknown, to: unknown): string {
  // Without a filter, a webhook receives the events of all channels.
  if (field === 'channels') return `${field} ${toShown(from ?? 'all')} -> ${toShown(to ?? 'all')}`
  // It can have keys of the receiver.
  if (field === 'body') return to === null ? 'body of the preset' : 'another body'
  if (field !== 'url') return `${field} ${toShown(from)} -> ${toShown(to)}`
  const [before, after] = [toShownUrl(String(from)), toShownUrl(String(to))]
  return before === after ? `url ${before} -> another path` : `url ${before} -> ${after}`
}

/** Returns the stored form of a URL. Text that is no URL is for the server to refuse. */
function toHref(text: string): string {
  if (!URL.canParse(text)) return text
  const url = new URL(text)
  url.hash = ''
  return url.href
}

/** Hides path and query, which are a secret with Slack, Discord and Telegram. */
function toShownUrl(href: string): string {
  if (!URL.canParse(href)) return toShown(href)
  const { origin, pathname, search } = new URL(href)
  return pathname === '/' && search === '' ? origin : `${origin}/…`
}

const MAX_SHOWN = 60

/** Returns a value for display in one line. */
function toShown(value: unknown): string {
  if (value === null || value === undefined) return 'none'
  if (Array.isArray(value)) return value.length === 0 ? 'no channel' : value.join(' + ')
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'object') return JSON.stringify(value)
  const text = replaceDisruptive(String(value), ' ')
  const short = text.length > MAX_SHOWN ? `${takeStart(text, MAX_SHOWN)}…` : text
  return /\s/.test(short) ? `"${short}"` : short
}
