import { SIGN_IN_PATH } from './early-requests.ts'

/** Every path of the application. The server returns the same page for all of them. */
export const PATHS = {
  home: '/',
  setup: '/setup',
  signIn: SIGN_IN_PATH,
  invite: '/invite',
  reset: '/reset',
  feed: '/p/:project',
  start: '/p/:project/start',
  event: '/p/:project/e/:event',
  /** An event link without its project, as notifications contain it. */
  eventLink: '/e/:event',
  open: '/p/:project/open',
  users: '/p/:project/users',
  user: '/p/:project/users/:user',
  channels: '/p/:project/channels',
  channel: '/p/:project/channels/:channel',
  insights: '/p/:project/insights',
  heartbeats: '/p/:project/settings/heartbeats',
  hooks: '/p/:project/settings/hooks',
  keys: '/p/:project/settings/keys',
  rules: '/p/:project/settings/rules',
  silences: '/p/:project/settings/silences',
  webhooks: '/p/:project/settings/webhooks',
  webhook: '/p/:project/settings/webhooks/:webhook',
  /** All projects of the account. */
  overview: '/overview',
  notifications: '/notifications',
  account: '/account',
  organization: '/settings/organizations/:organization',
  /** A tab of the organization, other than the first. */
  organizationTab: '/settings/organizations/:organization/:tab',
  server: '/settings/server',
} as const

/** The tabs of an organization. */
export const ORGANIZATION_TABS = ['general', 'members', 'security', 'tokens', 'audit'] as const
export type OrganizationTab = (typeof ORGANIZATION_TABS)[number]

const PLAIN = '[^/?#%\\\\]'

/** Matches URLs of the application's own pages. */
export const APP_PATH = new RegExp(
  `^(?:${Object.values(PATHS)
    .map(path =>
      path.replace(/:user/g, `(?:${PLAIN}|%[\\da-fA-F]{2})+`).replace(/:\w+/g, `${PLAIN}+`),
    )
    .join('|')})(?:[?#]|$)`,
)

/** The path of a project's feed, or of one channel in it. */
export function toFeedPath(project: string, channel?: string): string {
  const path = PATHS.feed.replace(':project', encodeURIComponent(project))
  return channel === undefined ? path : `${path}?channel=${encodeURIComponent(channel)}`
}

/** The path of an event among all events of its project. */
export function toEventPath(project: string, event: string): string {
  return `${toFeedPath(project)}/e/${encodeURIComponent(event)}`
}

/** The path of a user's page; undefined if the user_id cannot be a path segment. */
export function toUserPath(project: string, userId: string): string | undefined {
  return isSafeSegment(userId)
    ? `${toProjectPath('users', project)}/${encodeURIComponent(userId)}`
    : undefined
}

/**
 * Returns whether untrusted text can be a path segment. Browsers resolve `.` and `..` even when
 * they are escaped, so a request with them would reach the parent, such as the project.
 */
export function isSafeSegment(text: string): boolean {
  return text !== '' && text !== '.' && text !== '..'
}

/** The path of a page of a project. */
export function toProjectPath(
  place:
    | 'open'
    | 'users'
    | 'channels'
    | 'insights'
    | 'heartbeats'
    | 'hooks'
    | 'keys'
    | 'rules'
    | 'silences'
    | 'webhooks'
    | 'start',
  project: string,
) {
  return PATHS[place].replace(':project', encodeURIComponent(project))
}

export function toChannelPath(project: string, channel: string): string {
  return `${toProjectPath('channels', project)}/${encodeURIComponent(channel)}`
}

export function toWebhookPath(project: string, webhook: string): string {
  return `${toProjectPath('webhooks', project)}/${encodeURIComponent(webhook)}`
}

/** The path of an organization, or of one of its tabs. */
export function toOrganizationPath(organization: string, tab?: OrganizationTab): string {
  const path = PATHS.organization.replace(':organization', encodeURIComponent(organization))
  return tab === undefined || tab === 'general' ? path : `${path}/${tab}`
}

/** The path of the sign-in page, which redirects to `next` afterwards. */
export function toSignInPath(next: string): string {
  return next === PATHS.home ? PATHS.signIn : `${PATHS.signIn}?next=${encodeURIComponent(next)}`
}

/** The path to open after signing in: `wanted` if it is a page of the application, else home. */
export function toSafeNext(wanted: string | undefined): string {
  return wanted !== undefined &&
    APP_PATH.test(wanted) &&
    isDecodable(wanted) &&
    !wanted.startsWith(PATHS.signIn)
    ? wanted
    : PATHS.home
}

/** Returns whether a path has only valid escapes. The router throws on others. */
export function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path.replace(/[?#].*$/s, ''))
    return true
  } catch {
    return false
  }
}
