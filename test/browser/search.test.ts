import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { HAS_BROWSER } from '../support/clients/chromium.ts'
import { PROJECT, type FakeApi } from '../support/fakes/api.ts'
import { fillViews } from '../support/fakes/shop.ts'
import { until } from '../support/until.ts'
import { openDashboard, type Dashboard } from '../support/worlds/dashboard.ts'

describe.skipIf(!HAS_BROWSER)('dashboard.md §3 the search', () => {
  let dashboard: Dashboard
  beforeAll(async () => {
    dashboard = await openDashboard()
  })
  afterAll(() => dashboard[Symbol.asyncDispose]())

  /** Opens the feed at an address of the project; resolves once it is live. */
  async function look(
    query = '',
    prepare: (api: FakeApi) => void = () => {},
    { timezoneId = 'UTC', isNew = false, isPhone = false, hasClock = false } = {},
  ) {
    const opened = await dashboard.openFaked({
      ...{ timezoneId, isNew, hasClock },
      prepare: api => {
        api.emit(
          { title: 'Backup finished', channelName: 'ops', tags: ['nightly'] },
          { title: 'New payment', channelName: 'payments', userId: 'ada', tags: ['vip'] },
          { title: 'Payment failed', channelName: 'payments', userId: 'grace' },
        )
        prepare(api)
      },
    })
    const { page } = opened
    if (isPhone) await opened.become('phone')
    await page.goto(`${dashboard.url}/p/${PROJECT}${query}`)
    const box = page.locator('#search')
    const titles = async () => (await page.locator('article h2').allTextContents()).join()
    const search = async (text: string) => {
      await box.fill(text)
      await box.press('Enter')
    }
    const toQuery = () => Object.fromEntries(new URL(page.url()).searchParams)
    return { ...opened, box, titles, search, toQuery }
  }

  test('a typed search is in the address, the list and the socket', async () => {
    await using it = await look()
    await it.page.getByText('Live', { exact: true }).waitFor()
    await it.page.keyboard.press('/')
    await it.page.keyboard.type('tag:vip user:"ada"')
    await it.page.keyboard.press('Enter')
    await until(async () => (await it.titles()) === 'New payment')
    expect(it.toQuery()).toEqual({ q: 'tag:vip user:"ada"' })
    await until(() => it.api.subscriptions.at(-1).search.q === 'tag:vip user:"ada"')
    it.api.emit({ title: 'Other' }, { title: 'Third payment', userId: 'ada', tags: ['vip'] })
    await until(async () => (await it.titles()) === 'Third payment,New payment')
    await it.page.goBack()
    await until(async () => (await it.titles()).includes('Backup finished'))
    expect(await it.box.inputValue()).toBe('')
    expect(it.problems).toEqual([])
  })

  test('results follow typing, and Back leaves the search as a whole', async () => {
    await using it = await look()
    await it.page.getByText('Live', { exact: true }).waitFor()
    const entries = () => it.page.evaluate(() => history.length)
    const before = await entries()
    await it.page.keyboard.press('/')
    await it.page.keyboard.type('paym')
    await until(async () => (await it.titles()) === 'Payment failed,New payment')
    await it.page.keyboard.type('ent after:2d failed')
    await until(async () => (await it.titles()) === 'Payment failed')
    expect(await it.box.inputValue()).toBe('payment after:2d failed')
    const histogram = it.page.getByRole('region', { name: 'Events over time' })
    await until(async () => !(await histogram.innerText()).includes('Counting'))
    expect(await histogram.innerText()).toMatch(/^\d+ events?\b/)
    // A complete and wrong part is explained.
    await it.page.keyboard.type(' after:x y')
    await it.page.getByRole('alert').getByText('Write a date').waitFor()
    expect([await entries(), it.toQuery()]).toEqual([before + 1, { q: 'payment after:2d failed' }])
    await it.page.goBack()
    await until(async () => (await it.titles()).includes('Backup finished'))
    expect(await it.box.inputValue()).toBe('')
    await it.page.goForward()
    await until(async () => (await it.box.inputValue()) === 'payment after:2d failed')
    // Choosing a suggestion searches, too.
    await it.box.fill('level:norm')
    await it.page.getByRole('option', { name: 'normal' }).click()
    await until(() => it.toQuery()['q'] === 'level:normal')
    expect(it.problems).toEqual([])
  })

  test('results follow typing also when the box is left at once', async () => {
    await using it = await look()
    await until(async () => (await it.titles()).includes('Backup finished'))
    await it.box.focus()
    await it.box.evaluate((box: HTMLInputElement) => {
      box.value = 'payment'
      box.dispatchEvent(new Event('input', { bubbles: true }))
      box.blur()
    })
    await until(async () => (await it.titles()) === 'Payment failed,New payment')
    expect(it.toQuery()).toEqual({ q: 'payment' })
  })

  test('an address opens the same search, and each filter can be removed', async () => {
    await using it = await look('?q=payment+-tag%3Avip&channel=chn_payments')
    await until(async () => (await it.titles()) === 'Payment failed')
    // A search marks nothing as read.
    await it.settle()
    expect(it.api.requests.filter(name => name.startsWith('PUT'))).toEqual([])
    const chips = it.page.getByRole('list', { name: 'Filters' }).getByRole('listitem')
    // The name of a channel comes with the list of channels.
    await chips.getByText('channel payments').waitFor()
    expect(await chips.allTextContents()).toEqual([
      'channel payments',
      'word payment',
      'not tag vip',
      'Clear allAdd to insightsSave this search',
    ])
    await it.page.getByRole('button', { name: 'Remove not tag vip' }).click()
    await until(async () => (await it.titles()) === 'Payment failed,New payment')
    expect(it.toQuery()).toEqual({ channel: 'chn_payments', q: 'payment' })
    expect(await it.box.evaluate(box => box === document.activeElement)).toBe(true)
    await it.page.getByRole('button', { name: 'Clear all' }).click()
    await until(async () => (await it.titles()).includes('Backup finished'))
    expect(it.toQuery()).toEqual({})
  })

  test('a search that is saved is not saved again, on a phone without the list of views', async () => {
    const view = { id: 'viw_1', name: 'VIPs', q: 'tag:vip', isShared: false, hasBell: false }
    await using it = await look(
      '?q=tag%3Avip',
      api => api.on('GET /api/projects/:id/views', () => ({ data: { items: [view] } })),
      { isPhone: true },
    )
    await until(async () => (await it.titles()) === 'New payment')
    await it.settle()
    const save = it.page.getByRole('button', { name: 'Save this search' })
    expect(await save.count()).toBe(0)
    await it.search('tag:nightly')
    await save.waitFor()
  })

  test('a view that was renamed has nothing unsaved', async () => {
    await using it = await look('', fillViews)
    it.api.on('PATCH /api/projects/:id/views/viw_1', () => ({ data: {} }))
    await it.page.getByRole('button', { name: 'Manage views' }).click()
    const form = it.page.locator('form.name-view').first()
    await form.getByLabel('Name').fill('Renamed')
    expect(await form.getAttribute('data-changed')).toBe('')
    await form.getByRole('button', { name: 'Save' }).click()
    await until(async () => (await form.getAttribute('data-changed')) === null)
  })

  test('levels are filters with chips', async () => {
    await using it = await look('?q=level%3E%3Dhigh+-level%3Acritical', api =>
      api.emit({ title: 'Slow', level: 'high' }, { title: 'Down', level: 'critical' }),
    )
    await until(async () => (await it.titles()) === 'High: Slow')
    expect(await it.page.locator('.chip').allTextContents()).toEqual([
      'level high or higher',
      'not level critical',
    ])
    await it.page.getByRole('button', { name: 'Remove not level critical' }).click()
    await until(async () => (await it.titles()) === 'Critical: Down,High: Slow')
  })

  test('users are found by a beginning, and a whole user is suggested in quotes', async () => {
    await using it = await look('', api => {
      api.on('GET /api/projects/:id/suggestions', () => ({
        data: { items: [{ value: 'ada', label: 'Ada Lovelace' }] },
      }))
    })
    await it.page.getByText('Live', { exact: true }).waitFor()
    await it.search('user:AD')
    await until(async () => (await it.titles()) === 'New payment')
    expect(await it.page.locator('.chip').first().textContent()).toBe('user AD…')
    it.api.emit({ title: 'Of nobody' }, { title: 'Of adam', userId: 'adam' })
    await until(async () => (await it.titles()) === 'Of adam,New payment')
    await it.box.fill('user:ada')
    await it.page.getByRole('option', { name: 'Ada Lovelace ada' }).click()
    expect(await it.box.inputValue()).toBe('user:"ada" ')
    await it.box.press('Enter')
    await until(async () => (await it.titles()) === 'New payment')
    expect(it.toQuery()).toEqual({ q: 'user:"ada"' })
    expect(it.problems).toEqual([])
  })

  test('Enter explains an unfinished part, and the rest after typing does not hide that', async () => {
    await using it = await look('', undefined, { hasClock: true })
    await until(async () => (await it.titles()).includes('Backup finished'))
    await it.box.focus()
    await it.search('(failed')
    const issue = it.page.getByRole('alert').getByText('closing parenthesis')
    await issue.waitFor()
    await it.page.clock.runFor(1_000)
    expect(await issue.isVisible()).toBe(true)
    expect(it.toQuery()).toEqual({})
  })

  test('an invalid part is explained and can be mended, and the list stays as it is', async () => {
    await using it = await look()
    await until(async () => (await it.titles()).includes('Backup finished'))
    await it.search('payment after:2days')
    await it.page.getByRole('alert').getByText('Write a date, a date with a time').waitFor()
    expect(await it.box.getAttribute('aria-invalid')).toBe('true')
    expect([await it.titles(), it.toQuery()]).toEqual([
      'Payment failed,New payment,Backup finished',
      {},
    ])
    await it.page.getByRole('button', { name: 'Did you mean payment after:2d?' }).click()
    await until(async () => (await it.titles()) === 'Payment failed,New payment')
    expect(it.toQuery()).toEqual({ q: 'payment after:2d' })
    expect(await it.box.getAttribute('aria-invalid')).toBe('false')

    await it.search('chanel:ops')
    await it.page.getByText('chanel: is not a filter').waitFor()
    await it.page.getByRole('button', { name: 'Did you mean channel:ops?' }).click()
    await until(async () => (await it.titles()) === 'Backup finished')
    await it.search('tag:nightly OR (payment -failed)')
    await until(async () => (await it.titles()) === 'New payment,Backup finished')
    expect(it.problems).toEqual([])
  })

  test('dates are the days of the reader, in the list, the histogram, the socket and a shared link', async () => {
    const last = Date.parse('2026-01-01T22:30:00Z')
    const prepare = (api: FakeApi) =>
      api.emit(
        // In Kathmandu, the last moment of a year and the first of the next one.
        { title: 'Old year', timestamp: '2025-12-31T18:14:59.999Z' },
        { title: 'New year', timestamp: '2025-12-31T18:15:00.000Z' },
        { title: 'Last', timestamp: new Date(last).toISOString() },
      )
    await using it = await look('', prepare, { timezoneId: 'Asia/Kathmandu', isNew: true })
    await it.page.clock.setFixedTime('2026-11-20T12:00:00Z')
    await it.page.reload()
    await it.page.getByText('Live', { exact: true }).waitFor()
    const asked: (string | null)[] = []
    const count = it.api.handler('GET /api/projects/:id/histogram')
    it.api.on('GET /api/projects/:id/histogram', (body, url) => {
      asked.push(url.searchParams.get('q'))
      return count(body, url)
    })
    await it.search('after:2026-01-01 before:2026-01-02T04:15')
    await until(async () => (await it.titles()) === 'New year')
    const exact = 'after:2025-12-31T18:15Z before:2026-01-01T22:30Z'
    expect(it.toQuery()).toEqual({ q: exact })
    await until(() => asked.includes(exact))
    expect(await it.box.inputValue()).toBe('after:2026-01-01 before:2026-01-02T04:15')
    const chips = await it.page.locator('.chip').allTextContents()
    expect(chips.map(text => text.replace(/\s+/g, ' '))).toEqual([
      'after 1 Jan',
      'before 2 Jan, 4:15',
    ])
    it.api.emit(
      { title: 'Too early', timestamp: '2025-12-31T18:14:59Z' },
      { title: 'In time', timestamp: '2025-12-31T18:15:01Z' },
      { title: 'Too late', timestamp: new Date(last).toISOString() },
    )
    await until(async () => (await it.titles()) === 'In time,New year')
    // The last day is part of the choice, and the button of the histogram gives way.
    await it.page.getByRole('button', { name: '24 h', exact: true }).click()
    await until(() => it.toQuery()['from'] === '24h')
    await it.page.getByRole('button', { name: 'Choose days' }).click()
    const lastDay = it.page.getByLabel('Last day')
    expect(await lastDay.inputValue()).toBe('2026-01-02')
    await lastDay.fill('2026-01-01')
    await it.page.getByRole('button', { name: 'Show these days' }).click()
    await until(() => it.toQuery()['q'] === 'after:2025-12-31T18:15Z before:2026-01-01T18:15Z')
    expect(it.toQuery()['from']).toBeUndefined()
    expect(await it.page.locator('#dates').isHidden()).toBe(true)
    await it.page.goBack()
    await it.page.goBack()
    await until(() => it.toQuery()['q'] === exact && it.toQuery()['from'] === undefined)
    // Enter without a change leaves the address as it is.
    await it.box.press('Enter')
    expect(it.toQuery()).toEqual({ q: exact })

    await it.search('after:2026-02-30')
    await it.page.getByRole('alert').getByText('This date does not exist').waitFor()
    expect(it.toQuery()).toEqual({ q: exact })

    await using other = await look(new URL(it.page.url()).search, prepare, {
      timezoneId: 'America/New_York',
    })
    await until(async () => (await other.titles()) === 'New year')
    expect(await other.box.inputValue()).toBe('after:2025-12-31T13:15 before:2026-01-01T17:30')
    expect([it.problems, other.problems]).toEqual([[], []])
  })

  test('filters and their values are suggested, by keyboard and pointer', async () => {
    const asked: string[] = []
    await using it = await look('', api =>
      api.on('GET /api/projects/:id/suggestions', (_, { searchParams }) => {
        asked.push(searchParams.toString())
        const [field, text = ''] = [searchParams.get('field'), searchParams.get('text') ?? '']
        const known = field === 'tag' ? ['vip', 'nightly'] : ['New payments']
        return {
          data: {
            items: known.filter(one => one.startsWith(text)).map(value => ({ value, label: null })),
          },
        }
      }),
    )
    await it.box.focus()
    const list = it.page.getByRole('listbox', { name: 'Suggestions' })
    const names = () => list.getByRole('option').locator('bdi:first-child').allTextContents()
    await until(async () => (await names()).includes('channel:'))
    expect(await it.box.getAttribute('role')).toBe('combobox')
    await it.page.keyboard.type('ta')
    await until(async () => (await names()).join() === 'tag:')
    await it.page.keyboard.press('ArrowDown')
    await until(async () => {
      const active = await it.box.getAttribute('aria-activedescendant')
      return (
        active !== null &&
        (await list.locator('[aria-selected=true]').getAttribute('id')) === active
      )
    })
    await it.page.keyboard.press('Enter')
    await until(async () => (await names()).join() === 'vip,nightly')
    await it.page.keyboard.type('ni')
    await until(async () => (await names()).join() === 'nightly')
    await it.page.keyboard.press('ArrowDown')
    await it.page.keyboard.press('Tab')
    expect(await it.box.inputValue()).toBe('tag:nightly ')
    await it.page.keyboard.type('OR channel:N')
    await list.getByRole('option').click()
    expect(await it.box.inputValue()).toBe('tag:nightly OR channel:"New payments" ')
    await it.page.keyboard.type('level:')
    await until(async () => (await names()).join() === 'low,normal,high,critical')
    await it.page.keyboard.type('high has:')
    await until(async () => (await names()).includes('metadata'))
    await it.page.keyboard.press('Escape')
    await list.waitFor({ state: 'hidden' })
    expect(await it.box.evaluate(box => box === document.activeElement)).toBe(true)
    // An answer that comes later does not open it again.
    await it.page.keyboard.type('metadata tag:')
    await until(async () => (await names()).join() === 'vip,nightly')
    const held: (() => void)[] = []
    it.api.hold = () => new Promise(resolve => held.push(resolve))
    const requests = it.page.waitForRequest(/suggestions/)
    await it.page.keyboard.type('n')
    await requests
    await it.page.keyboard.press('Escape')
    await list.waitFor({ state: 'hidden' })
    const answered = it.page.waitForResponse(/suggestions/)
    it.api.hold = () => Promise.resolve()
    for (const release of held) release()
    await (await answered).finished()
    await it.page.evaluate(() => new Promise(resolve => setTimeout(resolve)))
    expect(await list.isHidden()).toBe(true)
    expect(asked).toContain('field=channel&text=N')
    await it.search('tag:nightly OR ghost')
    await until(async () => (await it.titles()) === 'Backup finished')
    await list.waitFor({ state: 'hidden' })
    expect(it.problems).toEqual([])
  })

  test('an address with an invalid part shows what the rest finds', async () => {
    await using it = await look('?q=has%3Aeverything+backup')
    await it.page.getByRole('alert').getByText('Write what an event has').waitFor()
    await until(async () => (await it.titles()) === 'Backup finished')
    expect(await it.box.getAttribute('aria-invalid')).toBe('true')
  })

  test('a time without a zone in an address is reported, and Enter gives it the zone of the reader', async () => {
    await using it = await look('?q=after%3A2030-01-01T00%3A00', undefined, {
      timezoneId: 'Europe/Berlin',
    })
    await it.page.getByRole('alert').getByText('Press Enter to use yours').waitFor()
    expect(await it.box.getAttribute('aria-invalid')).toBe('true')
    await it.box.press('Enter')
    await until(() => it.toQuery()['q'] === 'after:2029-12-31T23:00Z')
    await until(async () => (await it.box.getAttribute('aria-invalid')) === 'false')
    expect(await it.box.inputValue()).toBe('after:2030-01-01')
    const entries = await it.page.evaluate(() => history.length)
    await it.search('after:2030-01-01T00:00')
    await it.search('after:2030-01-01T00:00 vip')
    await until(() => it.toQuery()['q'] === 'after:2029-12-31T23:00Z vip')
    expect(await it.page.evaluate(() => history.length)).toBe(entries + 1)
  })

  test('chips show the times of the reader, also of groups and of unusual ranges', async () => {
    await using it = await look(
      '?q=(x+OR+after%3A2025-12-31T23%3A00Z)&from=20251101T093000Z&to=2025-11-02T09:30%2B01',
      undefined,
      { timezoneId: 'Europe/Berlin' },
    )
    const chips = it.page.getByRole('list', { name: 'Filters' })
    await chips.getByText('after:2026-01-01').waitFor()
    expect(await chips.textContent()).toMatch(/Nov.*10:30.*Nov.*9:30/)
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

  test('reliability §9 a filter stays text, and the channel can be changed within a search', async () => {
    const hostile = '<img/src=x/onerror=alert(1)>'
    await using it = await look(`?q=${encodeURIComponent(`tag:${hostile} channel:ops`)}`)
    await it.page.getByText('No matching events').waitFor()
    expect(await it.page.locator('.chip bdi').allTextContents()).toEqual([hostile, 'ops'])
    await it.page.getByRole('link', { name: 'payments' }).click()
    await until(() => it.toQuery()['channel'] === 'chn_payments')
    expect(it.toQuery()['q']).toBe(`tag:${hostile}`)
    expect(it.problems).toEqual([])
  })
})
