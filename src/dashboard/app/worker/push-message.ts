/** What a notification says, and where it leads. */
export interface NotificationContent {
  title: string
  body: string
  tag: string | undefined
  /** A path of ours. */
  path: string
}

/**
 * What to show of a push: of anything at all something, because browsers take the permission away from who shows nothing.
 * `read` takes the JSON out of it, and may throw.
 */
export function parsePush(read: () => unknown, origin: string): NotificationContent {
  const { title: told, body, tag, navigate } = readNotification(read)
  const title = toText(told)
  return {
    title: title || 'Tidings',
    body: toText(body) || (title ? '' : 'Something has happened. Open Tidings to see it.'),
    tag: toText(tag) || undefined,
    path: toPath(toText(navigate), origin),
  }
}

/** The path that a URL of this server has under `origin`, which may be another of its names; the start for what has none. */
export function toPath(navigate: string, origin: string): string {
  if (!URL.canParse(navigate, origin)) return '/'
  const { pathname, search } = new URL(navigate, origin)
  // A path can begin as the address of another server.
  return /^\/(?!\/)/.test(pathname) ? pathname + search : '/'
}

function readNotification(read: () => unknown): Record<string, unknown> {
  try {
    // Declarative Web Push, as browsers that know it read it.
    const { notification } = read() as { notification?: unknown }
    return typeof notification === 'object' && notification !== null ? { ...notification } : {}
  } catch {
    return {}
  }
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
