import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Locator } from 'playwright-core'
import type { Delivery } from '../../src/delivery/outbox/delivery-schema.ts'
import { HAS_BROWSER } from '../support/clients/chromium.ts'
import { PROJECT, type FakeApi } from '../support/fakes/api.ts'
import { toDelivery } from '../support/fakes/deliveries.ts'
import { fillHooks } from '../support/fakes/hooks.ts'
import { setRole } from '../support/fakes/organization.ts'
import { fillAlarms } from '../support/fakes/shop.ts'
import { insertSubscription } from '../support/worlds/push.ts'
import { newTenant } from '../support/worlds/tenant.ts'
import { until } from '../support/until.ts'
import { WITHHELD_REASONS } from '../../src/delivery/push/dispatch.ts'
import { openDashboard, type Dashboard } from '../support/worlds/dashboard.ts'

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
        api.emit({ title: 'New payment' }, { title: 'Deployed', channelName: 'deploys' })
        prepare(api)
      },
    })
    const { page } = opened
    await page.goto(`${dashboard.url}/p/${PROJECT}${path}`)
    const button = (name: string) => page.getByRole('button', { name, exact: true })
    return { ...opened, button }
  }

  test('a channel is opened from the list, renamed, restored, and given a level and a retention', async () => {
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
    await it.button('Edit').click()
    await it.page.getByLabel('Default level').selectOption('High')
    await it.button('Save').click()
    await it.page.locator('dd', { hasText: 'High' }).waitFor()
    expect(it.api.bodies.get(EDIT)).toEqual({ level: 'high' })
    await it.button('Change').click()
    await it.page.getByLabel('Days').fill('30')
    await it.button('Save').click()
    await it.page.getByText('kept for 30 days, then deleted').waitFor()
    expect(it.api.bodies.get(EDIT)).toEqual({ keepDays: 30 })
    expect(it.problems).toEqual([])
  })

  test('a channel says who is told of urgent events, and its stages are changed', async () => {
    await using it = await visit('/channels/chn_payments')
    const { page } = it
    const says = (text: string) => page.getByText(text, { exact: true }).waitFor()
    await says(
      'Critical events: tell everybody at once. Repeat every 5 minutes until somebody acknowledges.',
    )
    await it.button('Change who is told').click()
    await page.getByLabel('Tell first').selectOption('who is on duty')
    await page.getByLabel('At last tell').selectOption('the owners')
    await page.getByLabel('Events', { exact: true }).selectOption('High and critical events')
    await page.getByLabel('Repeat critical events').fill('2')
    await it.button('Save').click()
    await says(
      'High and critical events: tell who is on duty at once; the owners after 10 minutes. Repeat critical ones every 2 minutes until somebody acknowledges.',
    )
    expect(it.api.bodies.get(EDIT)).toEqual({
      escalation: {
        ...{ level: 'high', repeatMinutes: 2 },
        stages: [
          { afterMinutes: 0, to: 'onDuty' },
          { afterMinutes: 10, to: { role: 'owner' } },
        ],
      },
    })
    expect(it.problems).toEqual([])
  })

  test('a rule and a heartbeat keep a channel that is archived', async () => {
    const at = new URL(`http://x/api/projects/${PROJECT}/rules`)
    await using it = await visit('/settings/rules', api => {
      fillAlarms(api)
      const rule = { name: 'Old', q: 'failed', moreThan: 3, withinSeconds: 600 }
      api.handler('POST /api/projects/:id/rules')({ channel: 'chn_old', ...rule }, at)
      const beat = { name: 'Backup', periodSeconds: 86_400, graceSeconds: 60, status: 'up' }
      api.handler('POST /api/projects/:id/heartbeats')({ channel: 'chn_old', ...beat }, at)
    })
    const { page } = it
    const channel = page.getByLabel(/channel$/i)
    for (const [path, name, text] of [
      ['rules', 'Old', 'chn_old'],
      ['heartbeats', 'Backup', 'old'],
    ]) {
      await page.goto(`${dashboard.url}/p/${PROJECT}/settings/${path}`)
      await it.button(`Edit ${name}`).click()
      await until(async () => (await channel.locator('option').count()) > 1)
      expect(await channel.inputValue()).toBe('chn_old')
      expect(await channel.locator('option:checked').textContent()).toBe(text!)
    }
  })

  test('the preview of a hook is that of the template that was typed last', async () => {
    await using it = await visit('/settings/hooks', fillHooks)
    await it.button('Edit Web shop').click()
    const title = it.page.getByLabel('Title')
    const shows = (text: string) => it.page.getByText(`"title": "${text}"`)
    await title.focus()
    await shows('Order {{order.id}} was paid').waitFor()
    const held: (() => void)[] = []
    it.api.hold = () =>
      it.api.requests.at(-1)?.endsWith('/preview')
        ? new Promise(resolve => held.push(resolve))
        : Promise.resolve()
    for (const [at, text] of ['First', 'Second'].entries()) {
      await title.fill(text)
      await until(() => held.length > at)
    }
    held[1]!()
    await shows('Second').waitFor()
    const late = it.page.waitForResponse(response => response.url().endsWith('/preview'))
    held[0]!()
    await late
    await it.settle()
    expect(await shows('Second').isVisible()).toBe(true)
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
    await it.page.locator('.badge', { hasText: 'Archived' }).waitFor()
    await it.button('Unarchive this channel').waitFor()
    await it.button('Undo').click()
    await beside.waitFor()
    await it.button('Archive this channel').waitFor()
  })

  test('the bell of a channel mutes it in the list, keeps the focus, and undo restores it', async () => {
    await using it = await visit('/channels')
    const bell = it.page.getByRole('button', { name: 'Notifications from payments' })
    const isOn = () => bell.getAttribute('aria-pressed')
    await bell.click()
    await until(async () => (await isOn()) === 'false')
    await it.page.getByText('payments is muted for you. Critical').waitFor()
    expect(await bell.evaluate(element => element === document.activeElement)).toBe(true)
    await it.page.getByRole('link', { name: 'payments muted' }).waitFor()
    await it.button('Undo').click()
    await until(async () => (await isOn()) === 'true')
    const put = it.api.bodies.get('PUT /api/projects/:id/channels/:channel/notifications')
    expect(put).toEqual({ state: 'default', collapse: null })
  })

  test('my notifications and bursts are chosen for a channel, restored, and have hints beside them', async () => {
    await using it = await visit('/channels/chn_payments')
    const mine = it.page.getByRole('combobox', { name: 'My notifications' })
    const bursts = it.page.getByRole('combobox', { name: 'Bursts' })
    const chosen = (select: Locator) => select.locator('option:checked').innerText()
    const put = (path: string) => it.api.bodies.get(`PUT /api/projects/:id${path}/notifications`)
    await it.page.getByText('After 10 notifications from one channel in a minute').waitFor()
    const measure = (select: Locator) =>
      select.evaluate(select => {
        const hint = document.getElementById(select.getAttribute('aria-describedby') ?? '')
        const [box, other] = [select.parentElement!, hint!].map(one => one.getBoundingClientRect())
        const gap = Math.max(other!.top - box!.bottom, box!.top - other!.bottom)
        return gap >= 0 && gap < 10
      })
    for (const device of ['phone', 'wide'] as const) {
      await it.become(device)
      expect([await measure(mine), await measure(bursts)]).toEqual([true, true])
    }

    await bursts.selectOption('Do not collapse')
    await it.page.getByText('Notification settings saved.').waitFor()
    expect(put('/channels/:channel')).toEqual({ state: 'default', collapse: false })
    await it.button('Undo').click()
    await until(async () => (await chosen(bursts)) === 'Use project default')
    expect(put('/channels/:channel')).toEqual({ state: 'default', collapse: null })

    await mine.selectOption('pick')
    await it.page.getByLabel('Until').fill('2036-02-03T04:05')
    await it.button('Mute').click()
    await until(async () => (await chosen(mine)).startsWith('Muted until 3 Feb 2036'))
    await it.page.getByRole('link', { name: 'payments muted' }).waitFor()
    await it.button('Undo').click()
    await until(async () => (await chosen(mine)) === 'Use project default')
    await it.page.getByRole('link', { name: 'payments', exact: true }).waitFor()

    await it.page.goto(`${dashboard.url}/p/${PROJECT}/channels`)
    await bursts.waitFor()
    const choices = await bursts.locator('option').allTextContents()
    expect(choices).toEqual(['Collapse', 'Do not collapse'])
    await bursts.selectOption('Do not collapse')
    await until(() => put('') !== undefined)
    expect(put('')).toEqual({ state: 'on', collapse: false })
    // A viewer changes nothing else.
    setRole(it.api, 'viewer')
    await it.page.goto(`${dashboard.url}/p/${PROJECT}/channels/chn_payments`)
    await mine.waitFor()
    expect(await it.page.locator('main button').allTextContents()).toEqual([])
    expect(it.problems).toEqual([])
  })

  test('channels beyond the column are counted there, and found by search and paging', async () => {
    await using it = await visit('', api => {
      for (let n = 1; n <= 240; n += 1) api.emit({ title: 'Hello', channelName: `number ${n}` })
    })
    await it.page.getByRole('link', { name: '42 more' }).click()
    const items = it.page.locator('main .items li')
    // Those that are shown keep their places.
    const names = async () => (await items.locator('a').allTextContents()).join()
    await until(async () => (await items.count()) === 100)
    for (const count of [200, 242]) {
      const before = await names()
      await it.button('Show more').click()
      await until(async () => (await items.count()) === count)
      expect(await names()).toStartWith(before)
    }
    expect(await it.button('Show more').count()).toBe(0)
    await it.page.getByLabel('Search channels').fill('number 239')
    await it.page.keyboard.press('Enter')
    await until(async () => (await items.count()) === 1)
    await it.page.getByLabel('Search channels').fill('none')
    await it.page.keyboard.press('Enter')
    await it.page.getByText('No channels found').waitFor()
    await it.page.getByRole('link', { name: 'All channels' }).click()
    await until(async () => (await items.count()) === 100)
  })

  test('an admin sends a dead letter again, which is refreshed until it has an outcome', async () => {
    let state: Delivery['state'] = 'dead'
    await using it = await visit('/e/evt_1', api => {
      const target = { id: 'whk_1', name: 'Archive' }
      api.on('GET /api/projects/:id/events/:event/deliveries', () => ({
        data: {
          items: [
            toDelivery({ kind: 'webhook', target, state, attempts: state === 'pending' ? 0 : 3 }),
            toDelivery({ id: 'dlv_2', state: 'withheld', reason: WITHHELD_REASONS.noDevice }),
          ],
          nextCursor: null,
          isDispatched: true,
        },
      }))
      api.on('POST /api/projects/:id/deliveries/:delivery/replay', () => {
        state = 'pending'
        return { data: toDelivery({ state }) }
      })
    })
    await it.page.getByText('Given up').waitFor()
    await it.page.getByRole('link', { name: 'Turn on here' }).waitFor()
    await it.button('Resend').click()
    await it.page.getByText('Pending', { exact: true }).waitFor()
    state = 'delivered'
    await it.page.getByText('Delivered', { exact: true }).waitFor()
    expect(await it.button('Refresh').count()).toBe(0)
    const link = it.page.getByRole('link', { name: 'Archive' })
    expect(await link.getAttribute('href')).toBe(`/p/${PROJECT}/settings/webhooks/whk_1`)
    setRole(it.api, 'member')
    state = 'dead'
    await it.page.reload()
    await it.page.getByText('Given up').waitFor()
    expect(await it.button('Resend').count()).toBe(0)
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
    const here = it.page.getByRole('combobox', { name: 'On this device' })
    await here.selectOption('morning')
    await it.page.getByText('Muted on this device.').waitFor()
    await it.page.reload()
    await until(async () => (await here.inputValue()) === 'until')
    await here.selectOption('on')
    await it.page.getByText('On again on this device.').waitFor()
    await mine.selectOption('mute')
    await it.page.getByText('Notification settings saved.').waitFor()
    await it.page.getByRole('link', { name: 'payments muted' }).waitFor()
    const { id } = await tenant.send({ channelName: 'payments', metadata: { n: 4.2 } })
    await it.page.goto(`${project}/e/${id}`)
    await it.page.getByText(WITHHELD_REASONS.muted).waitFor()
    await it.page.getByText('Not sent').waitFor()
    expect(await it.page.getByRole('link', { name: 'Turn on here' }).count()).toBe(0)
    const tree = it.page.locator('.tree')
    await tree.locator('summary').click()
    await tree.getByRole('link', { name: 'Filter' }).click()
    await until(async () => (await it.page.locator('article').count()) === 1)
    expect(it.problems).toEqual([])
  })
})
