import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { HAS_BROWSER, measureShift } from '../support/clients/chromium.ts'
import type { FakeApi } from '../support/fakes/api.ts'
import { fillShop, fillViews } from '../support/fakes/shop.ts'
import { setRole } from '../support/fakes/organization.ts'
import { toHostile } from '../support/hostile.ts'
import { openScreen, PAGES, type Screen } from './screens.ts'
import { until } from '../support/until.ts'
import { openDashboard, type Dashboard } from '../support/worlds/dashboard.ts'

const DEVICES = ['phone', 'desk'] as const
const MAX_SHIFT = 0.05
const FEED = PAGES.find(({ name }) => name === 'feed')!

describe.skipIf(!HAS_BROWSER)('dashboard.md, second edition: every page', () => {
  let dashboard: Dashboard
  /** The places to go on the feed, by device. */
  const expected: string[][] = []
  beforeAll(async () => {
    dashboard = await openDashboard()
    for (const device of DEVICES) expected.push((await load(FEED, device)).places)
  })
  afterAll(() => dashboard[Symbol.asyncDispose]())

  /** Loads a page whose requests are answered one at a time, the newest first. */
  async function load(screen: Screen, device: (typeof DEVICES)[number]) {
    const held: (() => void)[] = []
    const prepare = (api: FakeApi) => {
      screen.prepare?.(api)
      fillViews(api)
    }
    const hold = () => new Promise<void>(resolve => held.push(resolve))
    await using opened = await openScreen(dashboard, { ...screen, prepare }, { device, hold })
    const { page } = opened
    const count = (selector: string) => page.locator(selector).count()
    // The views below the channels come with a later script.
    const isComplete = async () =>
      (await page.locator(screen.until).first().isVisible()) &&
      ((await count('.channel-list')) === 0 || (await count('.views')) > 0)
    // The page draws each answer by itself, as those of a server far away.
    for (let quiet = 0; quiet < 3;) {
      await page.evaluate(drawTwice)
      const answer = held.pop()
      answer?.()
      quiet = answer || !(await isComplete()) ? 0 : quiet + 1
    }
    const { sum, moved } = await measureShift(page)
    return { moved: sum > MAX_SHIFT ? moved : [], places: await listPlaces(page) }
  }

  test.each(PAGES)(
    '§5, §10 $name does not move while it loads, and leads to the same places',
    async screen => {
      const seen = []
      for (const device of DEVICES) seen.push(await load(screen, device))
      const hasPlaces = seen.some(({ places }) => places.length > 0)
      expect(hasPlaces).toBe(!ALONE.test(screen.path))
      expect(seen).toEqual(expected.map(places => ({ moved: [], places: hasPlaces ? places : [] })))
    },
  )

  // Further controls are found by names, which are hostile here.
  test.each(PAGES)(
    '§4, reliability §9 $name shows hostile text as text, fits, and asks again when a reader returns',
    async screen => {
      const change = screen.isSignedIn === false ? {} : { change: toHostile }
      await using opened = await openScreen(dashboard, screen, { hasClock: true, ...change })
      const { page, api } = opened
      await page.locator('h1').first().waitFor()
      await opened.settle()
      for (const device of ['phone', 'wide'] as const) {
        await opened.become(device)
        const seen = await page.evaluate(() => {
          const { scrollWidth, clientWidth } = document.documentElement
          const made = 'img[src="x"], script:not([src]), [onmouseover]'
          return {
            overflow: scrollWidth - clientWidth,
            heading: document.querySelector('h1')?.textContent,
            made: document.querySelectorAll(made).length,
          }
        })
        await opened.picture(`hostile-${screen.name}`)
        expect([device, seen]).toEqual([
          device,
          { overflow: 0, made: 0, heading: expect.not.stringContaining('went wrong') },
        ])
      }

      const asked = new Set(api.requests)
      // The longest pause between two counts of events, which may have begun at the first rows.
      for (let n = 0; n < 2; n++) await page.clock.fastForward(10_000)
      api.requests.splice(0)
      await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
      const expected = [...asked].filter(one => one.startsWith('GET') && !LIVE.test(one))
      await until(() => expected.every(one => api.requests.includes(one)))
      expect(opened.problems).toEqual([])
    },
  )

  test('§10 the quick start of a project with events does not move while it loads', async () => {
    const start = PAGES.find(({ name }) => name === 'start')!
    for (const device of DEVICES)
      expect((await load({ ...start, prepare: fillShop }, device)).moved).toEqual([])
  })

  test('§5 the settings of a phone lead a viewer to every page of theirs', async () => {
    const prepare = (api: FakeApi) => {
      FEED.prepare?.(api)
      setRole(api, 'viewer')
    }
    await using opened = await openScreen(dashboard, { ...FEED, prepare })
    const { page, problems } = opened
    const bar = page.getByRole('navigation', { name: 'Pages' })
    const sheet = page.getByRole('navigation', { name: 'Settings' })
    for (const name of ['Notifications', 'Organization', 'Account']) {
      await bar.getByRole('button', { name: 'Settings' }).click()
      await sheet.getByRole('link', { name }).click()
      await page.waitForURL(/notifications|organizations|account/)
      await sheet.waitFor({ state: 'hidden' })
      await bar.locator('[aria-current]').getByText('Settings').waitFor()
    }
    await bar.getByRole('button', { name: 'Channels' }).click()
    await page.getByRole('link', { name: 'Manage channels' }).click()
    await page.getByRole('heading', { name: 'Channels', level: 1 }).waitFor()
    expect(problems).toEqual([])
  })
})

/** Runs in the page: resolves after two frames, the first of which may start requests. */
async function drawTwice(): Promise<void> {
  for (let frame = 0; frame < 2; frame++) {
    await new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)))
  }
}

/** A socket keeps the first two up to date. The others are asked for once. */
const LIVE = /(\/events|\/neighbours|\/me|push\/key)$/

/** Pages without navigation. */
const ALONE = /^\/(setup|sign-in|invite|reset|p\/[^/]+\/start)/

/** Lists the places that a page leads to: those in view with where they are. */
function listPlaces(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll('.sidebar :is(a, h2, .menu-item), .bottom-bar > *')]
      // Their number differs, and so does what depends on it, or on a device.
      .filter(element => !element.matches('.channel-list *, #channels > h2, .views > a'))
      .map(element => {
        const { left, top } = element.getBoundingClientRect()
        // The views come after all channels, of which the projects have different numbers.
        const isPlaced = element.checkVisibility() && element.closest('.views') === null
        const place = isPlaced ? ` at ${Math.round(left)}, ${Math.round(top)}` : ''
        // A count differs, too.
        return `${element.textContent!.replace(/[\d+]+ unanswered$/, '')}${place}`
      }),
  )
}
