import { listDeliveries } from '../support/fakes/deliveries.ts'
import { PROJECT, type FakeApi } from '../support/fakes/api.ts'
import { fillShop, REFUND } from '../support/fakes/shop.ts'
import type { Screen } from './screens.ts'

const CHANNEL = 'GET /api/projects/:id/channels/:channel'
const ONE = `/p/${PROJECT}/channels/chn_payments`
const TOMORROW = new Date(Date.now() + 86_400_000).toISOString()

/** Answers about a channel like at the end of a day, except for `some`. */
function fillChannel(api: FakeApi, some: object = {}): void {
  fillShop(api)
  const read = api.handler(CHANNEL)
  api.on(CHANNEL, (body, url) => {
    const { data } = read(body, url) as { data: object }
    const description = 'Money that comes in and goes out, from the shop and from invoices.'
    return { data: { ...data, icon: '💰', description, ...some } }
  })
}

function mute(api: FakeApi): void {
  for (const channel of ['chn_payments', 'chn_growth']) {
    const url = new URL(`http://x/api/projects/${PROJECT}/channels/${channel}/notifications`)
    const wish = { state: 'mute', muteUntil: channel === 'chn_growth' ? TOMORROW : null }
    api.handler('PUT /api/projects/:id/channels/:channel/notifications')(wish, url)
  }
}

/** Screens 3, 5 and 7, and the screens that keys open. */
export const CHANNEL_SCREENS: Screen[] = [
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
    name: 'channels-broken',
    path: `/p/${PROJECT}/channels`,
    prepare: api =>
      api.on('GET /api/projects/:id/channels', () => ({
        status: 503,
        code: 'unavailable',
        error: 'The database cannot be reached. Try again shortly.',
      })),
    until: 'text=Retry',
  },
  {
    name: 'channel',
    path: ONE,
    prepare: api => fillChannel(api),
    until: 'text=Archive this channel',
  },
  {
    name: 'channel-edit',
    path: ONE,
    prepare: api => fillChannel(api),
    until: 'text=Archive this channel',
    act: async page => {
      await page.getByRole('button', { name: 'Edit' }).click()
      await page.getByLabel('Description').waitFor()
    },
  },
  {
    name: 'channel-mute-until',
    path: ONE,
    prepare: api => fillChannel(api),
    until: 'text=Archive this channel',
    act: async page => {
      await page.getByRole('combobox', { name: 'My notifications' }).selectOption('pick')
      await page.getByLabel('Until', { exact: true }).waitFor()
    },
  },
  {
    name: 'channel-keeping',
    path: ONE,
    prepare: api => fillChannel(api, { isArchived: true, keepDays: 30 }),
    until: 'text=Unarchive this channel',
    act: async page => {
      await page.getByRole('button', { name: 'Change' }).click()
      await page.getByLabel('Days').waitFor()
    },
  },
  {
    name: 'channel-hostile',
    path: ONE,
    prepare: api =>
      fillChannel(api, {
        name: 'W'.repeat(255),
        icon: null,
        description: `${'x'.repeat(900)} \u202e<b>${'a\u0300\u0301\u0302\u0303'.repeat(15)}`,
      }),
    until: 'text=Archive this channel',
  },
  {
    name: 'channel-missing',
    path: `/p/${PROJECT}/channels/chn_none`,
    until: 'text=Channel not found',
  },
  {
    name: 'channels-many',
    path: `/p/${PROJECT}`,
    prepare: api => {
      for (let n = 1; n <= 240; n += 1) api.emit({ title: 'Hello', channelName: `channel ${n}` })
      mute(api)
    },
    until: 'text=Hello',
  },
  {
    name: 'event-deliveries',
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
      await page.getByText('Deliveries').scrollIntoViewIfNeeded()
    },
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
    name: 'keys',
    path: `/p/${PROJECT}`,
    prepare: fillShop,
    until: 'text=Refund requested',
    act: async page => {
      await page.keyboard.press('?')
      await page.getByRole('dialog').waitFor()
    },
  },
]
