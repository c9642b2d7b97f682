import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { parseExact } from '../../src/http/exact-json.ts'
import { HAS_BROWSER } from '../support/clients/chromium.ts'
import { PROJECT, type FakeApi } from '../support/fakes/api.ts'
import { setRole } from '../support/fakes/organization.ts'
import { until } from '../support/until.ts'
import { openDashboard, type Dashboard } from '../support/worlds/dashboard.ts'

const PAYMENT = {
  title: 'New payment',
  channelName: 'payments',
  userId: 'ada@example.com',
  tags: ['vip'],
  source: 'shop',
  description: 'By card\nfor a book',
  metadata: {
    amount: 42,
    card: { brand: 'visa', checks: { cvc: { passed: true } } },
    note: null,
    'a.b': 1,
  },
}

/** Makes a page that of a browser without JSON.rawJSON, whose revivers know no source. */
function dropRawJson() {
  const { parse } = JSON
  Object.assign(JSON, {
    parse: (text: string, revive?: (key: string, value: unknown) => unknown) =>
      parse(text, revive && ((key, value) => revive(key, value))),
  })
  for (const name of ['rawJSON', 'isRawJSON']) Reflect.deleteProperty(JSON, name)
}

describe.skipIf(!HAS_BROWSER)('dashboard.md §5 an event', () => {
  let dashboard: Dashboard
  beforeAll(async () => {
    dashboard = await openDashboard()
  })
  afterAll(() => dashboard[Symbol.asyncDispose]())

  async function visit(
    path: string,
    { isPhone = false, isOld = false, prepare = (_: FakeApi) => {} } = {},
  ) {
    const opened = await dashboard.openFaked({
      ...{ isPhone, isNew: isOld },
      prepare: async (api, context) => {
        await context.grantPermissions(['clipboard-read', 'clipboard-write'])
        api.emit({ title: 'First' }, PAYMENT, { title: 'Third' })
        prepare(api)
        if (isOld) await context.addInitScript(dropRawJson)
      },
    })
    const { page } = opened
    await page.goto(dashboard.url + path)
    const panel = page.locator('.panel')
    const shows = (title: string) => panel.getByRole('heading', { name: title }).waitFor()
    const titles = async () => (await page.locator('article h2').allTextContents()).join()
    const focused = () =>
      page.evaluate(() => document.activeElement?.closest('article')?.textContent ?? '')
    const toPath = () => page.url().slice(dashboard.url.length)
    return { ...opened, panel, shows, titles, focused, toPath }
  }

  test('a link without its project says why it cannot be followed', async () => {
    const busy = { status: 503, code: 'unavailable', error: 'The server is busy' }
    await using it = await visit('/e/evt_2', {
      prepare: api => api.on('GET /api/events/:event/project', () => busy),
    })
    await it.page.getByRole('heading', { name: "Couldn't load event" }).waitFor()
    await it.page.getByText('The server is busy.').waitFor()
    it.api.on('GET /api/events/:event/project', () => ({ raw: 'refused' }))
    await it.page.reload()
    await it.page.getByText("Can't reach the server.").waitFor()
  })

  test('has its time once, and how long ago that is on the same day', async () => {
    await using it = await visit(`/p/${PROJECT}/e/evt_2`)
    await it.shows('New payment')
    expect(await it.panel.locator('.panel-time').textContent()).toMatch(/ UTC · \S+$/)
    it.api.emit({ title: 'Old', timestamp: '2026-01-02T10:20:30.000Z' })
    await it.page.goto(`${dashboard.url}/p/${PROJECT}/e/evt_4`)
    await it.shows('Old')
    expect(await it.panel.locator('.panel-time').textContent()).toBe(
      'Friday, 2 January 2026 at 10:20:30 UTC',
    )
  })

  test('an alarm is acknowledged by its key, and everybody sees who has it until it ends', async () => {
    await using it = await visit(`/p/${PROJECT}/e/evt_4`, {
      prepare: api => {
        const alarm = { title: 'Down', thread: 'shop', level: 'critical' }
        api.emit({ ...alarm, state: 'firing' })
      },
    })
    const { page, api, panel } = it
    await panel.getByRole('button', { name: 'Acknowledge' }).waitFor()
    await page.keyboard.press('a')
    await panel.getByText('Ada Lovelace has it since').waitFor()
    expect(await panel.getByRole('button', { name: 'Acknowledge' }).count()).toBe(0)
    // Somebody else acknowledges another thread, and this one ends.
    api.emit({ title: 'Slow', thread: 'api', state: 'firing' })
    await page.goto(`${dashboard.url}/p/${PROJECT}/e/evt_5`)
    await panel.getByRole('button', { name: 'Acknowledge' }).waitFor()
    const acknowledge = api.handler('POST /api/projects/:id/events/:event/acknowledgement')
    acknowledge({}, new URL(`${dashboard.url}/api/projects/${PROJECT}/events/evt_5/x`))
    await panel.getByText('Ada Lovelace has it since').waitFor()
    api.emit({ title: 'Fast', thread: 'api', state: 'resolved' })
    await panel.getByText('Ada Lovelace has it since').waitFor({ state: 'detached' })
    // A viewer only sees who has it.
    setRole(api, 'viewer')
    await page.goto(`${dashboard.url}/p/${PROJECT}/e/evt_4`)
    await panel.getByText('Ada Lovelace has it since').waitFor()
    expect(await panel.getByRole('button', { name: 'Silence…' }).count()).toBe(0)
    expect(it.problems).toEqual([])
  })

  test('a question is answered below it, in a place that is kept, and by no key', async () => {
    const answer = 'GET /api/projects/:id/events/:event/answer'
    const actions = [
      { id: 'refund', label: 'Refund' },
      { id: 'decline', label: 'Decline' },
    ]
    let isLoaded = false
    await using it = await visit(`/p/${PROJECT}/e/evt_4`, {
      isPhone: true,
      prepare: api => {
        api.emit({ title: 'Refund it?', thread: 'question:evt_4', state: 'running', actions })
        const data = { state: 'waiting', expiresAt: new Date().toISOString() }
        api.on(answer, () => (isLoaded ? { data } : { raw: 'refused' }))
      },
    })
    const bar = it.panel.locator('.question')
    await it.panel.getByText('No deliveries are recorded').waitFor()
    const kept = await bar.boundingBox()
    isLoaded = true
    await it.page.evaluate(() => dispatchEvent(new Event('online')))
    await it.panel.getByRole('button', { name: 'Refund', exact: true }).waitFor()
    expect(await bar.boundingBox()).toEqual(kept)
    expect(kept!.y).toBeGreaterThan((await it.panel.locator('#panel-title').boundingBox())!.y)
    expect(await it.panel.getByText('question:evt_4').count()).toBe(0)
    await it.page.keyboard.press('a')
    expect(it.api.requests).not.toContain(answer.replace('GET', 'POST'))
    const long = ['Reinitialize', 'Deauthenticate', 'Unsubscribe', 'Decommission']
    const more = long.map((word, at) => ({ id: `${at}`, label: `${word} this customer now` }))
    it.api.emit({ title: 'Which?', thread: 'question:evt_5', state: 'running', actions: more })
    await it.page.goto(`${dashboard.url}/p/${PROJECT}/e/evt_5`)
    await it.panel.getByRole('button', { name: /^Decommission/ }).waitFor()
    expect(await bar.evaluate(listBrokenWords)).toEqual([])
  })

  test('opens from its row beside the list, and Escape closes it and returns the focus', async () => {
    await using it = await visit(`/p/${PROJECT}?q=payment`)
    await it.page.getByText('New payment').click()
    await it.shows('New payment')
    expect(it.toPath()).toBe(`/p/${PROJECT}/e/evt_2?q=payment`)
    expect(await it.titles()).toBe('New payment')
    await it.page.keyboard.press('Escape')
    await it.panel.waitFor({ state: 'detached' })
    await until(async () => (await it.focused()).includes('New payment'))
    expect(it.toPath()).toBe(`/p/${PROJECT}?q=payment`)
    await it.page.locator('article:focus-visible').waitFor()
    // The list has no row of this event.
    await it.page.goto(`${dashboard.url}/p/${PROJECT}/e/evt_1?q=payment`)
    await it.shows('First')
    await it.page.locator('article').waitFor()
    await it.page.keyboard.press('Escape')
    await it.page.locator('article:focus-visible').waitFor()
    expect(it.problems).toEqual([])
  })

  test('opens by keyboard: j, Enter or o, then j and k for its neighbours', async () => {
    await using it = await visit(`/p/${PROJECT}`)
    await it.page.getByText('Third').waitFor()
    await it.page.keyboard.press('j')
    await it.page.keyboard.press('o')
    await it.shows('Third')
    await it.page.keyboard.press('j')
    await it.shows('New payment')
    await it.page.keyboard.press('k')
    await it.shows('Third')
    await it.page.goBack()
    await it.shows('New payment')
    await it.page.keyboard.press('Escape')
    await until(async () => (await it.focused()).includes('New payment'))
    await it.page.keyboard.press('Enter')
    await it.shows('New payment')
  })

  test('leads to older events of a search than those that are loaded', async () => {
    await using it = await visit(`/p/${PROJECT}/e/evt_54?channel=chn_payments`, {
      isPhone: true,
      prepare: api => {
        const more = Array.from({ length: 100 }, (_, at) => ({ title: `Event ${at + 4}` }))
        api.emit(...more)
      },
    })
    await it.shows('Event 54')
    await it.panel.getByRole('button', { name: 'Older event' }).click()
    await it.shows('Event 53')
  })

  test('Escape in a form of it leaves the form as it is', async () => {
    await using it = await visit(`/p/${PROJECT}/e/evt_4`, {
      prepare: api =>
        api.emit({ title: 'Down', thread: 'shop', level: 'critical', state: 'firing' }),
    })
    await it.panel.getByRole('button', { name: 'Silence…' }).click()
    await it.panel.getByLabel('Why').fill('A larger disk is ordered')
    await it.panel.getByLabel('How long').focus()
    await it.page.keyboard.press('Escape')
    await it.panel.focus()
    expect(await it.panel.getByLabel('Why').inputValue()).toBe('A larger disk is ordered')
    await it.page.keyboard.press('Escape')
    await it.panel.waitFor({ state: 'detached' })
  })

  test('shows all fields in low lines, and each value links to events with the same value', async () => {
    await using it = await visit(`/p/${PROJECT}/e/evt_2`)
    await it.shows('New payment')
    const text = await it.panel.locator('.panel-body').innerText()
    for (const part of ['By card\nfor a book', 'payments', 'ada@example.com', 'shop', 'amount 42'])
      expect(text).toContain(part)
    expect(text).not.toContain('passed')
    const heights = await it.panel
      .locator('.tree-leaf > summary')
      .evaluateAll(all => all.map(one => one.getBoundingClientRect().height))
    expect(Math.max(0, ...heights)).toBeWithin(1, 33)
    await it.panel.getByText('cvc').click()
    // Searches find neither null nor keys with dots.
    for (const [name, links] of [
      ['passed', [`/p/${PROJECT}?q=meta%3Acard.checks.cvc.passed%3Dtrue`]],
      ['note', []],
      ['a.b', []],
    ] as const) {
      const leaf = it.panel.locator('.tree-leaf', { hasText: name })
      await leaf.locator('summary').click()
      await leaf.getByRole('button', { name: 'Copy' }).waitFor()
      const filters = await leaf.getByRole('link', { name: 'Filter' }).all()
      const found = await Promise.all(filters.map(one => one.getAttribute('href')))
      expect(found).toEqual([...links])
    }
    const link = (name: string) => it.panel.getByRole('link', { name }).first().getAttribute('href')
    expect(await link('payments')).toBe(`/p/${PROJECT}?channel=chn_payments`)
    expect(await link('ada@example.com')).toBe(`/p/${PROJECT}/users/ada%40example.com`)
    await it.panel.getByRole('link', { name: 'vip' }).click()
    await until(() => it.toPath() === `/p/${PROJECT}?q=tag%3Avip`)
  })

  test('an older browser, without JSON.rawJSON, rounds numbers of many digits', async () => {
    await using it = await visit(`/p/${PROJECT}`, {
      isOld: true,
      prepare: api =>
        api.emit({ title: 'Exact', metadata: parseExact('{"id":1152921506151679042}').value }),
    })
    await it.page.getByRole('link', { name: 'Exact' }).click()
    await it.shows('Exact')
    expect(await it.panel.locator('.leaf-number').allTextContents()).toEqual([
      String(1152921506151679042),
    ])
    expect(it.problems).toEqual([])
  })

  test('keeps the digits of numbers, shown, filtered and copied', async () => {
    const json = '{"id":1152921506151679042,"price":1.10,"more":[-0,1e2,"1.10"]}'
    const metadata = parseExact(json).value
    const title = 'Exact'
    const link = `/p/${PROJECT}?q=meta%3Aid%3D1152921506151679042`
    const other = { title: 'Other', metadata: { id: 1152921506151679000 } }
    await using it = await visit(link, { prepare: api => api.emit(other, { title, metadata }) })
    await it.page.getByText(title).waitFor()
    await it.page.getByRole('button', { name: 'Live' }).waitFor()
    it.api.emit(other, { title: 'Next', metadata })
    await it.page.getByRole('link', { name: 'Next' }).waitFor()
    expect(await it.titles()).toBe(`Next,${title}`)
    await it.page.getByRole('link', { name: title }).click()
    await it.shows(title)
    const numbers = await it.panel.locator('.leaf-number').allTextContents()
    expect(numbers).toEqual(['1152921506151679042', '1.10', '-0', '1e2'])
    await it.panel.getByText('1152921506151679042').click()
    const filter = it.panel.locator('.item-actions').getByRole('link', { name: 'Filter' })
    expect(await filter.getAttribute('href')).toBe(link)
    const copy = async (press: () => Promise<void>) => {
      await it.page.evaluate(() => navigator.clipboard.writeText(''))
      await press()
      let text = ''
      await until(async () => {
        text = await it.page.evaluate(() => navigator.clipboard.readText())
        return text !== ''
      })
      return text
    }
    const button = (name: string) => it.panel.getByRole('button', { name, exact: true }).first()
    const actions = it.panel.locator('.item-actions')
    expect(await copy(() => actions.getByRole('button').click())).toBe('1152921506151679042')
    expect((await copy(() => button('Copy').click())).replace(/\s/g, '')).toBe(json)
    await button('More actions for this event').click()
    expect((await copy(() => button('Copy JSON').click())).replace(/\s/g, '')).toContain(json)
    const command = await copy(() => button('Copy curl').click())
    expect(command).toContain(`"metadata":${json}`)
    expect(it.problems).toEqual([])
  })

  test('names its level, and leads where it says', async () => {
    const url = 'https://status.example.com/checkout?q="1"'
    await using it = await visit(`/p/${PROJECT}`, {
      prepare: api => api.emit({ title: 'Checkout is down', level: 'critical', url }),
    })
    await it.page.getByRole('article', { name: 'Critical: Checkout is down' }).click()
    await it.shows('Critical: Checkout is down')
    const link = it.panel.getByRole('link', { name: 'Open status.example.com', exact: true })
    const title = it.panel.getByRole('heading', { level: 2 }).getByRole('link')
    for (const one of [link, title]) {
      expect(await one.getAttribute('href')).toBe(new URL(url).href)
      expect(await one.getAttribute('target')).toBe('_blank')
      expect(await one.getAttribute('rel')).toContain('noopener')
      expect(await one.getAttribute('title')).toBe('Opens in a new tab')
    }
    // Two tab stops beside each other would lead to the same page.
    expect([await title.getAttribute('tabindex'), await link.getAttribute('tabindex')]).toEqual([
      '-1',
      null,
    ])
    await it.panel.locator('dd', { hasText: 'Critical' }).getByRole('link').click()
    await until(async () => (await it.titles()) === 'Critical: Checkout is down')
    expect(new URL(it.page.url()).searchParams.get('q')).toBe('level:critical')
    // An event without these fields has no link and no level.
    await it.page.goto(`${dashboard.url}/p/${PROJECT}/e/evt_2`)
    await it.shows('New payment')
    expect(await it.panel.locator('[target=_blank], .level').count()).toBe(0)
    expect(await it.panel.getByText('Level').count()).toBe(0)
    expect(it.problems).toEqual([])
  })

  test('shows the history of its thread with durations, and what comes meanwhile', async () => {
    const atMs = Date.now() - 3_600_000
    const update = (minutes: number, state: string, more = {}) => ({
      ...{ thread: 'check "out"', title: `It is ${state}`, state, ...more },
      timestamp: new Date(atMs + minutes * 60_000).toISOString(),
    })
    await using it = await visit(`/p/${PROJECT}`, {
      prepare: api =>
        api.emit(update(0, 'firing'), update(8, 'firing', { level: 'high' }), { title: 'Other' }),
    })
    await it.page.getByRole('article', { name: 'It is firing' }).click()
    const history = it.panel.getByRole('region', { name: 'History' })
    const entries = () => history.getByRole('listitem').allInnerTexts()
    await until(async () => (await entries()).length === 2)
    it.api.emit(update(12, 'resolved'))
    await history.getByText('Resolved after 12m').waitFor()
    expect((await entries()).map(text => text.match(/\S+(?=\s*It is)|\S+ after .*/g))).toEqual([
      ['Resolved', '4m after the one before'],
      ['High:', '8m after the one before'],
      ['Firing'],
    ])
    expect(await history.locator('[aria-current]').innerText()).toContain('High')
    await history.getByRole('link').last().click()
    await until(() => it.toPath() === `/p/${PROJECT}/e/evt_4`)
    await until(async () => !(await history.locator('[aria-current]').innerText()).includes('High'))
    // An entry that the list does not show is deleted.
    it.api.requests.splice(0)
    it.api.send({ type: 'deleted', project: PROJECT, seq: 5 })
    await until(() => it.api.requests.includes('GET /api/projects/:id/events'))
    for (const [fact, q] of [
      ['Firing', 'state:firing'],
      ['check "out"', 'thread:'],
    ] as const) {
      const link = it.panel.locator('dd', { hasText: fact }).getByRole('link', { name: 'Filter' })
      expect(
        new URL((await link.getAttribute('href'))!, dashboard.url).searchParams.get('q'),
      ).toStartWith(q)
    }
    expect(it.problems).toEqual([])
  })

  test('its history has equal neighbours once, and three items', async () => {
    const all = ['running', 'running', 'firing', 'running', 'firing', 'firing']
    await using it = await visit(`/p/${PROJECT}/e/evt_9`, {
      prepare: api => api.emit(...all.map(state => ({ title: 'Lag', thread: 'lag', state }))),
    })
    const history = it.panel.getByRole('region', { name: 'History' })
    const entries = async () =>
      (await history.getByRole('link').allInnerTexts()).map(text =>
        text.replace(/\s+/g, ' ').trim(),
      )
    const newest = ['Firing Lag ×2', 'Running Lag', 'Firing Lag']
    await until(async () => Bun.deepEquals(await entries(), newest))
    await history.getByRole('button', { name: 'Show more' }).click()
    await until(async () => Bun.deepEquals(await entries(), [...newest, 'Running Lag ×2']))
  })

  test('has no chip for a tag of white space, and a name for a title that nobody sees', async () => {
    await using it = await visit(`/p/${PROJECT}`, {
      prepare: api => api.emit({ title: '\u200b\u3164', tags: [' ', 'vip', '\u200b'] }),
    })
    const row = it.page.locator('article', { hasText: 'No visible title' })
    await row.waitFor()
    expect(await row.locator('.tag').allTextContents()).toEqual(['vip'])
    await row.getByRole('link', { name: 'No visible title' }).click()
    await it.shows('No visible title')
    expect(await it.panel.locator('.tag').allTextContents()).toEqual(['vip'])
  })

  test('has its actions in one row, also on a phone, and a menu in view, for a member without Delete', async () => {
    await using it = await visit(`/p/${PROJECT}/e/evt_2`, {
      prepare: api => {
        api.emit({ title: 'Newest', channelName: 'a long name of a channel' })
      },
    })
    await it.shows('New payment')
    const actions = it.panel.locator('.panel-actions').getByRole('button')
    const button = (name: string) => it.page.getByRole('button', { name, exact: true })
    const more = button('More actions for this event')
    for (const device of ['wide', 'phone'] as const) {
      await it.become(device)
      // One of them waits for the channels.
      await actions.nth(2).waitFor()
      const boxes = await Promise.all((await actions.all()).map(one => one.boundingBox()))
      expect(boxes).toHaveLength(3)
      expect(new Set(boxes.map(box => box?.y)).size).toBe(1)
      const width = await it.page.evaluate(() => innerWidth)
      const ends = boxes.map(box => box!.x + box!.width)
      for (const [at, end] of ends.entries())
        expect(end).toBeLessThanOrEqual(boxes[at + 1]?.x ?? width)
      await more.click()
      const height = await it.page.evaluate(() => innerHeight)
      for (const name of ['Copy JSON', 'Delete']) {
        const box = (await button(name).boundingBox())!
        expect(box.x).toBeGreaterThanOrEqual(0)
        expect(box.x + box.width).toBeLessThanOrEqual(width)
        expect(box.y + box.height).toBeLessThanOrEqual(height)
      }
      await it.page.keyboard.press('Escape')
    }
    setRole(it.api, 'member')
    await it.page.reload()
    await more.click()
    expect(await button('Copy JSON').isVisible()).toBe(true)
    expect(await button('Delete').count()).toBe(0)
  })

  test('is printed without the pages around it, and a list without the navigation', async () => {
    await using it = await visit(`/p/${PROJECT}`)
    await it.page.getByText('Third').waitFor()
    const around = it.page.locator('.top-bar, .sidebar, .bottom-bar, form[role="search"], .strip')
    expect(await around.filter({ visible: true }).count()).toBeGreaterThan(3)
    await it.page.emulateMedia({ media: 'print' })
    expect(await around.filter({ visible: true }).count()).toBe(0)
    expect(await it.page.getByText('Third').isVisible()).toBe(true)
    await it.page.emulateMedia({ media: 'screen' })
    await it.page.getByText('New payment').click()
    await it.shows('New payment')
    await it.page.emulateMedia({ media: 'print' })
    await it.page.getByText('Third').waitFor({ state: 'hidden' })
    expect(await it.panel.getByText('By card').isVisible()).toBe(true)
    expect(await it.panel.getByRole('button').filter({ visible: true }).count()).toBe(0)
    const { overflowY, position } = await it.panel.evaluate(panel => getComputedStyle(panel))
    expect([overflowY, position]).toEqual(['visible', 'static'])
  })

  test('is found by a link without its project, and an unknown id says so', async () => {
    await using it = await visit('/e/evt_2')
    await it.shows('New payment')
    expect(it.toPath()).toBe(`/p/${PROJECT}/e/evt_2`)
    // An event that is shown stays as it is when the server is busy.
    const busy = it.page.waitForResponse(response => response.status() === 503)
    const event = 'GET /api/projects/:id/events/:event'
    const read = it.api.handler(event)
    it.api.on(event, () => ({ status: 503, code: 'unavailable', error: 'Not now' }))
    await it.page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    await (await busy).finished()
    expect(await it.panel.getByText('Not now').count()).toBe(0)
    it.api.on(event, read)
    await it.page.goto(`${dashboard.url}/p/${PROJECT}/e/evt_9`)
    await it.shows('Event not found')
    await it.page.goto(`${dashboard.url}/e/evt_9`)
    await it.page.getByRole('heading', { name: 'Event not found' }).waitFor()
  })

  test('a link asks for its project, and loads its scripts, beside the first script', async () => {
    const wanted = ['GET /api/me', 'GET /api/events/:event/project']
    const scripts: string[] = []
    await using it = await dashboard.openFaked({
      isPhone: true,
      prepare: async (api, context) => {
        api.emit(PAYMENT)
        context.on('request', request => void scripts.push(request.url()))
        await context.route('**/main.js', async route => {
          await until(() => wanted.every(name => api.requests.includes(name)))
          await until(() => scripts.some(url => url.endsWith('/on-demand-1.js')))
          await route.continue()
        })
      },
    })
    await it.page.goto(`${dashboard.url}/e/evt_1`)
    await it.page.locator('.panel').getByRole('heading', { name: 'New payment' }).waitFor()
    expect(it.api.requests.filter(name => wanted.includes(name)).toSorted()).toEqual(
      wanted.toSorted(),
    )
  })

  test('is a page on a phone, and nothing behind it can be reached', async () => {
    await using it = await visit(`/p/${PROJECT}`, { isPhone: true })
    await it.page.getByRole('article').filter({ hasText: 'New payment' }).locator('.user').tap()
    await it.shows('New payment')
    expect(await it.page.locator('.behind').getAttribute('inert')).not.toBeNull()
    const small = await it.panel.evaluate(panel =>
      [...panel.querySelectorAll('a, button, summary')]
        .map(element => ({ text: element.textContent, box: element.getBoundingClientRect() }))
        .filter(({ box }) => box.height < 44 || box.width < 44)
        .map(({ text, box }) => `${text} ${box.width}x${box.height}`),
    )
    expect(small).toEqual([])
    await it.panel.getByRole('button', { name: 'Close' }).tap()
    await it.panel.waitFor({ state: 'detached' })
  })

  test('a link on a phone draws the list, and marks its events as read, once it is closed', async () => {
    await using it = await visit('/e/evt_2', { isPhone: true })
    const read = 'PUT /api/projects/:id/read'
    const marks = () => it.api.requests.filter(name => name === read)
    await it.shows('New payment')
    await it.settle()
    expect(await it.page.locator('article, .histogram').count()).toBe(0)
    // The same key resumes a list that is in view.
    await it.page.keyboard.press('Space')
    const channels = 'GET /api/projects/:id/channels'
    const countReads = () => it.api.requests.filter(name => name === channels).length
    const before = countReads()
    it.api.send({ type: 'unread', project: PROJECT })
    await until(() => countReads() > before)
    await it.settle()
    expect(marks()).toEqual([])
    await it.panel.getByRole('button', { name: 'Close' }).tap()
    await it.page.locator('article:focus').waitFor()
    await until(() => marks().length > 0)
    await it.settle()
    expect([marks(), it.api.bodies.get(read)]).toEqual([[read], { seq: 3 }])
  })

  test('has links for web addresses in its description and metadata', async () => {
    const docs = 'https://example.com/a_(b)?q=1&r=%C3%A9#top'
    await using it = await visit(`/p/${PROJECT}/e/evt_4`, {
      prepare: api =>
        api.emit({
          ...{ title: 'Deployed', description: `See (${docs}), then HTTP://example.org.` },
          metadata: {
            run: docs,
            text: 'no address: https:// javascript:alert(1) ftp://example.com',
            user: 'https://bank.example@evil.example/',
            hidden: 'https://example.com/\u202egpj.exe',
          },
        }),
    })
    await it.shows('Deployed')
    const links = it.panel.locator('.panel-description a, .tree a')
    const found = await links.evaluateAll(all =>
      all.map(link => [link.getAttribute('href'), link.textContent, link.getAttribute('rel')]),
    )
    const rel = 'noopener noreferrer'
    expect(found).toEqual(
      ['https://example.com/a_(b)?q=1&r=%C3%A9#top', 'HTTP://example.org', docs]
        .concat('https://example.com/')
        .map(href => [href, href, rel]),
    )
    // A link neither leaves the dashboard nor opens the actions of its value.
    await it.context.route(/example/, route => route.fulfill({ body: 'elsewhere' }))
    const [tab] = await Promise.all([it.context.waitForEvent('page'), links.last().click()])
    await tab.close()
    expect(it.toPath()).toBe(`/p/${PROJECT}/e/evt_4`)
    expect(await it.panel.locator('.tree-leaf[open]').count()).toBe(0)
    expect(await it.findBarriers()).toEqual([])
  })
})

/** Runs in the page: lists the words of an element that a line breaks. */
function listBrokenWords(element: Element): string[] {
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT)
  const broken = []
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    for (const { 0: word, index } of (text.textContent ?? '').matchAll(/\S+/g)) {
      const range = new Range()
      range.setStart(text, index)
      range.setEnd(text, index + word.length)
      if (range.getClientRects().length > 1) broken.push(word)
    }
  }
  return broken
}
