/** The state of push notifications in a browser. */
export type PushState = 'unsupported' | 'insecure' | 'needs install' | 'blocked' | 'off' | 'on'

/** The capabilities and permissions of a browser. */
export interface Browser {
  /** True over HTTPS, or on the server's own machine. */
  isSecure: boolean
  canPush: boolean
  isIos: boolean
  isInstalled: boolean
  permission: NotificationPermission
  isSubscribed: boolean
}

/** The state of a browser; `isOn` is the server's setting, undefined for an unknown device. */
export function toPushState(browser: Browser, isOn: boolean | undefined): PushState {
  if (!browser.isSecure) return 'insecure'
  // iOS supports push only in installed apps.
  if (!browser.canPush)
    return browser.isIos && !browser.isInstalled ? 'needs install' : 'unsupported'
  if (browser.permission === 'denied') return 'blocked'
  return browser.permission === 'granted' && browser.isSubscribed && isOn === true ? 'on' : 'off'
}

/** Returns whether this is an iPhone or iPad. iPads identify themselves as Macs. */
export function isIos(userAgent: string, touchPoints: number): boolean {
  return /iPhone|iPad|iPod/.test(userAgent) || (/Macintosh/.test(userAgent) && touchPoints > 1)
}

/** The account that turned on push in this browser, and the device ID on the server. */
export interface Registration {
  account: string
  device: string
}

/**
 * The action on page load: `unsubscribe` if another account turned on push in this browser,
 * `register` if the server should receive the subscription again.
 */
export function toSyncAction(
  { permission, isSubscribed }: Pick<Browser, 'permission' | 'isSubscribed'>,
  known: Registration | undefined,
  account: string,
): 'nothing' | 'unsubscribe' | 'register' {
  if (known && known.account !== account) return isSubscribed ? 'unsubscribe' : 'nothing'
  return permission === 'granted' && (isSubscribed || known) ? 'register' : 'nothing'
}

/** Parses the stored form `account device`. */
export function parseRegistration(text: string | undefined): Registration | undefined {
  const [account = '', device = ''] = text?.split(' ') ?? []
  return device === '' ? undefined : { account, device }
}
