import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Locator, Page } from 'playwright-core'
import { HAS_BROWSER, measureShift } from '../support/clients/chromium.ts'
import { PROJECT, type FakeApi, type FakeEvent } from '../support/fakes/api.ts'
import { fillOrganization, setRole } from '../support/fakes/organization.ts'
import { fillKeys, fillWebhooks } from '../support/fakes/webhooks.ts'
import { until } from '../support/until.ts'
import { openDashboard, type Dashboard } from '../support/worlds/dashboard.ts'

const numbered = (from: number, to: number): FakeEvent[] =>
  Array.from({ length: to - from + 1 }, (_, at) => ({ title: `Event ${from + at}` }))

describe.skipIf(!HAS_BROWSER)('dashboard.md §3-4 the feed', () => {
  let dashboard: Dashboard
  beforeAll(async () => {
    dashboard = await openDashboard()
  })
  afterAll(() => dashboard[Symbol.asyncDispose]())

  /** Opens the feed of a project with `count` events; resolves once it is live. */
  async function watch(count: number, { isPhone = false, hasClock = false } = {}) {
    const opened = await dashboard.openFaked({
      ...{ isPhone, hasClock, isNew: hasClock },
      prepare: api => {
        api.emit(...numbered(1, count))
      },
    })
    const { page } = opened
    await page.goto(`${dashboard.url}/p/${PROJECT}`)
    const pill = page.locator('.pill')
    const says = (text: string) => pill.filter({ hasText: text }).waitFor()
    const titles = () => page.locator('article h2').allTextContents()
    const sees = (title: string) => page.getByText(title, { exact: true }).waitFor()
    /** The names under which the browser keeps events. */
    const kept = () =>
      page.evaluate(() => Object.keys(localStorage).filter(name => name.includes('events')))
    await says('Live')
    // The rows of the first page are drawn in parts.
    if (count > 0) await page.locator('.list-end').waitFor({ state: 'attached' })
    return { ...opened, pill, says, titles, sees, kept }
  }

  test('shows new events at once, newest first, and announces them; only a lone row is animated', async () => {
    await using it = await watch(2)
    const classes = () =>
      it.page.locator('article.row').evaluateAll(rows => rows.map(({ className }) => className))
    await it.page.keyboard.press('Space')
    it.api.emit(...numbered(3, 6))
    await it.says('Paused · 4 new')
    await it.page.keyboard.press('Space')
    await it.sees('Event 6')
    expect(await classes()).toEqual(Array(6).fill('row'))
    it.api.emit({ title: 'New payment', icon: '💰', userId: 'ada', tags: ['vip'], level: 'high' })
    await it.sees('New payment')
    expect(await classes()).toEqual(['row fresh', ...Array<string>(6).fill('row')])
    expect((await it.titles()).slice(0, 3)).toEqual(['High: New payment', 'Event 6', 'Event 5'])
    await it.page.getByRole('status').getByText('1 new event. High: New payment').waitFor()
    expect(await it.page.getByRole('feed').getByRole('article').count()).toBe(7)
    // Events without an icon have the icon of their channel.
    await it.page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    await it.page.locator('article .icon').getByText('💰').nth(6).waitFor()
  })

  test('a thread is one row with its latest state, which takes its place once it is shown', async () => {
    await using it = await watch(1)
    const disk = { thread: 'disk', title: 'Disk full', level: 'critical' }
    it.api.emit({ ...disk, state: 'firing' }, { title: 'Between' })
    await it.sees('Between')
    expect(await it.titles()).toEqual(['Between', 'Critical: Disk full Firing', 'Event 1'])
    await it.page.keyboard.press('Space')
    it.api.emit({ ...disk, title: 'Disk has room', state: 'resolved' })
    await it.says('Paused · 1 new')
    expect(await it.titles()).toHaveLength(3)
    await it.page.keyboard.press('Space')
    await it.sees('Disk has room')
    expect(await it.titles()).toEqual(['Critical: Disk has room Resolved', 'Between', 'Event 1'])
  })

  test('lists what is open, the worst first, as it begins and ends', async () => {
    await using it = await watch(1)
    const open = (thread: string, more = {}) => ({
      ...{ thread, title: `Trouble with ${thread}`, state: 'firing', ...more },
    })
    const items = it.page.locator('.items > li')
    const sees = (...parts: string[]) =>
      until(async () => {
        const texts = await items.allInnerTexts()
        return texts.length === parts.length && texts.every((text, at) => text.includes(parts[at]!))
      })
    await it.page.keyboard.press('g')
    await it.page.keyboard.press('t')
    await it.page.getByText('Nothing is open').waitFor()
    expect(await it.page.locator('code', { hasText: 'thread=disk&state=firing' }).count()).toBe(1)
    await it.says('Live')
    it.api.emit(open('disk'), open('deploy', { state: 'running' }))
    await sees('Trouble with disk', 'Trouble with deploy')
    it.api.emit(open('queue', { level: 'high' }), open('disk', { title: 'Disk is worse' }))
    await sees('Trouble with queue', 'Disk is worse', 'Trouble with deploy')
    await until(async () => (await items.nth(1).innerText()).includes('2 events, last now'))
    it.api.emit(open('queue', { state: 'resolved' }))
    await sees('Disk is worse', 'Trouble with deploy')
    // The server knows what is open after a deletion.
    it.api.requests.splice(0)
    it.api.send({ type: 'deleted', project: PROJECT, seq: 5 })
    await until(() => it.api.requests.includes('GET /api/projects/:id/threads'))
    // More come page by page, and lead to their events.
    it.api.emit(...numbered(1, 60).map(({ title }) => open(title)))
    await until(async () => (await items.count()) === 50)
    await it.page.getByText('50+ open').waitFor()
    await it.page.getByRole('button', { name: 'Show more' }).click()
    await until(async () => (await items.count()) === 62)
    await items.first().getByRole('link').click()
    await it.page.getByRole('heading', { name: 'Disk is worse' }).first().waitFor()
    expect(it.problems).toEqual([])
  })

  test('a thread is acknowledged and silenced where it stands, and somebody is on duty', async () => {
    await using it = await watch(1)
    const { page, api } = it
    const button = (name: string) => page.getByRole('button', { name, exact: true })
    api.emit({ thread: 'disk', title: 'Disk full', state: 'firing', level: 'critical' })
    await page.goto(`${dashboard.url}/p/${PROJECT}/open`)
    await button('Acknowledge Disk full').click()
    await page.getByText('Ada Lovelace has it since').waitFor()
    expect(await button('Acknowledge Disk full').count()).toBe(0)

    await page.setViewportSize({ width: 1000, height: 560 })
    await button('Silence…').click()
    await until(() => isInView(button('Silence')))
    await page.getByLabel('How long').selectOption('8 hours')
    await page.getByLabel('Why').fill('A larger disk is ordered')
    await button('Silence').click()
    await page.getByText('Silenced by Ada Lovelace until').waitFor()
    expect(api.bodies.get('POST /api/projects/:id/silences')).toEqual({
      ...{ channel: 'chn_payments', thread: 'disk' },
      ...{ minutes: 480, reason: 'A larger disk is ordered' },
    })

    await page.getByText('Nobody is on duty').waitFor()
    await button('Change who is on duty').click()
    await page.getByLabel('Until').fill('2030-01-01T08:00')
    await button('Save').click()
    await page.getByText('Ada Lovelace is on duty until 1 Jan 2030').waitFor()
    await button('End the duty').click()
    await page.getByText('Nobody is on duty').waitFor()

    // Silences have a page, where they end.
    await page.keyboard.press('g')
    await page.keyboard.press('s')
    await page.getByText('disk in payments').waitFor()
    await button('End the silence of disk in payments').click()
    await page.getByText('Nothing is silenced').waitFor()

    // The feed and the list of threads say once that all of the project is silenced.
    await button('New silence').click()
    await page.getByLabel('Why').fill('The shop moves')
    await button('Silence').click()
    await page.goto(`${dashboard.url}/p/${PROJECT}/open`)
    await page.getByText('Nobody is notified until').waitFor()
    expect(await page.getByText('Silenced by').count()).toBe(0)
    await page.goto(`${dashboard.url}/p/${PROJECT}`)
    await page.getByText('Nobody is notified until').waitFor()
    await button('End the silence of the whole project').click()
    await page.getByText('Nobody is notified until').waitFor({ state: 'detached' })

    await page.goto(`${dashboard.url}/p/${PROJECT}/settings/silences`)
    await button('New silence').click()
    await page.getByLabel('How long').selectOption('Every week at these hours')
    await page.getByLabel('From').fill('01:00')
    await page.getByLabel('Why').fill('Backups')
    await button('Silence').click()
    await page.getByText('every day from 01:00 to 07:00 (UTC)').waitFor()
    expect(it.problems).toEqual([])
  })

  test('the account and the first page are requested beside the scripts, and only once', async () => {
    const wanted = ['GET /api/me', 'GET /api/projects/:id/events']
    const count = ({ requests }: FakeApi, name: string) =>
      requests.filter(one => one === name).length
    await using it = await dashboard.openFaked({
      prepare: async (api, context) => {
        api.emit(...numbered(1, 3))
        await context.route('**/main.js', async route => {
          await until(() => wanted.every(name => count(api, name) === 1))
          await route.continue()
        })
      },
    })
    await it.page.goto(`${dashboard.url}/p/${PROJECT}`)
    await it.page.getByText('Event 3', { exact: true }).waitFor()
    await it.page.locator('.pill').filter({ hasText: 'Live' }).waitFor()
    expect(wanted.map(name => count(it.api, name))).toEqual([1, 1])
  })

  test('a first visit asks each question once: 10 requests, 60 KB to the first rows; 14, 70 KB in 10 s', async () => {
    await using it = await dashboard.openFaked({
      hasClock: true,
      isNew: true,
      prepare: api => {
        // As many as a real page of events has bytes: the fake one is not compressed.
        api.emit(...numbered(1, 12).map((one, at) => ({ ...one, userId: `u${at}` })))
      },
    })
    const { page, api } = it
    await it.context.setExtraHTTPHeaders({ 'Accept-Encoding': 'gzip' })
    const session = await it.context.newCDPSession(page)
    await session.send('Network.enable')
    const urls: string[] = []
    let bytes = 0
    session.on('Network.requestWillBeSent', ({ request: { url } }) => {
      // The worker has its script from the cache, which the interception below turns off.
      if (!urls.includes(url) || !url.endsWith('/early.js')) urls.push(url)
    })
    session.on('Network.loadingFinished', one => void (bytes += one.encodedDataLength))
    // The file after the first rows waits, so that what came before it can be counted.
    const first = Promise.withResolvers<void>()
    const rows = Promise.withResolvers<number>()
    await page.route('**/after-load-*.js', async route => {
      rows.resolve(await page.locator('article').count())
      await first.promise
      await route.continue()
    })
    await page.goto(`${dashboard.url}/p/${PROJECT}`, { waitUntil: 'commit' })
    await page.getByText('Event 12', { exact: true }).waitFor()
    expect(await rows.promise).toBeGreaterThan(0)
    // The script itself, the names, and the read mark follow the first rows.
    const after = urls.filter(url => /after-load|users\/names|\/read$/.test(url)).length
    expect(urls.length - after).toBeLessThanOrEqual(10)
    expect(bytes).toBeLessThanOrEqual(60_000)
    first.resolve()
    await it.page.locator('.pill').filter({ hasText: 'Live' }).waitFor()
    for (let at = 0; at < 3; at++) {
      api.emit({ title: `Live ${at}`, userId: `u${at}` })
      await page.clock.runFor(2_500)
      api.send({ type: 'unread', project: PROJECT })
      api.send({ type: 'heartbeat', project: PROJECT, head: 13 + at })
      await it.settle()
    }
    // Two of the 14 say what was read. A slow machine draws the events one by one, and says more.
    expect(urls.filter(url => !url.endsWith('/read')).length).toBeLessThanOrEqual(12)
    expect(bytes).toBeLessThanOrEqual(70_000)
    for (const once of ['GET /api/projects/:id/channels', 'POST /api/projects/:id/users/names'])
      expect(api.requests.filter(name => name === once)).toHaveLength(1)
    expect(urls.filter(url => /on-demand|pages\.css/.test(url))).toEqual([])
  })

  test('pauses on Space, when the reader scrolls away and while text is selected, and loses nothing', async () => {
    await using it = await watch(40)
    await it.page.keyboard.press('Space')
    it.api.emit(...numbered(41, 77))
    await it.says('Paused · 37 new')
    expect((await it.titles())[0]).toBe('Event 40')
    await it.page.getByRole('button', { name: 'Paused · 37 new' }).click()
    await it.sees('Event 77')
    await it.says('Live')
    await until(async () => (await it.titles()).length === 77)

    await it.page.mouse.wheel(0, 600)
    await it.says('Paused')
    const before = await it.page.evaluate(() => scrollY)
    it.api.emit(...numbered(78, 80))
    await it.says('Paused · 3 new')
    expect(await it.page.evaluate(() => scrollY)).toBe(before)
    await it.page.evaluate(() => scrollTo(0, 0))
    await it.sees('Event 80')
    await it.page.mouse.move(0, 0)
    await it.says('Live')

    await it.page.evaluate(() =>
      getSelection()?.selectAllChildren(document.querySelector('article h2')!),
    )
    await it.says('Paused')
    await it.page.evaluate(() => getSelection()?.removeAllRanges())
    await it.says('Live')
  })

  test('pauses while an event is open, whose row stays in place', async () => {
    await using it = await watch(3)
    await it.page.getByText('Event 3', { exact: true }).click()
    await it.page.locator('.panel').getByRole('heading', { name: 'Event 3' }).waitFor()
    it.api.emit({ title: 'Late' })
    await it.says('Paused · 1 new')
    expect(await it.titles()).toEqual(['Event 3', 'Event 2', 'Event 1'])
    await it.page.keyboard.press('Escape')
    await it.page.locator('article:focus').filter({ hasText: 'Event 3' }).waitFor()
    await it.page.keyboard.press('Space')
    await it.sees('Late')
    await it.says('Live')
  })

  test('keeps 200 rows while it is live, forgets the elements of others, and leads back to them', async () => {
    await using it = await watch(1)
    const session = await it.context.newCDPSession(it.page)
    await session.send('Performance.enable')
    const countNodes = async () => {
      await session.send('HeapProfiler.collectGarbage')
      const { metrics } = await session.send('Performance.getMetrics')
      return metrics.find(({ name }) => name === 'Nodes')?.value ?? Infinity
    }
    // Each group replaces half of the list.
    const fill = async (from: number) => {
      it.api.emit(...numbered(from, from + 99))
      await it.sees(`Event ${from + 99}`)
    }
    await fill(2)
    await fill(102)
    await until(async () => (await it.titles()).length === 200)
    const before = await countNodes()
    await fill(202)
    await fill(302)
    await until(async () => (await countNodes()) < 1.5 * before)
    await until(async () => (await it.titles()).length === 200)
    await until(async () => {
      await it.page.evaluate(() => scrollTo(0, document.body.scrollHeight))
      return (await it.titles()).includes('Event 1')
    })
    expect(await it.titles()).toEqual(Array.from({ length: 401 }, (_, at) => `Event ${401 - at}`))
    await it.sees("You've reached the first event")
  })

  test('a reader at the bottom stays at their row while older events are read', async () => {
    await using it = await watch(300)
    const count = async () => (await it.titles()).length
    await until(async () => (await count()) > 0)
    const first = await count()
    const toBottom = () =>
      it.page.evaluate(() => {
        scrollTo(0, document.documentElement.scrollHeight)
        return scrollY
      })
    const stoodAt = await toBottom()
    await until(async () => (await count()) > first)
    expect(await it.page.evaluate(() => scrollY)).toBe(stoodAt)
  })

  test('days are those on which the events happened, in the order of the list', async () => {
    await using it = await watch(0, { hasClock: true })
    await it.page.clock.setFixedTime('2026-11-22T12:00:00Z')
    const at = (day: number) => `2026-11-${day}T10:03:00.000Z`
    it.api.emit(
      { title: 'First', timestamp: at(18), createdAt: at(18) },
      { title: 'Imported', timestamp: at(10), createdAt: at(19) },
      { title: 'Also imported', timestamp: at(17), createdAt: at(19) },
      { title: 'Last', timestamp: at(19), createdAt: at(19) },
    )
    await it.page.reload()
    await it.sees('First')
    expect(await it.page.locator('.day').allTextContents()).toEqual([
      'Thursday 19 November',
      'Tuesday 17 November',
      'Tuesday 10 November',
      'Wednesday 18 November',
    ])
    expect(await it.page.locator('.row time').allTextContents()).toEqual(Array(4).fill('10:03'))
  })

  test('columns have one edge in all rows, and texts of any length and direction fit', async () => {
    await using it = await watch(1)
    const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString()
    const event = { title: 'Paid', channelName: 'payments', userId: 'ada', tags: ['vip'] }
    const late = [1, 20, 400].map(days => ({ ...event, timestamp: daysAgo(days) }))
    it.api.emit(event, ...late.map(one => ({ ...one, createdAt: daysAgo(0) })))
    await until(async () => (await it.titles()).length === 5)
    for (const width of [1440, 1000]) {
      await it.page.setViewportSize({ width, height: 900 })
      for (const name of width === 1440 ? ['.tags', '.channel', '.user'] : ['.channel', '.user']) {
        const edges = await it.page
          .locator(`article ${name}`)
          .evaluateAll(cells => cells.map(cell => cell.getBoundingClientRect().x))
        expect([name, edges.length > 3, new Set(edges).size]).toEqual([name, true, 1])
      }
    }
    it.api.emit(
      { title: 'دفعة جديدة '.repeat(40).trim(), userId: 'u'.repeat(255) },
      { title: 'Long channel', channelName: 'c'.repeat(255), userId: 'ada' },
    )
    await it.sees('Long channel')
    const row = (text: string) => it.page.locator('article', { hasText: text })
    // The first letters are at the right edge of the box.
    const gap = await row('دفعة')
      .locator('h2 bdi')
      .evaluate(bdi => {
        const first = document.createRange()
        first.setStart(bdi.firstChild!, 0)
        first.setEnd(bdi.firstChild!, 4)
        const { right } = bdi.closest('h2')!.getBoundingClientRect()
        return right - first.getBoundingClientRect().right
      })
    expect(Math.abs(gap)).toBeLessThan(2)
    await it.become('phone')
    const isCut = (text: string, part: string) =>
      row(text)
        .locator(part)
        .evaluate(element => element.scrollWidth > element.clientWidth)
    expect(await isCut('دفعة', '.channel')).toBe(false)
    expect(await isCut('Long channel', '.user')).toBe(false)
  })

  test('events on the screen are never counted as unread', async () => {
    await using it = await watch(2, { hasClock: true })
    const channels = it.api.handler('GET /api/projects/:id/channels')
    it.api.on('GET /api/projects/:id/channels', (body, url) => {
      const { data } = channels(body, url) as { data: { items: object[] } }
      return { data: { ...data, items: data.items.map(one => ({ ...one, unread: 3 })) } }
    })
    const isRead = () => it.api.requests.filter(name => name.endsWith('/channels')).length
    const before = isRead()
    it.api.emit({ title: 'Deployed', channelName: 'deploys' })
    await it.sees('Deployed')
    await it.page.clock.runFor(5_000)
    await it.page.getByRole('link', { name: 'deploys' }).waitFor()
    expect(isRead()).toBeGreaterThan(before)
    expect(await it.page.locator('.unread').count()).toBe(0)
    await it.page.keyboard.press('Space')
    await it.says('Paused')
    it.api.send({ type: 'heartbeat', project: PROJECT, head: 4 })
    await it.page.clock.runFor(5_000)
    await it.page.getByLabel('3 unread').first().waitFor()
  })

  test('a read mark that the server did not take is sent when the list is left', async () => {
    await using it = await watch(1, { hasClock: true })
    const channels: unknown[] = []
    it.api.on('PUT /api/projects/:id/read', ({ seq, channelId }) => {
      if (seq !== 2) return { data: { seq } }
      channels.push(channelId)
      return { status: 503, code: 'unavailable', error: 'Not now' }
    })
    it.api.emit({ title: 'Deployed', channelName: 'deploys' })
    await it.sees('Deployed')
    await it.page.clock.runFor(5_000)
    await until(() => channels.length === 1)
    await it.page.getByRole('link', { name: 'deploys' }).click()
    await until(() => channels.filter(id => id === undefined).length === 2)
  })

  test('a read mark that fails has one next attempt, and none after a refusal for good', async () => {
    await using it = await watch(1, { hasClock: true })
    let marks = 0
    let failure = { status: 503, code: 'unavailable', error: 'Not now' }
    it.api.on('PUT /api/projects/:id/read', ({ seq }) => {
      if (seq < 2) return { data: { seq } }
      marks += 1
      return failure
    })
    const pass = async (ms: number) => {
      await it.page.clock.runFor(ms)
      await it.settle()
    }
    it.api.emit({ title: 'Deployed' })
    await it.sees('Deployed')
    await pass(5_000)
    await until(() => marks === 1)
    await pass(5_000)
    await until(() => marks === 2)
    it.api.emit({ title: 'Restarted' })
    await pass(5_000)
    await until(() => marks === 3)
    await pass(10_000)
    expect(marks).toBe(3)
    failure = { status: 404, code: 'not_found', error: 'Not found' }
    await pass(20_000)
    await until(() => marks === 4)
    it.api.emit({ title: 'Stopped' })
    await pass(90_000)
    expect(marks).toBe(4)
  })

  test('in the sidebar, the name of a channel gives way to its counts', async () => {
    await using it = await watch(1)
    const channels = it.api.handler('GET /api/projects/:id/channels')
    it.api.on('GET /api/projects/:id/channels', (body, url) => {
      const { data } = channels(body, url) as { data: { items: object[] } }
      const long = { name: 'deployments-of-the-web-shop', unread: 1_000, today: Array(24).fill(1) }
      return { data: { ...data, items: data.items.map(one => ({ ...one, ...long })) } }
    })
    await it.page.goto(`${new URL(it.page.url()).origin}/p/${PROJECT}/channels`)
    const count = it.page.getByText('99+').first()
    await count.waitFor()
    const list = (await it.page.locator('.channel-list').boundingBox())!
    const { x, width } = (await count.boundingBox())!
    expect(x + width).toBeLessThanOrEqual(list.x + list.width)
  })

  test('menus open next to their buttons, switch projects, and choose a colour scheme', async () => {
    await using it = await watch(1)
    const { page } = it
    await page.setViewportSize({ width: 2560, height: 900 })
    for (const [name, menu] of [
      ['Web shop', '#project-menu'],
      ['Account', '#account-menu'],
    ] as const) {
      const button = page.getByRole('button', { name })
      await button.click()
      const [from, to] = [await button.boundingBox(), await page.locator(menu).boundingBox()]
      expect(
        Math.min(Math.abs(from!.x - to!.x), Math.abs(from!.x + from!.width - to!.x - to!.width)),
      ).toBeLessThan(2)
      expect(to!.y - from!.y - from!.height).toBeWithin(0, 12)
      if (menu === '#account-menu') await page.getByText('Dark', { exact: true }).click()
      await page.keyboard.press('Escape')
    }
    await page.reload({ waitUntil: 'commit' })
    await it.says('Live')
    expect(await page.evaluate(() => document.documentElement.dataset['theme'])).toBe('dark')
    await page.getByRole('button', { name: 'Web shop' }).click()
    await page.getByRole('link', { name: 'Newsletter' }).click()
    await page.waitForURL('**/p/prj_2')
    await page.goto(`${dashboard.url}/account`)
    await page.getByRole('button', { name: 'Newsletter' }).waitFor()
  })

  test('counts in the page title and renders nothing while hidden, then shows all events', async () => {
    await using it = await watch(1)
    const hide = (isHidden: boolean) =>
      it.page.evaluate(isHidden => {
        Object.defineProperty(document, 'hidden', { value: isHidden, configurable: true })
        document.dispatchEvent(new Event('visibilitychange'))
      }, isHidden)
    await hide(true)
    it.api.emit(...numbered(2, 4))
    await until(async () => (await it.page.title()) === '(3) Web shop · Tidings')
    expect(await it.titles()).toEqual(['Event 1'])
    // The network comes back before the reader does.
    for (const type of ['offline', 'online'])
      await it.page.evaluate(type => dispatchEvent(new Event(type)), type)
    await until(() => it.api.subscriptions.length === 2)
    it.api.emit({ title: 'Event 5' })
    await until(async () => (await it.page.title()) === '(4) Web shop · Tidings')
    await hide(false)
    await it.sees('Event 5')
    expect(await it.page.title()).toBe('Web shop · Tidings')
    await it.page.goto(`${dashboard.url}/p/${PROJECT}?channel=chn_payments`)
    await until(async () => (await it.page.title()) === 'payments · Web shop · Tidings')
    await it.says('Live')
    await hide(true)
    it.api.emit({ title: 'Event 6' })
    await until(async () => (await it.page.title()) === '(1) payments · Web shop · Tidings')
  })

  test('users appear by name, after one request for all of them, with a link to their page', async () => {
    await using it = await watch(0)
    it.api.emit({ title: 'Paid', userId: 'u1' }, { title: 'Left', userId: 'u2' })
    await it.sees('Left')
    await it.settle()
    const asked: string[][] = []
    it.api.on('POST /api/projects/:id/users/names', ({ userIds }) => {
      asked.push(userIds)
      return { data: { items: [{ userId: 'u1', name: 'Ada Lovelace' }] } }
    })
    await it.page.reload()
    const users = it.page.locator('article a.user')
    await users.getByText('Ada Lovelace').waitFor()
    expect(await users.allTextContents()).toEqual(['u2', 'Ada Lovelace'])
    expect(asked).toEqual([['u2', 'u1']])
    await users.last().click()
    await it.page.waitForURL(`**/p/${PROJECT}/users/u1`)
    expect(await it.page.locator('.panel').count()).toBe(0)
  })

  test.each([
    ['who is identified after their first event', 'u1', { data: { items: [] } }],
    ['whose name could not be read', 'u1', { status: 500, error: 'Not now' }],
    ['who is renamed', 'Ada', { data: { items: [{ userId: 'u1', name: 'Ada' }] } }],
  ])('a user %s appears by name in all rows with a later event', async (_, before, first) => {
    await using it = await watch(0)
    const read = 'POST /api/projects/:id/users/names'
    it.api.on(read, () => first)
    it.api.emit({ title: 'Paid', userId: 'u1' })
    const users = () => it.page.locator('article a.user bdi').allTextContents()
    await until(() => it.api.requests.includes(read))
    await it.settle()
    expect(await users()).toEqual([before])
    it.api.on(read, () => ({ data: { items: [{ userId: 'u1', name: 'Ada Lovelace' }] } }))
    await it.page.evaluate(() => {
      const { now } = Date
      Date.now = () => now() + 11 * 60_000
    })
    it.api.emit({ title: 'Left', userId: 'u1' })
    await until(async () => (await users()).join() === 'Ada Lovelace,Ada Lovelace')
  })

  test('names are requested again when a busy server has said, and not before', async () => {
    await using it = await watch(0, { hasClock: true })
    let asked = 0
    it.api.on('POST /api/projects/:id/users/names', () => {
      asked += 1
      return asked === 1
        ? { status: 503, code: 'unavailable', error: 'Not now', retryAfter: 60 }
        : { data: { items: [{ userId: 'u1', name: 'Ada Lovelace' }] } }
    })
    it.api.emit({ title: 'Paid', userId: 'u1' })
    await until(() => asked === 1)
    await it.settle()
    await it.page.clock.runFor(20_000)
    await it.settle()
    expect(asked).toBe(1)
    await it.page.clock.runFor(40_000)
    await it.page.locator('article a.user').getByText('Ada Lovelace').waitFor()
  })

  test('a desk shows 18 rows or more at 1440×900; how rows tell times is a choice', async () => {
    await using it = await watch(120)
    await it.page.setViewportSize({ width: 1440, height: 900 })
    await it.sees('Event 120')
    const measure = () =>
      it.page.locator('article.row').evaluateAll(rows => ({
        whole: rows.filter(row => row.getBoundingClientRect().bottom <= innerHeight).length,
        heights: [...new Set(rows.slice(0, 9).map(row => row.getBoundingClientRect().height))],
      }))
    expect((await measure()).whole).toBeGreaterThanOrEqual(18)
    // The first page fills the window, so that the second one waits for the reader.
    await it.settle()
    expect((await it.titles()).length).toBe(50)
    expect((await measure()).heights).toEqual([38])
    const ago = new Date(Date.now() - 150_000).toISOString()
    it.api.emit({ title: 'Late', timestamp: ago, createdAt: ago })
    await it.sees('Late')
    const time = it.page.locator('article time').first()
    // At midnight, it is of another day.
    expect(await time.textContent()).toMatch(/^(2m|\d\d:\d\d)$/)
    await it.page.getByRole('button', { name: 'Display' }).click()
    await it.page.getByText('Time of day').click()
    expect(await time.textContent()).toMatch(/^\d\d:\d\d:\d\d$/)
    await it.page.reload()
    await it.sees('Event 120')
    expect(await time.textContent()).toMatch(/^\d\d:\d\d:\d\d$/)
  })

  test('from 1024 px on, an event opens beside the list, and the page does not shift', async () => {
    await using it = await watch(40)
    await it.page.setViewportSize({ width: 1024, height: 768 })
    await it.page.reload()
    await it.sees('Event 40')
    await it.page.locator('.bars svg').waitFor()
    await it.page.getByRole('link', { name: 'payments' }).waitFor()
    expect((await measureShift(it.page)).sum).toBeLessThan(0.05)
    await it.page.getByText('Event 39', { exact: true }).click()
    const panel = it.page.locator('.panel')
    await panel.getByRole('heading', { name: 'Event 39' }).waitFor()
    const [row, beside] = [
      await it.page.locator('article[aria-current]').boundingBox(),
      await panel.boundingBox(),
    ]
    expect(row!.x + row!.width).toBeLessThanOrEqual(beside!.x)
    expect(row!.width).toBeGreaterThan(300)
    expect(beside!.x + beside!.width).toBeLessThanOrEqual(1024)
  })

  test('on a phone, the name of a user takes the place of their ID, and nothing else moves', async () => {
    await using it = await watch(0, { isPhone: true })
    it.api.on('POST /api/projects/:id/users/names', ({ userIds }) => ({
      data: { items: userIds.map((userId: string) => ({ userId, name: 'Ada' })) },
    }))
    const user = { userId: 'customer_of_the_old_shop_1042', tags: ['yearly', 'business'] }
    it.api.emit(...numbered(1, 9).map(event => ({ ...event, ...user })))
    await it.page.reload()
    await it.page.locator('article a.user').getByText('Ada', { exact: true }).last().waitFor()
    expect((await measureShift(it.page)).sum).toBeLessThan(0.05)
  })

  test('shows the way to the first event in an empty project, and then the event', async () => {
    await using it = await watch(0)
    const start = it.page.getByRole('link', { name: 'Send the first event' })
    await start.waitFor()
    expect(await start.getAttribute('href')).toBe(`/p/${PROJECT}/start`)
    // Only admins can create the key that it needs.
    setRole(it.api, 'member', false)
    await it.page.reload()
    await it.page.getByRole('link', { name: 'How to send events' }).waitFor()
    expect(await start.count()).toBe(0)
    it.api.emit({ title: 'It works', icon: '🎉' })
    await it.sees('It works')
    expect(await it.page.getByText('No events yet').count()).toBe(0)
    // The quick start of a project with events waits for new ones.
    await it.page.goto(`${dashboard.url}/p/${PROJECT}/start`)
    await it.page.getByText('Listening for new events…').waitFor()
    expect(await it.page.getByText('Look around with sample data').count()).toBe(0)
    it.api.emit({ title: 'It works again' })
    await it.page.getByText('A new event has arrived.').waitFor()
  })

  test('another account sees no channels of the former one', async () => {
    await using it = await watch(1)
    const channels = it.page.locator('.channel-list .channel-name')
    await channels.first().waitFor()
    await it.page.getByRole('button', { name: 'Account' }).click()
    await it.page.getByRole('button', { name: 'Sign out' }).click()
    const busy = { status: 503, code: 'unavailable', error: 'Not now' }
    it.api.on('GET /api/projects/:id/channels', () => busy)
    it.api.change = data => {
      const account = (data as { person?: object } | undefined)?.person
      return account ? { ...(data as object), person: { ...account, id: 'per_2' } } : data
    }
    await it.page.getByLabel('E-mail').fill('grace@example.com')
    await it.page.getByLabel('Password', { exact: true }).fill('a long enough phrase')
    await it.page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await it.says('Live')
    expect(await channels.count()).toBe(0)
  })

  test.each([
    { role: 'owner', isOperator: true },
    { role: 'viewer', isOperator: false },
  ])('§5.3 Settings → API Keys: one group of settings ($role)', async ({ role, isOperator }) => {
    await using it = await watch(1)
    const { page } = it
    for (const fill of [fillOrganization, fillKeys, fillWebhooks]) fill(it.api)
    setRole(it.api, role, isOperator)
    it.api.emit(...Array.from({ length: 40 }, (_, at) => ({ title: '', channelName: `c${at}` })))
    await page.reload()
    await page.getByRole('link', { name: 'c39' }).waitFor()
    const names = [
      'API Keys',
      'Webhooks',
      'Heartbeats',
      'Inbound hooks',
      'Silences',
      'Rules',
      'Organization',
      ...(isOperator ? ['Server'] : []),
    ]
    const settings = page.locator('.sidebar').getByRole('button', { name: 'Settings' })
    // It is in view beside any number of channels.
    expect(await isInView(settings)).toBe(true)
    await settings.click()
    const group = page.getByRole('navigation').getByRole('list', { name: 'Settings' })
    expect(await isInView(group.getByRole('link').last())).toBe(true)
    expect(await group.getByRole('link').allTextContents()).toEqual(names)
    await page.keyboard.press('Escape')
    for (const name of names) {
      await settings.click()
      await group.getByRole('link', { name }).click()
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.locator('.sidebar > [aria-current]').getByText('Settings').waitFor()
      await settings.click()
      await page.locator('#settings [aria-current]').getByText(name).waitFor()
      await page.keyboard.press('Escape')
    }
    await page.keyboard.press('Control+k')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.type('settings')
    const found = page.getByRole('option').filter({ hasText: 'Settings:' })
    await until(async () => (await found.count()) === names.length)
    expect(it.problems).toEqual([])
  })

  test('on a phone nine events or more are in view, and channels are in a sheet', async () => {
    await using it = await watch(20, { isPhone: true })
    it.api.emit({ title: 'Deployed', channelName: 'deploys', icon: '🚀' })
    await it.sees('Deployed')
    const rows = await it.page.locator('article.row').evaluateAll(rows => {
      const end = document.querySelector('.bottom-bar')!.getBoundingClientRect().top
      const boxes = rows.map(row => row.getBoundingClientRect())
      return { top: boxes[0]!.top, whole: boxes.filter(({ bottom }) => bottom <= end).length }
    })
    const small = await it.page.evaluate(() =>
      // The whole row is the control, not its link.
      [...document.querySelectorAll('a:not(.skip, article a), button, summary')]
        .filter(element => element.checkVisibility())
        .map(element => ({ text: element.textContent, box: element.getBoundingClientRect() }))
        .filter(({ box }) => box.height < 44 || box.width < 44)
        .map(({ text, box }) => `${text} ${box.width}x${box.height}`),
    )
    expect(small).toEqual([])
    expect(rows.top).toBeLessThan(200)
    expect(rows.whole).toBeGreaterThanOrEqual(9)
    const chart = it.page.locator('.bars')
    expect(await chart.isVisible()).toBe(false)
    await it.page.getByRole('button', { name: 'Show the chart' }).click()
    await chart.waitFor()

    await openSheet(it.page)
    const sheet = it.page.getByRole('navigation', { name: 'Channels and views' })
    await sheet.getByRole('link', { name: 'deploys' }).click()
    await sheet.waitFor({ state: 'hidden' })
    await until(async () => (await it.titles()).join() === 'Deployed')
    await it.page.getByRole('heading', { name: 'deploys', level: 1 }).waitFor()
    expect(await it.page.title()).toBe('deploys · Web shop · Tidings')
    const bar = it.page.getByRole('navigation', { name: 'Pages' })
    await bar.getByRole('link', { name: 'Events' }).click()
    await until(async () => (await it.titles()).length === 21)
    await openSheet(it.page, 'Settings')
    await it.page.getByRole('link', { name: 'API Keys' }).click()
    await it.page.getByRole('heading', { name: 'API Keys', level: 1 }).waitFor()
    expect(await bar.locator('[aria-current]').textContent()).toBe('Settings')
    expect(it.problems).toEqual([])
  })

  test('on the smallest phone, a large count covers half a sign of the bar, and its words are whole', async () => {
    await using it = await watch(1)
    const channels = it.api.handler('GET /api/projects/:id/channels')
    it.api.on('GET /api/projects/:id/channels', (body, url) => {
      const { data } = channels(body, url) as { data: object }
      return { data: { ...data, alarms: 100 } }
    })
    await it.page.setViewportSize({ width: 320, height: 640 })
    await it.page.reload()
    const bar = it.page.locator('.bottom-bar')
    await bar.getByText('99+').waitFor()
    const seen = await bar.evaluate(bar => {
      const count = bar.querySelector('.alarms')!.getBoundingClientRect()
      const signs = [...bar.querySelectorAll('svg')].map(sign => {
        const { left, right, width } = sign.getBoundingClientRect()
        return (Math.min(right, count.right) - Math.max(left, count.left)) / width
      })
      const words = [...bar.children].flatMap(link => {
        const range = document.createRange()
        range.selectNodeContents(link.childNodes[1]!)
        return range.getClientRects().length > 1 ? [link.textContent] : []
      })
      return { isCovered: Math.max(...signs) > 0.5, words }
    })
    expect(seen).toEqual({ isCovered: false, words: [] })
  })

  test('ten events are in view at 200 % zoom on a small screen', async () => {
    await using it = await watch(20)
    await it.page.setViewportSize({ width: 720, height: 450 })
    await it.sees('Event 20')
    const rows = await it.page.locator('article.row').all()
    const inView = await Promise.all(rows.map(isInView))
    expect(inView.filter(Boolean).length).toBeGreaterThanOrEqual(10)
    for (const page of await it.page.locator('.bottom-bar > *').all())
      expect(await isInView(page)).toBe(true)
  })

  test('buttons share an event and mute its channel', async () => {
    await using it = await watch(3, { isPhone: true })
    await it.sees('Event 3')
    await it.page.evaluate(() => {
      const shared: ShareData[] = []
      Object.assign(navigator, { share: async (data: ShareData) => void shared.push(data) })
      Object.assign(globalThis, { shared })
    })
    const listShared = () =>
      it.page.evaluate(() => (globalThis as unknown as { shared: ShareData[] }).shared)
    const muted = () => it.api.bodies.get('PUT /api/projects/:id/channels/:channel/notifications')
    await it.page.getByText('Event 3', { exact: true }).click()
    await it.page.getByRole('button', { name: 'Share' }).click()
    await until(async () => (await listShared()).length > 0)
    expect((await listShared())[0]).toEqual({
      title: 'Event 3',
      url: `${dashboard.url}/p/${PROJECT}/e/evt_3`,
    })
    await it.page.getByRole('button', { name: 'Mute channel' }).click()
    await it.page.getByText('payments is muted for you. Critical').waitFor()
    expect(muted()).toEqual({ state: 'mute' })
    await it.page.getByRole('button', { name: 'Unmute channel' }).waitFor()
    await it.page.getByRole('button', { name: 'Undo' }).click()
    await it.page.getByText('Restored.').waitFor()
    expect(muted()).toEqual({ state: 'default', collapse: null })
    expect(it.problems).toEqual([])
  })

  test('the last events are shown while the server cannot be reached, until signing out', async () => {
    await using it = await watch(3)
    await it.sees('Event 3')
    const me = it.api.handler('GET /api/me')
    it.api.on('GET /api/me', () => ({ status: 503, code: 'unavailable', error: 'Not now' }))
    await it.page.reload()
    await it.page.getByRole('heading', { name: 'Last events seen in this browser' }).waitFor()
    expect(await it.titles()).toEqual(['Event 3', 'Event 2', 'Event 1'])
    it.api.on('GET /api/me', me)
    await it.page.reload()
    await it.says('Live')
    // The second event waits to be kept.
    for (const title of ['Event 4', 'Event 5']) {
      it.api.emit({ title })
      await it.sees(title)
    }
    await it.page.getByRole('button', { name: 'Account' }).click()
    await it.page.getByRole('button', { name: 'Sign out' }).click()
    await it.page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(await it.kept()).toEqual([])
  })

  test('the last events of one account are neither shown to the next one, nor kept for it', async () => {
    await using it = await watch(1)
    await until(async () => (await it.kept()).some(name => name.endsWith(PROJECT)))
    // Another tab, in which another account has signed in since.
    const tab = await it.context.newPage()
    const me = it.api.handler('GET /api/me')
    it.api.on('GET /api/me', (...asked) => {
      const { data } = me(...asked) as { data: { person: object } }
      return { data: { ...data, person: { ...data.person, id: 'per_2' } } }
    })
    await tab.goto(`${dashboard.url}/p/prj_2`)
    await tab.locator('.pill', { hasText: 'Live' }).waitFor()
    for (const title of ['Event 2', 'Event 3']) {
      it.api.emit({ title })
      await it.sees(title)
    }
    await it.page.getByRole('link', { name: 'Users', exact: true }).click()
    await it.page.getByRole('heading', { name: 'Users', level: 1 }).waitFor()
    it.api.on('GET /api/me', () => ({ status: 503, code: 'unavailable', error: 'Not now' }))
    await tab.goto(`${dashboard.url}/p/${PROJECT}`)
    await tab.getByRole('heading', { name: 'Tidings could not be loaded' }).waitFor()
    expect(await tab.locator('article').count()).toBe(0)
  })
})

async function openSheet(page: Page, name = 'Channels'): Promise<void> {
  const bar = page.getByRole('navigation', { name: 'Pages' })
  await bar.getByRole('button', { name }).click()
}

function isInView(element: Locator): Promise<boolean> {
  return element.evaluate(one => {
    const { left, right, top, bottom } = one.getBoundingClientRect()
    return left >= 0 && right <= innerWidth && top >= 0 && bottom <= innerHeight
  })
}
