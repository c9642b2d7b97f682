import type { Device, TestPage } from '../support/clients/chromium.ts'
import { PROJECT, type FakeApi } from '../support/fakes/api.ts'
import { listDeliveries } from '../support/fakes/deliveries.ts'
import { offerProviders } from '../support/fakes/openid.ts'
import {
  fakeBrowser,
  fakePush,
  LAPTOP,
  PHONE,
  PUSH_KEY,
  TABLET,
  type FakeBrowser,
} from '../support/fakes/push.ts'
import {
  fillAlarms,
  fillRush,
  fillShop,
  fillThreads,
  fillUsers,
  noUsers,
  REFUND,
} from '../support/fakes/shop.ts'
import type { Dashboard } from '../support/worlds/dashboard.ts'
import { SETTINGS_SCREENS } from './screens-settings.ts'

export interface Screen {
  name: string
  path: string
  isSignedIn?: boolean
  prepare?(api: FakeApi): void
  /** The push state of the browser, in place of its own. */
  fake?: FakeBrowser
  /** The text that shows that the screen is complete. */
  until: string
  /** Actions before the screen is checked. */
  act?(page: TestPage['page']): Promise<void>
}

const TOMORROW = new Date(Date.now() + 86_400_000).toISOString()
/** Answers about a channel like at the end of a day. */
function fillChannel(api: FakeApi): void {
  fillShop(api)
  const route = 'GET /api/projects/:id/channels/:channel'
  const read = api.handler(route)
  api.on(route, (body, url) => {
    const { data } = read(body, url) as { data: object }
    const description = 'Money that comes in and goes out, from the shop and from invoices.'
    return { data: { ...data, icon: '💰', description } }
  })
}

function mute(api: FakeApi): void {
  for (const channel of ['chn_payments', 'chn_growth']) {
    const url = new URL(`http://x/api/projects/${PROJECT}/channels/${channel}/notifications`)
    const wish = { state: 'mute', muteUntil: channel === 'chn_growth' ? TOMORROW : null }
    api.handler('PUT /api/projects/:id/channels/:channel/notifications')(wish, url)
  }
}

