/** How push stands in a browser. */
export type PushState = 'unsupported' | 'insecure' | 'needs install' | 'blocked' | 'off' | 'on'

/** What is known of the browser. */
export interface Browser {
  /** Whether the page came over https, or from the same machine. */
  isSecure: boolean
  canPush: boolean
  isIos: boolean
  isInstalled: boolean
  permission: NotificationPermission
  isSubscribed: boolean
}

/** The state of a browser; `isOn` is what the server has it as, undefined where it knows nothing of it. */
export function toPushState(browser: Browser, isOn: boolean | undefined): PushState {
  if (!browser.isSecure) return 'insecure'
  // iOS has push for installed apps alone.
  if (!browser.canPush)
    return browser.isIos && !browser.isInstalled ? 'needs install' : 'unsupported'
  if (browser.permission === 'denied') return 'blocked'
  return browser.permission === 'granted' && browser.isSubscribed && isOn === true ? 'on' : 'off'
}

/** Whether it is a phone or tablet of Apple's; their tablets say that they are Macs. */
export function isIos(userAgent: string, touchPoints: number): boolean {
  return /iPhone|iPad|iPod/.test(userAgent) || (/Macintosh/.test(userAgent) && touchPoints > 1)
}

/** Who has turned it on in this browser, and under which id the server knew it then. */
export interface Registration {
  account: string
  device: string
}

/**
 * What a page that loads has to do for `person`: nothing; give up what somebody else has turned on here; or tell the
 * server again, also where the browser has lost its subscription.
 */
export function toSyncAction(
  { permission, isSubscribed }: Pick<Browser, 'permission' | 'isSubscribed'>,
  told: Registration | undefined,
  person: string,
): 'nothing' | 'give up' | 'tell' {
  if (told && told.account !== person) return isSubscribed ? 'give up' : 'nothing'
  return permission === 'granted' && (isSubscribed || told) ? 'tell' : 'nothing'
}

/** What a browser has kept as `person device`. */
export function parseRegistration(text: string | undefined): Registration | undefined {
  const [account = '', device = ''] = text?.split(' ') ?? []
  return device === '' ? undefined : { account, device }
}
