import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { HAS_BROWSER, measureShift } from '../support/clients/chromium.ts'
import { PROJECT } from '../support/fakes/api.ts'
import { fillBoard } from '../support/fakes/insights.ts'
import { newMember, type SignedInAccount } from '../support/worlds/signed-in-account.ts'
import { newTenant } from '../support/worlds/tenant.ts'
import { until } from '../support/until.ts'
import { openDashboard, type Dashboard } from '../support/worlds/dashboard.ts'

describe.skipIf(!HAS_BROWSER)('dashboard.md insights', () => {
  let dashboard: Dashboard
  beforeAll(async () => {
    dashboard = await openDashboard()
  })
  afterAll(() => dashboard[Symbol.asyncDispose]())

  async function visit(account: SignedInAccount, path: string, isPhone = false) {
    const opened = await dashboard.openFor(account, { isPhone })
    const { page } = opened
    await page.goto(dashboard.url + path)
    const button = (name: string) => page.getByRole('button', { name, exact: true })
    const titles = async () => (await page.locator('.card h2').allTextContents()).join()
    return { ...opened, button, titles }
  }

  test('a form makes cards of searches, and cards are moved, changed, deleted and restored', async () => {
    const { account, organization, send, identify } = await newTenant(dashboard.server, 'member')
    await identify('u1', [], { name: 'Ada' })
    for (const userId of ['u1', 'u1', 'u2'])
      await send({ channelName: 'payments', tags: ['vip', userId], userId })
    await send({ channelName: 'payments' })
    const project = `/p/${organization.project.id}`
    await using it = await visit(account, `${project}?q=tag%3Avip&from=24h`)
    const { page } = it
    await page.getByRole('link', { name: 'Add to insights' }).click()
    await page.getByLabel('Show as').selectOption('number')
    await it.button('Add').click()
    const number = page.locator('.card').filter({ hasText: 'tag:vip' })
    await number.getByText('3', { exact: true }).waitFor()
    // It counts whole hours, and so does the list of what it counts.
    await number.getByText(/since \d+ \w+, \d+:\d\d$/).waitFor()
    expect(await number.getByRole('link').getAttribute('href')).toMatch(/T\d\d%3A00Z$/)
    expect(new URL(page.url()).search).toBe('')

    for (const kind of ['series', 'top']) {
      await it.button('Add a card').click()
      await page.getByLabel('Show as').selectOption(kind)
      if (kind === 'top') await page.getByLabel('Count by').selectOption('user')
      await it.button('Add').click()
      await it.button('Add a card').waitFor()
    }
    await page.locator('.card .bars').waitFor()
    const chart = page.locator('.card').filter({ has: page.locator('.bars') })
    await chart.getByText('4 events').waitFor()
    await chart.getByText('Show as table').click()
    expect(await chart.locator('tbody td').first().textContent()).toBe('4')
    // On a phone, no heading is broken into its letters.
    await page.setViewportSize({ width: 390, height: 844 })
    const heads = await chart.locator('thead th').all()
    const heights = await Promise.all(heads.map(async head => (await head.boundingBox())?.height))
    expect(heights.every(height => height !== undefined && height < 40)).toBe(true)
    // The results and the chart take the place that was left for them.
    const results = '**/insights/*/result'
    await page.route(results, async route => {
      await page.locator('.card .loading').nth(2).waitFor()
      await route.continue()
    })
    await page.reload()
    await page.locator('.card .bars').waitFor()
    expect((await measureShift(page)).sum).toBeLessThan(0.05)
    await page.unroute(results)
    await page.setViewportSize({ width: 1280, height: 860 })
    const users = page.locator('.card').filter({ hasText: 'Top users' })
    expect(await users.locator('tbody tr').allTextContents()).toEqual(['Ada2', 'u21'])

    // The button keeps the focus.
    expect(await it.titles()).toBe('Events,Events over time,Top users')
    await it.button('Settings of Top users').click()
    await it.button('Move earlier').press('Enter')
    await until(async () => (await it.titles()) === 'Events,Top users,Events over time')
    await page.getByText('Top users is now at place 2 of 3.').waitFor({ state: 'attached' })
    await page.keyboard.press('Enter')
    await until(async () => (await it.titles()) === 'Top users,Events,Events over time')
    await it.button('Settings of Top users').click()
    await it.button('Settings of Events').first().click()
    await it.button('Move later').click()
    await until(async () => (await it.titles()) === 'Top users,Events over time,Events')

    await page.getByLabel('Title').fill('VIPs')
    await it.button('Save').click()
    await page.getByRole('heading', { name: 'VIPs' }).waitFor()
    await it.button('Settings of Top users').click()
    await it.button('Delete card').click()
    await it.button('Undo').click()
    await page.getByText('Restored.').waitFor()
    await page.reload()
    await page.locator('.card .bars').waitFor()
    expect(await it.titles()).toBe('Top users,Events over time,VIPs')

    // A bar of the chart opens its part of the feed.
    const box = (await page.locator('.card .bars').boundingBox())!
    await page.mouse.click(box.x + box.width - 2, box.y + 20)
    await page.getByRole('region', { name: 'Events over time' }).getByText('4 events').waitFor()
    expect(new URL(page.url()).searchParams.get('from')).toMatch(/^\d{4}-/)
    expect(it.problems).toEqual([])
  })

  test('somebody with several projects starts at the overview, which hears of all of them', async () => {
    const shop = await newTenant(dashboard.server, 'viewer')
    const mail = await newTenant(dashboard.server)
    await dashboard.server.sql`update projects set name = 'Shop' where id = ${shop.projectId}`
    await dashboard.server.sql`update projects set name = 'Mail' where id = ${mail.projectId}`
    await dashboard.server.sql`
      insert into memberships (organization_id, account_id, role)
      values (${mail.organization.uuid}, ${shop.account.uuid}, 'viewer')
    `
    await shop.send({ title: 'First order' })
    await using it = await visit(shop.account, '/')
    const { page } = it
    await page.getByText('Live', { exact: true }).waitFor()
    expect(new URL(page.url()).pathname).toBe('/overview')
    const card = (name: string) =>
      page.locator('.card').filter({ has: page.getByRole('heading', { name }) })
    await card('Shop').getByText('First order').waitFor()
    await card('Shop').getByText('1 new').waitFor()
    // A viewer cannot create the key that the first event needs.
    await card('Mail').getByText('No events yet').waitFor()
    expect(await page.getByRole('link', { name: 'Send the first event' }).count()).toBe(0)
    // No project was opened yet, so the navigation leads to the pages of none.
    const open = page.getByRole('navigation').getByRole('link', { name: /^Open/ })
    expect(await open.count()).toBe(0)
    const { id } = await mail.send({
      title: 'Newsletter sent',
      level: 'critical',
      thread: 'mail',
      state: 'firing',
    })
    await card('Mail').getByText('1 new').waitFor()
    await card('Mail').getByRole('link', { name: 'Critical: Newsletter sent' }).waitFor()
    await card('Mail').getByRole('link', { name: '1 alarm firing' }).waitFor()
    await page.getByText('One project needs attention.').waitFor()
    // The whole item is the target of touches. A mouse reaches its time.
    await card('Mail').locator('.newest time').hover()
    await using phone = await visit(shop.account, '/overview', true)
    const item = phone.page.locator('.newest li').filter({ hasText: 'Newsletter sent' })
    await item.tap({ position: { x: 4, y: 4 } })
    await phone.page.getByRole('heading', { name: 'Newsletter sent' }).first().waitFor()
    // Nobody has the alarm yet: all pages of its project say so.
    const bar = phone.page.getByRole('navigation', { name: 'Pages' })
    await bar.getByRole('link', { name: 'Open 1 unanswered' }).waitFor()
    await page.goto(`${dashboard.url}/p/${mail.organization.project.id}/users`)
    await page.getByRole('link', { name: 'Open 1 unanswered' }).waitFor()
    await open.filter({ visible: true }).click()
    await page.getByRole('heading', { name: 'Open' }).waitFor()
    await mail.account.post(`${mail.path}/events/${id}/acknowledgement`, {})
    await page.getByRole('link', { name: 'Open', exact: true }).filter({ visible: true }).waitFor()
    await page.goto(`${dashboard.url}/overview`)
    await page.getByText('Every firing alarm is acknowledged.').waitFor()
    // The menu leads back.
    await page.goto(`${dashboard.url}/p/${shop.organization.project.id}`)
    await it.button('Shop').click()
    await page.locator('#project-menu').getByRole('link', { name: 'Overview' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    expect([...it.problems, ...phone.problems]).toEqual([])
  })

  test('the overview notices that its session has ended while the server was away', async () => {
    await using it = await dashboard.openFaked()
    const { page, api } = it
    await page.goto(`${dashboard.url}/overview`)
    await page.getByText('Live', { exact: true }).waitFor()
    api.isTaking = false
    await api.cut()
    await page.getByText('Reconnecting in').waitFor()
    await it.picture('overview-reconnecting')
    api.on('GET /api/me', () => ({ status: 401, code: 'signed_out' }))
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(it.problems).toEqual([])
  })

  test('a chart of incomplete counts says so, and its complete bars do not', async () => {
    let total = 0
    await using it = await dashboard.openFaked({
      prepare: api => {
        fillBoard(api)
        const result = 'GET /api/projects/:id/insights/:card/result'
        const answer = api.handler(result)
        api.on(result, (body, url) => {
          const { data }: any = answer(body, url)
          if (data.kind !== 'series') return { data }
          const { histogram } = data
          total = histogram.total
          const middleMs = (Date.parse(histogram.from) + Date.parse(histogram.to)) / 2
          const completeSince = new Date(middleMs).toISOString()
          return { data: { ...data, histogram: { ...histogram, completeSince } } }
        })
      },
    })
    const { page } = it
    await page.goto(`${dashboard.url}/p/${PROJECT}/insights`)
    const chart = page.locator('.card').filter({ has: page.locator('.bars') })
    const shown = chart.locator('.card-summary strong')
    await shown.waitFor()
    expect(await shown.textContent()).toBe(`≥ ${total.toLocaleString('en')} events`)
    const plot = chart.locator('.bars')
    const { width } = (await plot.boundingBox())!
    await plot.hover({ position: { x: width - 4, y: 20 } })
    await until(async () => /^\d+ events?$/.test((await shown.textContent()) ?? ''))
    await plot.hover({ position: { x: 4, y: 20 } })
    await until(async () => /^≥ \d+ events?$/.test((await shown.textContent()) ?? ''))
    expect(it.problems).toEqual([])
  })

  test('a bad search is said at the field, and viewers read cards only', async () => {
    const { account, organization, send } = await newTenant(dashboard.server, 'member')
    await send()
    const path = `/p/${organization.project.id}/insights`
    await using it = await visit(account, path)
    await it.button('Add a card').click()
    await it.page.getByLabel('Search').fill('has:all')
    await it.button('Add').click()
    await it.page.locator('.issue').filter({ hasText: 'description' }).waitFor()
    await it.page.getByLabel('Search').fill('')
    await it.button('Add').click()
    await it.page.locator('.card').getByText('1 event').first().waitFor()

    await using other = await visit(await newMember(dashboard.server, organization, 'viewer'), path)
    await other.page.locator('.card').getByText('1 event').first().waitFor()
    expect(await other.page.locator('main button').count()).toBe(0)
    expect([...it.problems, ...other.problems]).toEqual([])
  })
})
