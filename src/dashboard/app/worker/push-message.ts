/** The button that opens the event of a notification whose click leads elsewhere. */
export const EVENT_ACTION = 'event'

/** The content of a notification, and what it opens. */
export interface NotificationContent {
  title: string
  body: string
  tag: string
  /** The path of its event on this server. */
  path: string
  /** The ID of the channel. Undefined in a test. */
  channel: string | undefined
  /** The project, and the threadSeq or the seq of its event: `prj_… 42`. */
  about: string | undefined
  /** The path that acknowledges it, if somebody should. */
  acknowledge: string | undefined
  /** The path that answers its question, and the answers that have a button. */
  answer: string | undefined
  answers: readonly { id: string; label: string }[]
  /** The URL that a click opens in place of `path`, which a button then opens. */
  url: string | undefined
  /** True if it stays until somebody reacts. */
  requireInteraction: boolean
  /**
   * The seq of its event, if it replaces notifications of its tag; else NaN. It never replaces one
   * with a higher seq.
   */
  seq: number
  /** The tags of notifications that it closes. */
  close: readonly string[]
  /** The number on the icon of the installed app; NaN if it stays. */
  appBadge: number
  silent: boolean
  /** True if it makes a sound again when it replaces one of its tag. */
  renotify: boolean
}

/**
 * Parses a push message; `read` returns its JSON and may throw. Invalid messages give a generic
 * notification, because browsers revoke the permission if a push shows nothing.
 */
export function parsePush(read: () => unknown, origin: string): NotificationContent {
  const {
    title: rawTitle,
    body,
    tag,
    navigate,
    data,
    actions,
    requireInteraction,
    silent,
    renotify,
    app_badge,
  } = readNotification(read)
  const title = toText(rawTitle)
  const { channel, about, acknowledge, answer, answers, seq, close } = (data ?? {}) as Record<
    string,
    unknown
  >
  const buttons = (Array.isArray(actions) ? actions : []) as (Record<string, unknown> | null)[]
  const eventUrl = toText(buttons.find(one => one?.action === EVENT_ACTION)?.navigate)
  return {
    title: title || 'Tidings',
    body: toText(body) || (title ? '' : 'There is a new event. Open Tidings to see it.'),
    tag: toText(tag),
    path: toPath(eventUrl || toText(navigate), origin),
    channel: toText(channel) || undefined,
    about: toText(about) || undefined,
    acknowledge: acknowledge === undefined ? undefined : toPath(toText(acknowledge), origin),
    answer: answer === undefined ? undefined : toPath(toText(answer), origin),
    answers: Array.isArray(answers)
      ? answers.map(one => ({ id: toText(one?.id), label: toText(one?.label) }))
      : [],
    url: eventUrl && /^https?:/i.test(toText(navigate)) ? toText(navigate) : undefined,
    requireInteraction: requireInteraction === true,
    seq: Number(seq),
    close: Array.isArray(close) ? close.map(toText).filter(Boolean) : [],
    appBadge: Number(app_badge),
    silent: silent === true,
    // Browsers refuse it without a tag.
    renotify: renotify === true && toText(tag) !== '',
  }
}

/** The path of a notification's URL on this server. Other or invalid URLs give `/`. */
export function toPath(navigate: string, origin: string): string {
  if (!URL.canParse(navigate, origin)) return '/'
  const { pathname, search } = new URL(navigate, origin)
  // A path that starts with `//` would name another host.
  return /^\/(?!\/)/.test(pathname) ? pathname + search : '/'
}

function readNotification(read: () => unknown): Record<string, unknown> {
  try {
    // The format of Declarative Web Push.
    const { notification } = read() as { notification?: unknown }
    return typeof notification === 'object' && notification !== null ? { ...notification } : {}
  } catch {
    return {}
  }
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
