import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { HAS_BROWSER } from '../support/clients/chromium.ts'
import { until } from '../support/until.ts'
import { newTenant } from '../support/worlds/tenant.ts'
import { openDashboard, type Dashboard } from '../support/worlds/dashboard.ts'

describe.skipIf(!HAS_BROWSER)('dashboard.md §3 §5 §6: with the real server', () => {
  let dashboard: Dashboard
  beforeAll(async () => {
    dashboard = await openDashboard()
  })
  afterAll(() => dashboard[Symbol.asyncDispose]())

  test('an event is found, deleted and restored, and leads to its user, who is changed and erased', async () => {
    const tenant = await newTenant(dashboard.server)
    await using it = await dashboard.openFor(tenant.account)
    const { page } = it
    await tenant.identify('user/1', ['ada@example.com'], { plan: 'pro' })
    await tenant.identify('user_2', ['grace@example.com'])
    const send = (title: string, more: object = {}) => tenant.send({ title, ...more })
    await send('Backup finished')
    await send('New payment', { channelName: 'payments', userId: 'ada@example.com', tags: ['vip'] })
    await send('Payment failed', { channelName: 'payments', userId: 'user_2' })
    const titles = async () => (await page.locator('article h2').allTextContents()).join()
    const look = (text: string) => {
      const box = page.locator('#search')
      return box.fill(text).then(() => box.press('Enter'))
    }

    await page.goto(`${dashboard.url}/p/${tenant.organization.project.id}`)
    await page.locator('.pill').filter({ hasText: 'Live' }).waitFor()
    await look('pay user:ada@example.com')
    await until(async () => (await titles()) === 'New payment')
    await page.locator('.pill').filter({ hasText: 'Live' }).waitFor()
    await send('Payment of another', { userId: 'user_2' })
    await send('Paid again', { userId: 'user/1' })
    await send('Payment of the same', { userId: 'user/1' })
    await until(async () => (await titles()) === 'Payment of the same,New payment')

    await look('"payment failed" "OR"')
    await page.getByRole('heading', { name: 'No matching events' }).waitFor()
    await look('"payment failed" -test')
    await until(async () => (await titles()) === 'Payment failed')
    await page.locator('.pill').filter({ hasText: 'Live' }).waitFor()
    await send('A payment failed as a test')
    await send('Another payment failed')
    await until(async () => (await titles()) === 'Another payment failed,Payment failed')
    const chart = page.getByRole('region', { name: 'Events over time' })
    await chart.getByText(/^[12] events?$/).waitFor()

    await look('tag:vip')
    await until(async () => (await titles()) === 'New payment')
    // Saved as a view: it counts new events, is found again, and can be deleted.
    const views = page.locator('.views')
    await page.getByRole('button', { name: 'Save this search' }).click()
    await page.getByRole('dialog').getByLabel('Name').fill('VIPs')
    await page.keyboard.press('Enter')
    const view = views.getByRole('link', { name: /^VIPs/ })
    await view.waitFor()
    await views.getByRole('button', { name: 'Notify me of new events in VIPs' }).click()
    await views.locator('.bell[aria-pressed=true]').waitFor()
    await views.getByRole('link', { name: 'Turn on notifications here' }).waitFor()
    await look('')
    await view.click()
    await until(async () => (await titles()) === 'New payment')
    await views.getByRole('button', { name: 'Manage views' }).click()
    for (const name of ['Guests', 'VIPs']) {
      await views.getByLabel('Name').fill(name)
      await page.keyboard.press('Enter')
      await views.getByRole('button', { name: `Delete ${name}` }).waitFor()
    }
    await views.getByRole('button', { name: 'Delete VIPs' }).click()
    await page.getByRole('button', { name: 'Save this search' }).waitFor()

    await page.locator('article').click()
    const panel = page.locator('.panel')
    await panel.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Undo' }).click()
    await panel.getByRole('heading', { name: 'New payment' }).waitFor()

    await panel.getByRole('link', { name: 'ada@example.com' }).click()
    await page.getByRole('heading', { name: 'ada@example.com' }).waitFor()
    await until(async () => (await titles()) === 'Payment of the same,Paid again,New payment')
    await page.getByRole('button', { name: 'Add an alias' }).click()
    await page.getByLabel('Alias', { exact: true }).fill('grace@example.com')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Move it to this user' }).click()
    const remove = page.getByRole('button', { name: 'Remove grace@example.com' })
    await remove.waitFor()
    await page.getByText('History').click()
    await page.getByText('was moved here from').waitFor()
    await remove.click()
    await page.getByText('was removed by').waitFor()
    await remove.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Undo' }).click()
    await remove.waitFor()
    await page.getByRole('button', { name: 'Erase this user' }).click()
    await page.getByRole('button', { name: 'Erase permanently' }).click()
    await page.getByText('removed from 3 events').waitFor()
    await page.waitForURL(/\/users$/)
    await page.locator('.users').getByText('user_2', { exact: true }).waitFor()
    expect(await page.locator('.users').getByText('user/1', { exact: true }).count()).toBe(0)
    expect(it.problems).toEqual([])
  })
})
