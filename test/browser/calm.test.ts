import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { HAS_BROWSER } from '../support/clients/chromium.ts'
import { PROJECT, type FakeEvent } from '../support/fakes/api.ts'
import { until } from '../support/until.ts'
import { openDashboard, type Dashboard } from '../support/worlds/dashboard.ts'

/** The start of a period in which equal events collapse, at least a second ago. */
const toPeriod = () => Math.floor((Date.now() - 1_000) / 5_000) * 5_000
const at = (ms: number) => ({
  timestamp: new Date(ms).toISOString(),
  createdAt: new Date(ms).toISOString(),
})

/** `count` equal events within a second from `fromMs` on. */
const burst = (count: number, fromMs: number, more: object = {}): FakeEvent[] =>
  Array.from({ length: count }, (_, nth) => ({
    title: 'Order placed',
    channelName: 'orders',
    icon: '🛒',
    ...at(fromMs + Math.floor((nth * 1_000) / count)),
    ...more,
  }))

describe.skipIf(!HAS_BROWSER)('dashboard.md a calm feed', () => {
  let dashboard: Dashboard
  beforeAll(async () => {
    dashboard = await openDashboard()
  })
  afterAll(() => dashboard[Symbol.asyncDispose]())

  /** Opens the feed of a project with these events; resolves once it is live. */
  async function watch(
    events: FakeEvent[],
    { isPhone = false, path = '', timezoneId = 'UTC' } = {},
  ) {
    const opened = await dashboard.openFaked({
      isPhone,
      timezoneId,
      prepare: api => {
        api.emit(...events)
      },
    })
    const { page } = opened
    await page.goto(`${dashboard.url}/p/${PROJECT}${path}`)
    // The rows of the first page are drawn in parts. An event on a phone hides them.
    if (path === '') await page.locator('.list-end').waitFor({ state: 'attached' })
    const says = (text: string) => page.locator('.pill').filter({ hasText: text }).waitFor()
    /** The titles of the list, with the number of events in each group. */
    const list = () =>
      page.locator('article').evaluateAll(rows =>
        rows.map(row => {
          const count = row.querySelector('.count > [aria-hidden]')?.textContent
          const title = row.querySelector('h2 bdi')?.textContent
          return count === undefined ? title : `${title} ${count}`
        }),
      )
    const group = page.getByRole('button', { name: /^Order placed .* events$/ })
    const ids = () =>
      page
        .locator('article[data-event]')
        .evaluateAll(rows => rows.map(row => row.getAttribute('data-event')))
    return { ...opened, says, list, ids, group }
  }

  const ids = (newest: number, oldest: number) =>
    Array.from({ length: newest - oldest + 1 }, (_, nth) => `evt_${newest - nth}`)

  test('a group opens to its rows in place, stays open, and is closed, by keys', async () => {
    const beginMs = toPeriod()
    await using it = await watch([
      { title: 'Before', ...at(beginMs - 60_000) },
      ...burst(12, beginMs),
      { title: 'After', ...at(beginMs + 1_500) },
    ])
    await it.group.waitFor()
    expect(await it.list()).toEqual(['After', 'Order placed ×12', 'Before'])
    await it.page.keyboard.press('j')
    await it.page.keyboard.press('j')
    const focused = it.page.locator(':focus')
    expect(await focused.getAttribute('aria-expanded')).toBe('false')
    const topOf = () => it.group.evaluate(button => button.getBoundingClientRect().top)
    const top = await topOf()
    await it.page.keyboard.press('ArrowRight')
    await until(async () => (await it.ids()).length === 14)
    expect(await it.ids()).toEqual(['evt_14', ...ids(13, 2), 'evt_1'])
    expect([await topOf(), await focused.getAttribute('aria-expanded')]).toEqual([top, 'true'])
    // Each article has the place that screen readers name.
    const places = await it.page
      .locator('article')
      .evaluateAll(rows => rows.map(row => Number(row.getAttribute('aria-posinset'))))
    expect(places).toEqual(Array.from({ length: 15 }, (_, nth) => nth + 1))

    // More equal events are counted as new ones, and join the open group.
    it.api.emit(...burst(3, beginMs + 2_000))
    await it.says('Paused · 3 new')
    await it.page.getByRole('button', { name: 'Paused · 3 new' }).click()
    await it.says('Live')
    await until(async () => (await it.ids()).length === 17)
    expect((await it.list())[1]).toBe('Order placed ×15')
    expect(await it.ids()).toEqual(['evt_14', ...ids(17, 15), ...ids(13, 2), 'evt_1'])

    for (const key of ['j', 'j', 'j', 'j']) await it.page.keyboard.press(key)
    await it.page.locator('[data-event=evt_16]:focus').waitFor()
    await it.page.keyboard.press('k')
    await it.page.keyboard.press('ArrowLeft')
    await until(async () => (await it.ids()).length === 2)
    expect(await focused.getAttribute('aria-expanded')).toBe('false')
    await it.page.keyboard.press('Enter')
    await until(async () => (await it.ids()).length === 17)
    await it.page.keyboard.press('ArrowLeft')
    await until(async () => (await it.ids()).length === 2)
    expect(await it.page.locator('.panel').count()).toBe(0)
    expect(it.problems).toEqual([])
  })

  test('the address of an event opens its group, and Escape leads back to its row', async () => {
    const beginMs = toPeriod()
    await using it = await watch(
      [...burst(9, beginMs), ...burst(9, beginMs, { title: 'Refund' })],
      { path: '/e/evt_5' },
    )
    await it.page.locator('.panel').getByRole('heading', { name: 'Order placed' }).waitFor()
    await it.page.locator('[data-event=evt_5][aria-current]').waitFor()
    expect(await it.list()).toEqual([
      'Refund ×9',
      'Order placed ×9',
      ...Array<string>(9).fill('Order placed'),
    ])
    // Both keys come before the browser paints the second event.
    const isDrawn = await it.page.evaluate(async () => {
      const press = (key: string) =>
        document.activeElement?.dispatchEvent(
          new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }),
        )
      const isCurrent = () => document.querySelector('[data-event=evt_4][aria-current]') !== null
      press('j')
      for (let turns = 0; turns < 1_000 && !isCurrent(); turns++) await undefined
      press('Escape')
      return isCurrent()
    })
    expect(isDrawn).toBe(true)
    await it.page.locator('[data-event=evt_4]:focus').waitFor()
    expect(await it.ids()).toEqual(ids(9, 1))
    // From the panel of an event in one group to one in another.
    await it.page.goto(`${dashboard.url}/p/${PROJECT}/e/evt_10`)
    await it.page.locator('[data-event=evt_10][aria-current]').waitFor()
    await it.page.getByRole('button', { name: 'Older event' }).click()
    await it.page.locator('[data-event=evt_9][aria-current]').waitFor()
    expect(await it.ids()).toEqual(ids(18, 1))
  })

  test('a live list of collapsed rows reads no page again and again', async () => {
    const beginMs = toPeriod() - 60_000
    await using it = await watch([{ title: 'First', ...at(beginMs - 60_000) }])
    await it.says('Live')
    const shows = (title: string) =>
      until(async () => (await it.list()).some(text => text?.startsWith(title)))
    it.api.emit(...burst(1_010, beginMs), { title: 'Mark' })
    await shows('Mark')
    await it.settle()
    const reads = () => it.api.requests.filter(name => name === 'GET /api/projects/:id/events')
    const before = reads().length
    for (const title of ['One', 'Two', 'Three']) {
      it.api.emit({ title })
      await shows(title)
    }
    await it.settle()
    expect(reads().length).toBe(before)
    // A reader who pauses gets back to the first event.
    await it.page.keyboard.press('Space')
    await it.page.getByText("You've reached the first event").waitFor()
    expect((await it.list()).at(-1)).toBe('First')
  })

  test('pauses while the mouse points at a row, and shows what came when it leaves', async () => {
    await using it = await watch([{ title: 'One' }, { title: 'Two' }])
    await it.says('Live')
    // The compositor alone can move what moves without end, so a calm page does no work.
    await it.page.emulateMedia({ reducedMotion: 'no-preference' })
    const moving = await it.page.evaluate(() =>
      document.getAnimations().map(animation => {
        const effect = animation.effect as KeyframeEffect
        return [effect.target?.parentElement?.className, 'transform' in effect.getKeyframes()[0]!]
      }),
    )
    expect(moving).toEqual([['wave-line wave-line-live', true]])
    await it.page.getByText('Two', { exact: true }).hover()
    await it.says('Paused')
    it.api.emit({ title: 'Three' })
    await it.says('Paused · 1 new')
    expect(await it.list()).toEqual(['Two', 'One'])
    await it.page.getByLabel('Search events').hover()
    await it.says('Live')
    expect(await it.list()).toEqual(['Three', 'Two', 'One'])
  })

  test('times have one form, also in a burst: ages', async () => {
    const nowMs = Date.now()
    const events = [
      { title: 'Old', ...at(nowMs - 3_600_000) },
      { title: 'Young', ...at(nowMs - 20_000) },
      ...burst(7, toPeriod()).map((event, nth) => ({ ...event, title: `Event ${nth}` })),
    ]
    // All of them are of today in a zone far from midnight.
    const timezoneId = new Date().getUTCHours() < 12 ? 'Etc/GMT-6' : 'Etc/GMT+6'
    await using it = await watch(events, { timezoneId })
    await it.page.getByText('Event 6').waitFor()
    const times = (await it.page.locator('article time').allTextContents()).join(' ')
    expect(times).toMatch(/^((now|\d+s) ){7}[2-5][05]s 1h$/)
  })

  test('rows of groups are as high as others, on a desk and a phone, and axe finds nothing', async () => {
    const beginMs = toPeriod()
    const long = { title: `Order placed ${'in the shop of a long name '.repeat(9)}` }
    await using it = await watch([
      ...burst(12, beginMs, { userId: 'ada' }),
      ...burst(12, beginMs, long),
      { title: 'After', ...at(beginMs + 1_000), channelName: 'orders' },
    ])
    await it.page.setViewportSize({ width: 1440, height: 900 })
    await it.group.first().waitFor()
    const heights = () =>
      it.page
        .locator('article')
        .evaluateAll(rows => [...new Set(rows.map(row => row.getBoundingClientRect().height))])
    expect(await heights()).toEqual([38])
    // The number stays in view however long the title is.
    const number = (await it.page.locator('.count').first().boundingBox())!
    const channel = (await it.page.locator('article .channel').nth(1).boundingBox())!
    expect(number.x + number.width).toBeLessThan(channel.x)
    await it.group.last().click()
    await until(async () => (await it.ids()).length === 13)
    expect(await heights()).toEqual([38])
    expect(await it.findBarriers()).toEqual([])
    await it.page.emulateMedia({ forcedColors: 'active' })
    expect(await heights()).toEqual([38])
    await it.page.emulateMedia({ forcedColors: 'none' })
    await it.become('phone')
    const phone = await heights()
    expect([phone.length, phone[0]! < 60]).toEqual([1, true])
    await it.paint('dark')
    expect(await it.findBarriers()).toEqual([])
  })
})
