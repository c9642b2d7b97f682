/** Every path of the application: the server answers each with the same page, and the router tells them apart. */
export const PATHS = {
  home: '/',
  setup: '/setup',
  signIn: '/sign-in',
  invite: '/invite',
  reset: '/reset',
  feed: '/p/:project',
  start: '/p/:project/start',
  event: '/p/:project/e/:event',
  /** An event whose project the link does not say. */
  eventLink: '/e/:event',
  users: '/p/:project/users',
  user: '/p/:project/users/:user',
  channels: '/p/:project/channels',
  channel: '/p/:project/channels/:channel',
  keys: '/p/:project/keys',
  webhooks: '/p/:project/webhooks',
  webhook: '/p/:project/webhooks/:webhook',
  notifications: '/notifications',
  account: '/account',
  organization: '/organizations/:organization',
  server: '/server',
} as const

const PLAIN = '[^/?#%\\\\]'

/** What leads to a page of the application, and nowhere else. */
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

export function toUsersPath(project: string): string {
  return toProjectPath('users', project)
}

/** The path of a user's page; undefined for a user_id that no path can have. */
export function toUserPath(project: string, userId: string): string | undefined {
  return isSafeSegment(userId) ? `${toUsersPath(project)}/${encodeURIComponent(userId)}` : undefined
}

/**
 * Whether a text of somebody else can be a part of a path. Browsers take `.` and `..` for directions however they are
 * escaped: with them a request would reach what is above, like the project.
 */
export function isSafeSegment(text: string): boolean {
  return text !== '' && text !== '.' && text !== '..'
}

/** The path of one of a project's own pages. */
export function toProjectPath(place: 'users' | 'channels' | 'keys' | 'webhooks', project: string) {
  return PATHS[place].replace(':project', encodeURIComponent(project))
}

export function toChannelPath(project: string, channel: string): string {
  return `${toProjectPath('channels', project)}/${encodeURIComponent(channel)}`
}

export function toWebhookPath(project: string, webhook: string): string {
  return `${toProjectPath('webhooks', project)}/${encodeURIComponent(webhook)}`
}

export function toOrganizationPath(organization: string): string {
  return PATHS.organization.replace(':organization', encodeURIComponent(organization))
}

export function toStartPath(project: string): string {
  return PATHS.start.replace(':project', encodeURIComponent(project))
}

/** The path to sign in at, from which the way leads on to `next`. */
export function toSignInPath(next: string): string {
  return next === PATHS.home ? PATHS.signIn : `${PATHS.signIn}?next=${encodeURIComponent(next)}`
}

/** Where somebody who has signed in goes; what a link says is believed only when it is one of our own pages. */
export function toSafeNext(wanted: string | undefined): string {
  return wanted !== undefined &&
    APP_PATH.test(wanted) &&
    isDecodable(wanted) &&
    !wanted.startsWith(PATHS.signIn)
    ? wanted
    : PATHS.home
}

/** Whether the router can take a path apart: it trips over an escape that is none. */
export function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path.replace(/[?#].*$/s, ''))
    return true
  } catch {
    return false
  }
}
