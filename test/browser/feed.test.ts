import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Locator } from 'playwright-core'
import { HAS_BROWSER, launch, type TestBrowser, type TestPage } from '../support/chromium.ts'
import { fakeApi, PROJECT, type FakeApi, type FakeEvent } from '../support/fake-api.ts'
import { fillOrganization, setRole } from '../support/fake-organization.ts'
import { fillKeys, fillWebhooks } from '../support/fake-hooks.ts'
import { boot, type Booted } from '../support/server.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(90_000)

const numbered = (from: number, to: number): FakeEvent[] =>
  Array.from({ length: to - from + 1 }, (_, at) => ({ title: `Event ${from + at}` }))

describe.skipIf(!HAS_BROWSER)('dashboard.md §3-4 the feed', () => {
  let server: Booted
  let browser: TestBrowser
  beforeAll(async () => {
    browser = await launch()
    server = await boot()
  })
  afterAll(async () => {
    await browser[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  /** Opens the feed of a project with `count` events; resolves once it is live. */
  async function watch(count: number, { isPhone = false } = {}) {
    let api: FakeApi | undefined
    const opened: TestPage = await browser.open({
      isPhone,
      prepare: async context => {
        api = await fakeApi(context)
        api.emit(...numbered(1, count))
      },
    })
    const { page } = opened
    await page.goto(`${server.url}/p/${PROJECT}`)
    const pill = page.locator('.pill')
    const says = (text: string) => pill.filter({ hasText: text }).waitFor()
    const titles = () => page.locator('article h2').allTextContents()
    const sees = (title: string) => page.getByText(title, { exact: true }).waitFor()
    await says('Live')
    return { ...opened, api: api!, pill, says, titles, sees }
  }

  test('shows new events at once, newest first, and announces them', async () => {
    await using it = await watch(2)
    it.api.emit({ title: 'New payment', icon: '💰', userId: 'ada', tags: ['vip'] })
    await it.sees('New payment')
    expect(await it.titles()).toEqual(['New payment', 'Event 2', 'Event 1'])
    await it.page.getByRole('status').getByText('New event: New payment').waitFor()
    expect(await it.page.getByRole('feed').getByRole('article').count()).toBe(3)
  })

  test('rows are opaque at 100 events a second, and a lone row is animated', async () => {
    await using it = await watch(40)
    await it.page.emulateMedia({ reducedMotion: 'no-preference' })
    const sampling = it.page.evaluate(sampleRows, 1_500)
    const endMs = performance.now() + 1_500
    for (let seq = 41; performance.now() < endMs; seq++) {
      it.api.emit({ title: `Event ${seq}` })
      await new Promise(resolve => setTimeout(resolve, 10))
    }
    const samples = await sampling
    expect(samples.length).toBeGreaterThan(5)
    expect(Math.min(...samples.map(({ rows }) => rows))).toBeGreaterThan(3)
    expect(Math.min(...samples.map(({ opacity }) => opacity))).toBe(1)

    it.api.emit(...numbered(1_001, 1_004))
    await it.sees('Event 1004')
    it.api.emit({ title: 'Alone' })
    await it.sees('Alone')
    const newest = (await it.page.locator('article.row').all()).slice(0, 3)
    const classes = newest.map(row => row.getAttribute('class'))
    expect(await Promise.all(classes)).toEqual(['row fresh', 'row', 'row'])
  })

  test('Space pauses the feed, new events wait, and resuming shows all of them', async () => {
    await using it = await watch(1)
    await it.page.keyboard.press('Space')
    it.api.emit(...numbered(2, 38))
    await it.says('Paused · 37 new')
    expect(await it.titles()).toEqual(['Event 1'])
    await it.page.getByRole('button', { name: '37 new', exact: true }).click()
    await it.sees('Event 38')
    await it.says('Live')
    expect(await it.titles()).toHaveLength(38)
  })

  test('pauses when the reader scrolls away, and resumes at the top', async () => {
    await using it = await watch(40)
    await it.page.mouse.wheel(0, 600)
    await it.says('Paused')
    const before = await it.page.evaluate(() => scrollY)
    it.api.emit(...numbered(41, 43))
    await it.says('Paused · 3 new')
    expect(await it.page.evaluate(() => scrollY)).toBe(before)
    await it.page.evaluate(() => scrollTo(0, 0))
    await it.sees('Event 43')
    await it.says('Live')
  })

  test('j and k move over the rows, which stay in place meanwhile', async () => {
    await using it = await watch(3)
    const focused = () => it.page.evaluate(() => document.activeElement?.textContent ?? '')
    await it.page.keyboard.press('j')
    await it.page.keyboard.press('j')
    expect(await focused()).toContain('Event 2')
    await it.page.keyboard.press('k')
    expect(await focused()).toContain('Event 3')
    it.api.emit({ title: 'Late' })
    await it.says('Paused · 1 new')
    expect(await focused()).toContain('Event 3')
    await it.page.keyboard.press('Space')
    await it.sees('Late')
    await it.says('Live')
  })

  test('pauses while text is selected', async () => {
    await using it = await watch(3)
    const select = (isOn: boolean) =>
      it.page.evaluate(isOn => {
        const title = document.querySelector('article h2')
        if (isOn && title) getSelection()?.selectAllChildren(title)
        else getSelection()?.removeAllRanges()
      }, isOn)
    await select(true)
    await it.says('Paused')
    await select(false)
    await it.says('Live')
  })

  test('keeps 200 rows while it is live, and leads back to removed ones', async () => {
    await using it = await watch(120)
    it.api.emit(...numbered(121, 500))
    await it.sees('Event 500')
    await until(async () => (await it.titles()).length === 200)
    await until(async () => {
      await it.page.evaluate(() => scrollTo(0, document.body.scrollHeight))
      return (await it.titles()).includes('Event 1')
    })
    expect(await it.titles()).toEqual(Array.from({ length: 500 }, (_, at) => `Event ${500 - at}`))
    await it.sees('No older events.')
  })

  test('reconnects after a cut without losing or repeating events', async () => {
    await using it = await watch(1)
    it.api.isTaking = false
    await it.api.cut()
    await it.says('Reconnecting')
    it.api.emit(...numbered(2, 4))
    it.api.isTaking = true
    await it.says('Live')
    await it.sees('Event 4')
    expect(await it.titles()).toEqual(['Event 4', 'Event 3', 'Event 2', 'Event 1'])
    expect(it.api.subscriptions.at(-1)).toMatchObject({ after: 1 })
  })

  test('shows the start of being offline, and reconnects with the network', async () => {
    await using it = await watch(1)
    await it.context.setOffline(true)
    await it.says('Offline since')
    await it.context.setOffline(false)
    await it.says('Live')
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
    await hide(false)
    await it.sees('Event 4')
    expect(await it.page.title()).toBe('Web shop · Tidings')
  })

  test('reliability §9 text of applications stays text', async () => {
    await using it = await watch(0)
    const hostile = '<img src=x onerror=alert(1)><script>alert(1)</script>‮gnp.exe'
    it.api.emit({
      ...{ title: hostile, description: hostile, userId: hostile, channelName: hostile },
      tags: [hostile, 'javascript:alert(1)'],
    })
    await it.page.getByRole('article').waitFor()
    expect(await it.page.locator('article bdi').allTextContents()).toEqual([
      ...Array(5).fill(hostile),
      'javascript:alert(1)',
    ])
    expect(await it.page.locator('article :is(img, script)').count()).toBe(0)
    const links = await it.page.locator('article a').evaluateAll(all => all.map(a => a.outerHTML))
    expect(links).toEqual([expect.stringContaining(`<a href="/p/${PROJECT}/e/evt_1"`)])
    expect(it.problems).toEqual([])
  })

  test('shows a single channel', async () => {
    await using it = await watch(3)
    it.api.emit({ title: 'Deployed', channelName: 'deploys', icon: '🚀' })
    await it.sees('Deployed')
    await it.page.getByRole('link', { name: 'deploys' }).click()
    await until(async () => (await it.titles()).join() === 'Deployed')
    expect(it.api.subscriptions.at(-1).filters).toEqual({ channels: ['chn_deploys'] })
    await it.page.getByRole('link', { name: 'All events' }).click()
    await until(async () => (await it.titles()).length === 4)
  })

  test('shows the way to the first event in an empty project, and then the event', async () => {
    await using it = await watch(0)
    await it.page.getByText(`curl ${server.url}/v1/channels/hello`).waitFor()
    it.api.emit({ title: 'It works', icon: '🎉' })
    await it.sees('It works')
    expect(await it.page.getByText('No events yet').count()).toBe(0)
  })

  test('the project menu switches projects, and the choice is remembered', async () => {
    await using it = await watch(1)
    await it.page.getByRole('button', { name: 'Web shop' }).click()
    await it.page.getByRole('link', { name: 'Newsletter' }).click()
    await until(() => it.page.url().endsWith('/p/prj_2'))
    await it.page.goto(server.url)
    await until(() => it.page.url().endsWith('/p/prj_2'))
  })

  test('the colour scheme is chosen, remembered, and applied before the first paint', async () => {
    await using it = await watch(1)
    await it.page.getByRole('button', { name: 'Account' }).click()
    await it.page.getByText('Dark', { exact: true }).click()
    await it.page.reload({ waitUntil: 'commit' })
    await it.says('Live')
    expect(await it.page.evaluate(() => document.documentElement.dataset['theme'])).toBe('dark')
  })

  test('signing out ends the session on the page and on the server', async () => {
    await using it = await watch(1)
    await it.page.getByRole('button', { name: 'Account' }).click()
    await it.page.getByRole('button', { name: 'Sign out' }).click()
    await it.page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(it.api.requests).toContain('DELETE /api/session')
    await it.page.goto(`${server.url}/p/${PROJECT}`)
    await it.page.getByRole('heading', { name: 'Sign in' }).waitFor()
  })

  test('contract §11 a session that ends elsewhere ends the page, too', async () => {
    await using it = await watch(1)
    it.api.on('GET /api/me', () => ({ status: 401, code: 'signed_out', error: 'Sign in first' }))
    await it.api.cut(1008)
    await it.page.getByRole('heading', { name: 'Sign in' }).waitFor()
  })

  test('an event without an icon has the icon of its channel', async () => {
    await using it = await watch(0)
    it.api.emit({ title: 'Another payment' }, { title: 'New payment', icon: '💰' })
    const row = it.page.locator('article').filter({ hasText: 'Another payment' })
    await row.locator('.icon').getByText('💰').waitFor()
  })

  test.each([
    { device: 'wide', isPhone: false, role: 'owner', isOperator: true },
    { device: 'phone', isPhone: true, role: 'owner', isOperator: true },
    { device: 'wide', isPhone: false, role: 'viewer', isOperator: false },
  ])(
    '§5.3 Settings → API Keys: one group of settings ($device, $role)',
    async ({ isPhone, role, isOperator }) => {
      await using it = await watch(1, { isPhone })
      const { page } = it
      for (const fill of [fillOrganization, fillKeys, fillWebhooks]) fill(it.api)
      setRole(it.api, role, isOperator)
      it.api.emit(...Array.from({ length: 40 }, (_, at) => ({ title: '', channelName: `c${at}` })))
      await page.reload()
      await page.getByRole('link', { name: 'c39' }).waitFor()
      const names = ['API Keys', 'Webhooks', 'Organization', ...(isOperator ? ['Server'] : [])]
      const group = page.getByRole('navigation').getByRole('list', { name: 'Settings' })
      expect(await group.getByRole('link').allTextContents()).toEqual(names)
      // The link is in view beside any number of channels on a wide screen; on a phone the strip
      // scrolls.
      if (!isPhone) expect(await isInView(group.getByRole('link').last())).toBe(true)

      await page.getByRole('button', { name: 'Account' }).click()
      const menu = page.locator('#account-menu section').filter({ hasText: 'Settings' })
      expect(await menu.getByRole('link').allTextContents()).toEqual(names)
      await menu.getByRole('link', { name: 'API Keys' }).click()
      await page.getByRole('heading', { name: 'API Keys', level: 1 }).waitFor()
      for (const name of names) {
        await group.getByRole('link', { name }).click()
        await group.locator('[aria-current]').getByText(name).waitFor()
        await page.getByRole('heading', { level: 1 }).waitFor()
        await until(() => isInView(group.locator('[aria-current]')))
      }
      await page.keyboard.press('Control+k')
      await page.keyboard.type('settings')
      const found = page.getByRole('option').filter({ hasText: 'Settings:' })
      expect(await found.count()).toBe(names.length)
      expect(it.problems).toEqual([])
    },
  )

  test('on a phone the current page is visible in the strip of pages', async () => {
    await using it = await watch(1, { isPhone: true })
    await it.page.goto(`${server.url}/p/${PROJECT}/keys`)
    await it.page.waitForFunction(() => {
      const box = document.querySelector('.sidebar [aria-current]')?.getBoundingClientRect()
      return box && box.left >= 0 && box.right <= innerWidth
    })
  })

  test('on a phone every control is large enough', async () => {
    await using it = await watch(3, { isPhone: true })
    const small = await it.page.evaluate(() =>
      // The whole row is the control, not its link.
      [...document.querySelectorAll('a:not(.skip, article a), button, summary')]
        .filter(element => element.checkVisibility())
        .map(element => ({ text: element.textContent, box: element.getBoundingClientRect() }))
        .filter(({ box }) => box.height < 44 || box.width < 44)
        .map(({ text, box }) => `${text} ${box.width}x${box.height}`),
    )
    expect(small).toEqual([])
  })
})

function isInView(element: Locator): Promise<boolean> {
  return element.evaluate(one => {
    const { left, right, top, bottom } = one.getBoundingClientRect()
    return left >= 0 && right <= innerWidth && top >= 0 && bottom <= innerHeight
  })
}

/** Runs in the page: samples the rows in view and the lowest painted opacity at every frame. */
function sampleRows(lengthMs: number): Promise<{ rows: number; opacity: number }[]> {
  const samples: { rows: number; opacity: number }[] = []
  const endMs = performance.now() + lengthMs
  const toOpacity = (element: Element | null): number =>
    element ? Number(getComputedStyle(element).opacity) * toOpacity(element.parentElement) : 1
  return new Promise(resolve => {
    const sample = () => {
      const rows = [...document.querySelectorAll('article.row')].filter(row => {
        const { top, bottom } = row.getBoundingClientRect()
        return bottom > 0 && top < innerHeight
      })
      const opacities = rows.flatMap(row => [row, ...row.querySelectorAll('h2, p, time')])
      samples.push({ rows: rows.length, opacity: Math.min(...opacities.map(toOpacity)) })
      if (performance.now() < endMs) requestAnimationFrame(sample)
      else resolve(samples)
    }
    sample()
  })
}