/** Every screen in its main states. One screen shows as many forms as fit on it. */
export const SCREENS: Screen[] = [
  {
    name: 'setup',
    path: '/setup#secret',
    isSignedIn: false,
    prepare: api => api.on('GET /api/setup', () => ({ data: {} })),
    until: 'text=Create account',
  },
  {
    name: 'sign-in',
    path: '/sign-in',
    isSignedIn: false,
    prepare: api =>
      api.on('POST /api/session', () => ({
        status: 429,
        message: 'Too many attempts, try again in 40 s',
        retryAfter: 40,
      })),
    until: 'text=Forgot your password?',
    act: async page => {
      await page.getByLabel('E-mail').fill('ada@example.com')
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      await page.getByText('Too many attempts').waitFor()
    },
  },
  {
    name: 'sign-in-providers',
    path: '/sign-in?provider=keycloak&problem=unavailable',
    isSignedIn: false,
    prepare: api => offerProviders(api, { proxyEmail: 'ada@example.com' }),
    until: 'text=Continue with Analytical Engines',
  },
  {
    name: 'invite',
    path: '/invite#secret',
    isSignedIn: false,
    prepare: api =>
      api.on('POST /api/invites/look', () => ({
        data: {
          organization: { name: 'Analytical Engines' },
          role: 'member',
          invitedBy: { name: 'Ada Lovelace' },
          email: null,
          expiresAt: '2026-11-27T00:00:00Z',
        },
      })),
    until: 'text=Create account and join',
  },
  { name: 'reset', path: '/reset#secret', isSignedIn: false, until: 'text=Set password' },
  { name: 'feed-empty', path: `/p/${PROJECT}`, until: 'text=No events yet' },
  {
    name: 'feed-broken',
    path: `/p/${PROJECT}`,
    prepare: api =>
      api.on('GET /api/projects/:id/events', () => ({
        status: 503,
        code: 'unavailable',
        error: 'The database cannot be reached. Try again shortly.',
      })),
    until: 'text=Retry',
  },
  {
    name: 'feed',
    path: `/p/${PROJECT}`,
    prepare: fillShop,
    until: 'text=Live',
    act: async page => {
      await page.keyboard.press('Space')
      await page.getByText('Paused').waitFor()
      await page.getByRole('button', { name: 'Account' }).click()
    },
  },
  {
    name: 'feed-threads',
    path: `/p/${PROJECT}`,
    prepare: fillThreads,
    until: 'text=Live',
  },
  {
    name: 'feed-collapsed',
    path: `/p/${PROJECT}`,
    prepare: fillRush,
    until: 'text=×28',
    act: async page => {
      await page.getByRole('button', { name: 'Order placed 28 events' }).click()
      await page.locator('.inside').first().waitFor()
    },
  },
  {
    name: 'search',
    path: `/p/${PROJECT}?q=channel%3Apayments+-tag%3Atest+%22new+payment%22&from=7d`,
    prepare: fillShop,
    until: '.chip',
    act: async page => {
      await page.locator('#search').press('End')
      await page.keyboard.type(' ta')
      await page.getByRole('option').first().waitFor()
      await page.keyboard.press('ArrowDown')
    },
  },
  { name: 'search-unclear', path: `/p/${PROJECT}?q=has%3Aall+tide`, until: '#search-issue' },
  {
    name: 'event',
    path: `/p/${PROJECT}/e/evt_7`,
    prepare: api => {
      fillShop(api)
      api.on('GET /api/projects/:id/events/:event', () => ({ data: REFUND }))
      api.on('GET /api/projects/:id/events/:event/deliveries', () => ({
        data: { items: listDeliveries(), nextCursor: 'more', isDispatched: true },
      }))
    },
    until: 'text=Given up',
    act: async page => {
      await page.locator('summary', { hasText: 'number' }).click()
      await page.getByRole('link', { name: 'Filter' }).first().waitFor()
      // A push service forwards a message later.
      await page.getByText('Accepted', { exact: true }).waitFor()
      await page.getByText('after 380').first().waitFor()
      await page.getByText('Deliveries').scrollIntoViewIfNeeded()
    },
  },
  {
    name: 'event-thread',
    path: `/p/${PROJECT}/e/evt_13`,
    prepare: fillThreads,
    until: 'text=Resolved after 12m',
  },
  {
    name: 'event-alarm',
    path: `/p/${PROJECT}/e/evt_15`,
    prepare: fillAlarms,
    until: 'text=Acknowledge',
    act: async page => {
      await page.getByRole('button', { name: 'Silence…' }).click()
      await page.getByLabel('Why').waitFor()
    },
  },
  { name: 'event-missing', path: `/p/${PROJECT}/e/evt_99`, until: 'text=Event not found' },
  { name: 'open', path: `/p/${PROJECT}/open`, prepare: fillAlarms, until: 'text=Silenced by' },
  {
    name: 'open-silence',
    path: `/p/${PROJECT}/open`,
    prepare: fillAlarms,
    until: 'text=Silenced by Ada Lovelace',
    act: async page => {
      await page.getByRole('button', { name: 'Change who is on duty' }).click()
      await page.getByRole('button', { name: 'Silence…' }).first().click()
      await page.getByLabel('Why').waitFor()
    },
  },
  { name: 'open-none', path: `/p/${PROJECT}/open`, until: 'text=Nothing is open' },
  { name: 'users', path: `/p/${PROJECT}/users`, prepare: fillUsers, until: 'text=plan: pro' },
  {
    name: 'user',
    path: `/p/${PROJECT}/users/user_123`,
    prepare: fillUsers,
    until: 'article',
    act: async page => {
      await page.getByText('History').click()
      await page.getByText('No changes yet').waitFor()
    },
  },
  {
    name: 'users-none',
    path: `/p/${PROJECT}/users`,
    prepare: noUsers,
    until: 'text=No users yet',
  },
  {
    name: 'start',
    path: `/p/${PROJECT}/start`,
    until: 'text=Create a key',
    act: async page => {
      await page.getByRole('button', { name: 'Create a key' }).click()
      await page.getByText('tdg_example').waitFor()
    },
  },
  {
    name: 'confirm',
    path: `/p/${PROJECT}/start`,
    prepare: api =>
      api.on('POST /api/projects/:id/keys', () => ({
        status: 403,
        code: 'verification_needed',
        error: 'Confirm that it is you',
      })),
    until: 'text=Create a key',
    act: async page => {
      await page.getByRole('button', { name: 'Create a key' }).click()
      await page.getByRole('dialog').waitFor()
    },
  },
  { name: 'missing', path: '/p/prj_none', until: 'text=not found' },
  {
    name: 'channels',
    path: `/p/${PROJECT}/channels`,
    prepare: api => {
      fillShop(api)
      mute(api)
    },
    until: '.items li',
    act: page => page.locator('.items .bell[aria-pressed=false]').first().waitFor(),
  },
  { name: 'channels-none', path: `/p/${PROJECT}/channels`, until: 'text=No channels yet' },
  {
    name: 'channel',
    path: `/p/${PROJECT}/channels/chn_payments`,
    prepare: fillChannel,
    until: 'text=Archive this channel',
    act: async page => {
      await page.getByRole('combobox', { name: 'My notifications' }).selectOption('pick')
      await page.getByLabel('Until', { exact: true }).waitFor()
      await page.getByRole('button', { name: 'Change who is told' }).click()
      await page.getByLabel('Tell first').waitFor()
      await page.getByRole('button', { name: 'Change', exact: true }).click()
      await page.getByLabel('Days').waitFor()
      await page.getByRole('button', { name: 'Edit' }).click()
      await page.getByLabel('Description').waitFor()
    },
  },
  {
    name: 'channel-missing',
    path: `/p/${PROJECT}/channels/chn_none`,
    until: 'text=Channel not found',
  },
  {
    name: 'palette',
    path: `/p/${PROJECT}?channel=chn_payments`,
    prepare: fillShop,
    until: 'text=Refund requested',
    act: async page => {
      await page.keyboard.press('Control+k')
      await page.getByRole('option', { name: 'payments Channel' }).waitFor()
    },
  },
  {
    name: 'keyboard',
    path: `/p/${PROJECT}`,
    prepare: fillShop,
    until: 'text=Refund requested',
    act: async page => {
      await page.keyboard.press('?')
      await page.getByRole('dialog').waitFor()
    },
  },
  {
    name: 'notifications-on',
    path: '/notifications',
    fake: { permission: 'granted', subscribedFor: PUSH_KEY },
    prepare: api => fakePush(api, [LAPTOP, PHONE, TABLET]),
    until: 'text=On in this browser',
    act: async page => {
      await page.getByRole('button', { name: 'Change' }).click()
      await page.getByRole('button', { name: 'Send a test' }).first().click()
      await page.getByRole('button', { name: 'Subscribe again' }).waitFor()
    },
  },
  {
    name: 'notifications-off-refused',
    path: '/notifications',
    fake: { says: 'granted', refusal: 'Registration failed - push service error' },
    prepare: api => fakePush(api, []),
    until: 'text=Off in this browser',
    act: async page => {
      await page.getByRole('button', { name: 'Turn on' }).click()
      await page.getByText('could not subscribe').waitFor()
    },
  },
  {
    name: 'notifications-blocked',
    path: '/notifications',
    fake: { permission: 'denied' },
    prepare: api => fakePush(api, [PHONE]),
    until: 'text=blocks notifications',
  },
  {
    name: 'notifications-insecure',
    path: '/notifications',
    fake: { isSecure: false },
    prepare: api => fakePush(api, [], 'http://192.168.1.10:3000'),
    until: 'text=HTTPS required',
  },
  {
    name: 'notifications-ios',
    path: '/notifications',
    fake: {
      canPush: false,
      userAgent: 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_4 like Mac OS X) AppleWebKit/605.1.15',
    },
    prepare: api => fakePush(api, []),
    until: 'text=Add to Home Screen',
  },
  ...SETTINGS_SCREENS,
]

