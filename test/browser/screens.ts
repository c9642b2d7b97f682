import type { TestPage } from '../support/clients/chromium.ts'
import { PROJECT, type FakeApi } from '../support/fakes/api.ts'
import { offerProviders } from '../support/fakes/openid.ts'
import type { FakeBrowser } from '../support/fakes/push.ts'
import { fillRush, fillShop, fillUsers, noUsers, REFUND } from '../support/fakes/shop.ts'
import { NOTIFICATION_SCREENS } from './screens-notifications.ts'
import { CHANNEL_SCREENS } from './screens-channels.ts'
import { ORGANIZATION_SCREENS } from './screens-organization.ts'
import { WEBHOOK_SCREENS } from './screens-webhooks.ts'
import { INSIGHT_SCREENS } from './screens-insights.ts'

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

/** Every screen in each of its states. */
export const SCREENS: Screen[] = [
  {
    name: 'setup',
    path: '/setup#secret',
    isSignedIn: false,
    prepare: api => api.on('GET /api/setup', () => ({ data: {} })),
    until: 'text=Create account',
  },
  { name: 'sign-in', path: '/sign-in', isSignedIn: false, until: 'text=Forgot your password?' },
  {
    name: 'sign-in-refused',
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
    name: 'sign-in-passwords-off',
    path: '/sign-in',
    isSignedIn: false,
    prepare: api => offerProviders(api, { hasPasswords: false }),
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
    until: 'text=Backup finished',
    act: page => page.getByText('Live', { exact: true }).waitFor(),
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
  },
  { name: 'search-unclear', path: `/p/${PROJECT}?q=has%3Aall`, until: '#search-issue' },
  {
    name: 'search-suggestions',
    path: `/p/${PROJECT}`,
    prepare: fillShop,
    until: 'text=Backup finished',
    act: async page => {
      await page.locator('#search').focus()
      await page.getByRole('option').first().waitFor()
      await page.keyboard.press('ArrowDown')
    },
  },
  {
    name: 'search-nothing',
    path: `/p/${PROJECT}?q=tide`,
    prepare: fillShop,
    until: 'text=Clear search',
  },
  {
    name: 'event',
    path: `/p/${PROJECT}/e/evt_7`,
    prepare: api => {
      fillShop(api)
      api.on('GET /api/projects/:id/events/:event', () => ({ data: REFUND }))
    },
    until: 'text=Copy curl',
  },
  { name: 'event-missing', path: `/p/${PROJECT}/e/evt_99`, until: 'text=Event not found' },
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
    name: 'feed-paused',
    path: `/p/${PROJECT}`,
    prepare: fillShop,
    until: 'text=Live',
    act: async page => {
      await page.keyboard.press('Space')
      await page.getByText('Paused').waitFor()
    },
  },
  {
    name: 'menu',
    path: `/p/${PROJECT}`,
    prepare: fillShop,
    until: 'text=Live',
    act: page => page.getByRole('button', { name: 'Account' }).click(),
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
  ...NOTIFICATION_SCREENS,
  ...CHANNEL_SCREENS,
  ...ORGANIZATION_SCREENS,
  ...WEBHOOK_SCREENS,
  ...INSIGHT_SCREENS,
]

/** One screen of each page and search: that with the shortest name. */
export const PAGES = [
  ...Map.groupBy(SCREENS, ({ path }) => path.replace(/(evt|chn|whk|org)_\w+$/, '')).values(),
].map(([first, ...others]) =>
  others.reduce((best, one) => (one.name.length < best.name.length ? one : best), first!),
)
