import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { HAS_BROWSER } from '../support/clients/chromium.ts'
import { ACCOUNT, PROJECT, type FakeApi } from '../support/fakes/api.ts'
import { toDelivery } from '../support/fakes/deliveries.ts'
import { insertSubscription } from '../support/worlds/push.ts'
import { newTenant } from '../support/worlds/tenant.ts'
import { until } from '../support/until.ts'
import { WITHHELD_REASONS } from '../../src/delivery/push/dispatch.ts'
import { openDashboard, type Dashboard } from '../support/worlds/dashboard.ts'

const DELIVERIES = 'GET /api/projects/:id/events/:event/deliveries'
const EDIT = 'PATCH /api/projects/:id/channels/:channel'

describe.skipIf(!HAS_BROWSER)('dashboard.md §3, §5, §7 channels and deliveries', () => {
  let dashboard: Dashboard
  beforeAll(async () => {
    dashboard = await openDashboard({}, {})
  })
  afterAll(() => dashboard[Symbol.asyncDispose]())

  async function visit(path: string, prepare: (api: FakeApi) => void = () => {}) {
    const opened = await dashboard.openFaked({
      prepare: api => {
        api.emit(
          { title: 'New payment', metadata: { order: { total: 42, 'a.b': 1 } } },
          { title: 'Deployed', channelName: 'deploys', metadata: { order: { total: 7 } } },
        )
        prepare(api)
      },
    })
    const { page } = opened
    await page.goto(`${dashboard.url}/p/${PROJECT}${path}`)
    const button = (name: string) => page.getByRole('button', { name, exact: true })
    const titles = async () => (await page.locator('article h2').allTextContents()).join()
    return { ...opened, button, titles }
  }

  function asRole(role: string) {
    const [organization] = ACCOUNT.organizations
    return (api: FakeApi) =>
      api.on('GET /api/me', () => ({
        data: { ...ACCOUNT, organizations: [{ ...organization, role }] },
      }))
  }

  function answerDeliveries(api: FakeApi, items: () => object[]) {
    api.on(DELIVERIES, () => ({ data: { items: items(), nextCursor: null, isDispatched: true } }))
  }

  test('a channel is opened from the list and renamed, and undo restores its name', async () => {
    await using it = await visit('/channels')
    await it.page.locator('main').getByRole('link', { name: 'payments' }).click()
    await it.button('Edit').click()
    await it.page.getByLabel('Name', { exact: true }).fill('Money')
    await it.page.getByLabel('Icon').fill('💶')
    await it.button('Save').click()
    await it.page.getByRole('heading', { name: 'Money' }).waitFor()
    // The description, which somebody else may have changed meanwhile, is not sent.
    expect(it.api.bodies.get(EDIT)).toEqual({ name: 'Money', icon: '💶' })
    await it.page.getByRole('navigation').getByRole('link', { name: 'Money' }).waitFor()
    await it.button('Undo').click()
    await it.page.getByRole('heading', { name: 'payments' }).waitFor()
    expect(Object.keys(it.api.bodies.get(EDIT))).toEqual(['name', 'icon'])
    expect(it.problems).toEqual([])
  })

  test('channels stay in the column when they cannot be loaded again, and are asked for soon', async () => {
    await using it = await visit('')
    const { page, api } = it
    const column = page.getByRole('navigation').getByRole('link', { name: 'deploys' })
    await column.waitFor()
    const route = 'GET /api/projects/:id/channels'
    const answer = api.handler(route)
    let asked = 0
    api.on(route, (body, url) =>
      asked++ > 0 ? answer(body, url) : { status: 503, code: 'unavailable', retryAfter: 2 },
    )
    await page.getByRole('link', { name: 'Insights' }).first().click()
    await page.getByRole('heading', { name: 'Insights', level: 1 }).waitFor()
    await until(() => asked === 1)
    while (asked < 2) expect(await column.count()).toBe(1)
  })

  test('an archived channel disappears from the lists, and undo restores it at once', async () => {
    await using it = await visit('/channels/chn_deploys')
    const beside = it.page.getByRole('navigation').getByRole('link', { name: 'deploys' })
    await beside.waitFor()
    await it.button('Archive this channel').click()
    await beside.waitFor({ state: 'detached' })
    await it.button('Undo').click()
    await beside.waitFor()
  })

  test('changing the retention takes the password', async () => {
    await using it = await visit('/channels/chn_payments', api => {
      const edit = api.handler(EDIT)
      let isVerified = false
      api.on(EDIT, (body, url) =>
        isVerified ? edit(body, url) : { status: 403, code: 'verification_needed', error: 'No' },
      )
      api.on('POST /api/session/verify', () => {
        isVerified = true
        return { data: ACCOUNT }
      })
    })
    await it.button('Change').click()
    await it.page.getByLabel('Days').fill('30')
    await it.button('Save').click()
    await it.page.getByLabel('Password', { exact: true }).fill('right')
    await it.page.keyboard.press('Enter')
    await it.page.getByText('kept for 30 days, then deleted').waitFor()
    expect(it.api.bodies.get(EDIT)).toEqual({ keepDays: 30 })
  })

  test('a mute until a moment shows in the column, and undo ends it', async () => {
    await using it = await visit('/channels/chn_payments')
    const bell = it.page.getByRole('combobox', { name: 'My notifications' })
    const chosen = () => bell.locator('option:checked').textContent()
    await bell.selectOption('pick')
    await it.page.getByLabel('Until').fill('2036-02-03T04:05')
    await it.button('Mute').click()
    await until(async () => (await chosen())?.startsWith('Muted until 3 Feb 2036') ?? false)
    await it.page.getByRole('link', { name: 'payments muted' }).waitFor()
    await it.button('Undo').click()
    await until(async () => (await chosen()) === 'Use project default')
    await it.page.getByRole('link', { name: 'payments', exact: true }).waitFor()
  })

  test('each notification setting is described by the hint right beside it', async () => {
    await using it = await visit('/channels/chn_payments')
    const measure = (name: string) =>
      it.page.getByRole('combobox', { name }).evaluate(select => {
        const hint = document.getElementById(select.getAttribute('aria-describedby') ?? '')
        const [box, other] = [select.parentElement!, hint!].map(one => one.getBoundingClientRect())
        const gap = Math.max(other!.top - box!.bottom, box!.top - other!.bottom)
        return { text: hint?.textContent, isBeside: gap >= 0 && gap < 10 }
      })
    for (const device of ['wide', 'phone'] as const) {
      await it.become(device)
      expect(await measure('My notifications')).toEqual({
        text: 'Only for you, on all your devices',
        isBeside: true,
      })
      expect(await measure('Bursts')).toMatchObject({ isBeside: true })
    }
  })

  test('the bell of a channel mutes it in the list, keeps the focus, and undo restores it', async () => {
    await using it = await visit('/channels')
    const bell = it.page.getByRole('button', { name: 'Notifications from payments' })
    const isOn = () => bell.getAttribute('aria-pressed')
    await bell.click()
    await until(async () => (await isOn()) === 'false')
    await it.page.getByText('payments is muted for you.').waitFor()
    expect(await bell.evaluate(element => element === document.activeElement)).toBe(true)
    await it.page.getByRole('link', { name: 'payments muted' }).waitFor()
    await it.button('Undo').click()
    await until(async () => (await isOn()) === 'true')
    const put = it.api.bodies.get('PUT /api/projects/:id/channels/:channel/notifications')
    expect(put).toEqual({ state: 'default', collapse: null })
  })

  test('collapsing is turned off for a channel, restored by undo, and turned off for the project', async () => {
    await using it = await visit('/channels/chn_payments')
    const bursts = it.page.getByRole('combobox', { name: 'Bursts' })
    const chosen = async () => (await bursts.locator('option:checked').textContent()) ?? ''
    await it.page.getByText('After 10 notifications from one channel in a minute').waitFor()
    expect(await chosen()).toBe('Use project default')
    await bursts.selectOption('Do not collapse')
    await it.page.getByText('Notification settings saved.').waitFor()
    const put = (path: string) => it.api.bodies.get(`PUT /api/projects/:id${path}/notifications`)
    expect(put('/channels/:channel')).toEqual({ state: 'default', collapse: false })
    await it.button('Undo').click()
    await until(async () => (await chosen()) === 'Use project default')
    expect(put('/channels/:channel')).toEqual({ state: 'default', collapse: null })

    await it.page.goto(`${dashboard.url}/p/${PROJECT}/channels`)
    await bursts.waitFor()
    expect(await bursts.locator('option').allTextContents()).toEqual([
      'Collapse',
      'Do not collapse',
    ])
    await bursts.selectOption('Do not collapse')
    await until(() => put('') !== undefined)
    expect(put('')).toEqual({ state: 'on', collapse: false })
    expect(it.problems).toEqual([])
  })

  test('a viewer changes their own notification settings, and is offered nothing else', async () => {
    await using it = await visit('/channels/chn_payments', asRole('viewer'))
    await it.page.getByRole('combobox', { name: 'My notifications' }).waitFor()
    expect(await it.page.locator('main button').allTextContents()).toEqual([])
  })

  test('channels beyond the column are counted there, and found by search and paging', async () => {
    await using it = await visit('', api => {
      for (let n = 1; n <= 240; n += 1) api.emit({ title: 'Hello', channelName: `number ${n}` })
    })
    await it.page.getByRole('link', { name: '42 more' }).click()
    const items = it.page.locator('main .items li')
    await until(async () => (await items.count()) === 50)
    await it.button('Show more').click()
    await until(async () => (await items.count()) === 100)
    await it.page.getByLabel('Search channels').fill('number 239')
    await it.page.keyboard.press('Enter')
    await until(async () => (await items.count()) === 1)
    await it.page.getByLabel('Search channels').fill('none')
    await it.page.keyboard.press('Enter')
    await it.page.getByText('No channels found').waitFor()
    await it.page.getByRole('link', { name: 'All channels' }).click()
    await until(async () => (await items.count()) === 50)
  })

  test('a pending delivery is refreshed until it has an outcome', async () => {
    let state = 'pending'
    await using it = await visit('/e/evt_1', api =>
      answerDeliveries(api, () => [
        toDelivery(
          state === 'pending'
            ? { state: 'pending', attempts: 0, at: null, latencyMs: null }
            : { state: 'delivered' },
        ),
      ]),
    )
    await it.page.getByText('Pending', { exact: true }).waitFor()
    state = 'delivered'
    await it.page.getByText('Accepted', { exact: true }).waitFor()
    await it.page.getByText('after 380').waitFor()
    expect(await it.button('Refresh').count()).toBe(0)
  })

  test('an admin sends a dead letter again', async () => {
    let isAgain = false
    const hook = { id: 'whk_1', name: 'Archive' }
    const prepare = (api: FakeApi) => {
      answerDeliveries(api, () => [
        toDelivery({ kind: 'webhook', target: hook, state: isAgain ? 'delivered' : 'dead' }),
      ])
      api.on('POST /api/projects/:id/deliveries/:delivery/replay', () => {
        isAgain = true
        return { data: toDelivery({ state: 'pending' }) }
      })
    }
    await using other = await visit('/e/evt_1', api => {
      prepare(api)
      asRole('member')(api)
    })
    await other.page.getByText('Given up').waitFor()
    expect(await other.button('Resend').count()).toBe(0)
    await using it = await visit('/e/evt_1', prepare)
    await it.button('Resend').click()
    await it.page.getByText('Delivered', { exact: true }).waitFor()
    const link = it.page.getByRole('link', { name: 'Archive' })
    expect(await link.getAttribute('href')).toBe(`/p/${PROJECT}/settings/webhooks/whk_1`)
  })

  test('a metadata value links to the events with the same value', async () => {
    await using it = await visit('/e/evt_1')
    await it.page.locator('summary', { hasText: 'a.b' }).click()
    const only = it.page.locator('.tree').getByRole('link', { name: 'Filter' })
    await it.page.locator('.tree').getByRole('button', { name: 'Copy' }).waitFor()
    expect(await only.count()).toBe(0)
    await it.page.locator('summary', { hasText: 'total' }).click()
    await only.click()
    await until(async () => (await it.titles()) === 'New payment')
    expect(new URL(it.page.url()).searchParams.get('q')).toBe('meta:order.total=42')
    await it.page.getByText('Live', { exact: true }).waitFor()
    it.api.emit({ title: 'Other', metadata: { order: { total: 41 } } })
    it.api.emit({ title: 'Same', metadata: { order: { total: 42 } } })
    await until(async () => (await it.titles()) === 'Same,New payment')
  })

  test('with the real server: a muted channel stays quiet, and its next event says why', async () => {
    const tenant = await newTenant(dashboard.server)
    await insertSubscription(dashboard.server, tenant.account)
    const { channelId } = await tenant.send({ channelName: 'payments' })
    await using it = await dashboard.openFor(tenant.account)
    const project = `${dashboard.url}/p/${tenant.organization.project.id}`
    await it.page.goto(`${project}/channels/${channelId}`)
    const mine = it.page.getByRole('combobox', { name: 'My notifications' })
    const isUntil = () =>
      until(async () => /^Muted until/.test(await mine.locator('option:checked').innerText()))
    // The second span is shown as its moment, too.
    for (const span of ['hour', 'week']) {
      await mine.selectOption(span)
      await isUntil()
    }
    await mine.selectOption('mute')
    await it.page.getByText('Notification settings saved.').waitFor()
    await it.page.getByRole('link', { name: 'payments muted' }).waitFor()
    const { id } = await tenant.send({ channelName: 'payments', metadata: { n: 4.2 } })
    await it.page.goto(`${project}/e/${id}`)
    await it.page.getByText(WITHHELD_REASONS.muted).waitFor()
    await it.page.getByText('Not sent').waitFor()
    const tree = it.page.locator('.tree')
    await tree.locator('summary').click()
    await tree.getByRole('link', { name: 'Filter' }).click()
    await until(async () => (await it.page.locator('article').count()) === 1)
    expect(it.problems).toEqual([])
  })
})