/** One screen of each page: that with the shortest name. Searches are a page of their own. */
export const PAGES = [
  ...Map.groupBy(SCREENS, ({ path }) =>
    path.replace(/(?<=evt|chn|whk)_\w+$|\?(?!q=).*|(?<=\?q=).*/, ''),
  ).values(),
].map(([first, ...others]) =>
  others.reduce((best, one) => (one.name.length < best.name.length ? one : best), first!),
)

interface ShowOptions extends Partial<Pick<FakeApi, 'change' | 'hold'>> {
  device?: Device
  hasClock?: boolean
}

/** Opens a screen, on a phone by default. `change` and `hold` are those of the fake server. */
export async function openScreen(
  dashboard: Dashboard,
  { path, isSignedIn = true, fake, prepare }: Screen,
  { device = 'phone', hasClock = false, ...more }: ShowOptions = {},
) {
  const opened = await dashboard.openFaked({
    ...{ isPhone: true, isSignedIn, hasClock, isNew: fake !== undefined },
    prepare: async (api, context) => {
      if (fake) await fakeBrowser(context, fake)
      // The reader was in this project before, so pages of no project lead to it.
      await context.addInitScript(id => localStorage.setItem('tidings.project', id), PROJECT)
      prepare?.(api)
      Object.assign(api, more)
    },
  })
  await opened.become(device)
  await opened.page.goto(dashboard.url + path)
  return opened
}

/** Runs in the page: lists the texts and corners whose size is none of the six and three. */
export function listSizeFaults(): string[] {
  const sizes = ['0px', '12px', '13px', '14px', '16px', '20px', '28px']
  const radii = ['0px', '6px', '10px', '14px', '99px']
  const faults = new Set<string>()
  for (const one of document.querySelectorAll('body, body *')) {
    if (!one.checkVisibility()) continue
    const name = `${one.localName}.${one.getAttribute('class')}`
    const isText = [...one.childNodes].some(node => node instanceof Text && node.data.trim() !== '')
    for (const part of ['', '::before', '::after']) {
      const { fontSize, borderTopLeftRadius: radius, content } = getComputedStyle(one, part)
      const isWritten = part === '' ? isText : /\w/.test(content) && content !== 'none'
      if (isWritten && !sizes.includes(fontSize)) faults.add(`${name}${part}: text of ${fontSize}`)
      if (!radii.includes(radius)) faults.add(`${name}${part}: corners of ${radius}`)
    }
  }
  return [...faults]
}
