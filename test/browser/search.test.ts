import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { HAS_BROWSER, launch, type TestBrowser, type TestPage } from '../support/chromium.ts'
import { fakeApi, PROJECT, type FakeApi } from '../support/fake-api.ts'
import { boot, type Booted } from '../support/server.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(90_000)

describe.skipIf(!HAS_BROWSER)('dashboard.md §3 the search', () => {
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

  /** Opens the feed at an address of the project; resolves once it is live. */
  async function look(query = '', prepare: (api: FakeApi) => void = () => {}) {
    let api: FakeApi | undefined
    const opened: TestPage = await browser.open({
      prepare: async context => {
        api = await fakeApi(context)
        api.emit(
          { title: 'Backup finished', channelName: 'ops', tags: ['nightly'] },
          { title: 'New payment', channelName: 'payments', userId: 'ada', tags: ['vip'] },
          { title: 'Payment failed', channelName: 'payments', userId: 'grace' },
        )
        prepare(api)
      },
    })
    const { page } = opened
    await page.goto(`${server.url}/p/${PROJECT}${query}`)
    const box = page.getByRole('searchbox', { name: 'Search events' })
    const titles = async () => (await page.locator('article h2').allTextContents()).join()
    const search = async (text: string) => {
      await box.fill(text)
      await box.press('Enter')
    }
    const toQuery = () => Object.fromEntries(new URL(page.url()).searchParams)
    return { ...opened, api: api!, box, titles, search, toQuery }
  }

  test('a typed search is in the address, the list and the socket', async () => {
    await using it = await look()
    await it.page.getByText('Live', { exact: true }).waitFor()
    await it.page.keyboard.press('/')
    await it.page.keyboard.type('tag:vip user:ada')
    await it.page.keyboard.press('Enter')
    await until(async () => (await it.titles()) === 'New payment')
    expect(it.toQuery()).toEqual({ q: 'tag:vip user:ada' })
    await until(() => it.api.subscriptions.at(-1).filters.userId === 'ada')
    expect(it.api.subscriptions.at(-1).filters).toEqual({ tags: ['vip'], userId: 'ada' })
    it.api.emit({ title: 'Other' }, { title: 'Third payment', userId: 'ada', tags: ['vip'] })
    await until(async () => (await it.titles()) === 'Third payment,New payment')
    await it.page.goBack()
    await until(async () => (await it.titles()).includes('Backup finished'))
    expect(await it.box.inputValue()).toBe('')
    expect(it.problems).toEqual([])
  })

  test('an address opens the same search, and each filter can be removed', async () => {
    await using it = await look('?q=payment+-tag%3Avip&channel=chn_payments')
    await until(async () => (await it.titles()) === 'Payment failed')
    const chips = it.page.getByRole('list', { name: 'Filters' }).getByRole('listitem')
    expect(await chips.allTextContents()).toEqual([
      'channel payments',
      'not tag vip',
      'word payment',
      'Clear all',
    ])
    await it.page.getByRole('button', { name: 'Remove not tag vip' }).click()
    await until(async () => (await it.titles()) === 'Payment failed,New payment')
    expect(it.toQuery()).toEqual({ channel: 'chn_payments', q: 'payment' })
    expect(await it.box.evaluate(box => box === document.activeElement)).toBe(true)
    await it.page.getByRole('button', { name: 'Clear all' }).click()
    await until(async () => (await it.titles()).includes('Backup finished'))
    expect(it.toQuery()).toEqual({})
  })

  test('filters that need the server refresh when events arrive, and say so', async () => {
    await using it = await look('?q=%22payment+failed%22+-test')
    await until(async () => (await it.titles()) === 'Payment failed')
    await it.page.getByText('New matches for this search appear').waitFor()
    await it.page.getByText('Live', { exact: true }).waitFor()
    it.api.emit({ title: 'A payment failed test' }, { title: 'Another payment failed' })
    await until(async () => (await it.titles()) === 'Another payment failed,Payment failed')
  })

  test('invalid terms are reported at the box, and nothing is requested', async () => {
    await using it = await look('?q=before%3Ayesterday+has%3Aeverything')
    await it.page.getByText('before: Must be a date').waitFor()
    await it.page.getByText('has: Must be one of description').waitFor()
    expect(await it.box.getAttribute('aria-invalid')).toBe('true')
    expect(it.api.requests).not.toContain('GET /api/projects/:id/events')
    await it.search('backup')
    await until(async () => (await it.titles()) === 'Backup finished')
    expect(await it.box.getAttribute('aria-invalid')).toBe('false')
  })

  test('terms that the server refuses are reported there, too', async () => {
    await using it = await look('?q=x', api =>
      api.on('GET /api/projects/:id/events', () => ({
        status: 400,
        details: [{ path: ['q'], message: 'Must have at most 3 terms', code: 'too_many' }],
      })),
    )
    await it.page.getByRole('alert').getByText('Must have at most 3 terms').waitFor()
  })

  test('an empty result offers a way out', async () => {
    await using it = await look('?q=nowhere')
    await it.page.getByRole('heading', { name: 'No matching events' }).waitFor()
    await it.page.getByRole('link', { name: 'Clear search' }).click()
    await until(async () => (await it.titles()).includes('Backup finished'))
  })

  test('short and empty pages are followed, and long searches on request alone', async () => {
    await using it = await look('?q=rare', api => {
      const list = api.handler('GET /api/projects/:id/events')
      api.on('GET /api/projects/:id/events', (body, url) => {
        const left = Number(url.searchParams.get('cursor') ?? 1_023) - 1
        if (left > 1_000) return { data: { items: [], nextCursor: String(left) } }
        url.searchParams.set('q', 'backup')
        return list(body, url)
      })
    })
    await it.page.getByRole('heading', { name: 'No matches yet' }).waitFor()
    await it.page.getByRole('button', { name: 'Search older events' }).click()
    await until(async () => (await it.titles()) === 'Backup finished')
  })

  test('a search marks nothing as read', async () => {
    await using it = await look('?q=backup')
    await until(async () => (await it.titles()) === 'Backup finished')
    expect(it.api.requests.filter(name => name.startsWith('PUT'))).toEqual([])
  })

  test('reliability §9 a filter stays text, and the channel can be changed within a search', async () => {
    const hostile = '<img/src=x/onerror=alert(1)>'
    await using it = await look(`?q=${encodeURIComponent(`tag:${hostile} channel:ops`)}`)
    await it.page.getByText('No matching events').waitFor()
    expect(await it.page.locator('.chip bdi').allTextContents()).toEqual(['ops', hostile])
    await it.page.getByRole('link', { name: 'payments' }).click()
    await until(() => it.toQuery()['channel'] === 'chn_payments')
    expect(it.toQuery()['q']).toBe(`tag:${hostile}`)
    expect(it.problems).toEqual([])
  })
})
