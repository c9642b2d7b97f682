import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { HAS_BROWSER, launch, type TestBrowser } from '../support/clients/chromium.ts'
import { boot, type Booted } from '../support/servers/server.ts'
import { until } from '../support/until.ts'
import { newAccount, PASSWORD } from '../support/worlds/browser.ts'
import { createKey } from '../support/worlds/keys.ts'
import { createRequests } from '../support/worlds/project.ts'
import { newTenant } from '../support/worlds/tenant.ts'

describe.skipIf(!HAS_BROWSER)('dashboard.md: with the real server', () => {
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

  test("the server's setup link leads to the first event, live", async () => {
    await using server = await boot()
    await using it = await browser.open()
    const { page } = it
    await page.goto(server.url)
    await page.getByText('This server has no owner yet').waitFor()

    await page.goto(`${server.url}/setup#${server.server.setupToken}`)
    await page.getByLabel('Your name').fill('Ada Lovelace')
    // Its secret leaves the address bar.
    expect(page.url()).toBe(`${server.url}/setup`)
    await page.getByLabel('E-mail').fill('ada@example.com')
    await page.getByLabel('Password', { exact: true }).fill('short')
    await page.keyboard.press('Enter')
    await page.locator('.issue').waitFor()
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.keyboard.press('Enter')

    const command = (await page.locator('.code-block code').textContent()) ?? ''
    const key = /Bearer (tdg_\w+)/.exec(command)?.[1] ?? ''
    await page.getByText('Listening for your first event').waitFor()
    // The same key in another language, chosen with the keyboard.
    await page.getByRole('tab').first().focus()
    await page.keyboard.press('ArrowRight')
    await page.getByRole('tab', { name: 'JavaScript', selected: true }).waitFor()
    await page.getByRole('tabpanel').getByText(`Authorization: 'Bearer ${key}'`).waitFor()
    const sent = await createRequests(server.url, key).request('/v1/channels/hello', {
      method: 'POST',
      body: '🎉 It works',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    })
    expect(sent.status).toBe(201)
    await page.getByText('It works', { exact: true }).waitFor()
    await page.getByText('1 of 4 done').waitFor()

    await page.getByRole('link', { name: 'Invite a colleague' }).click()
    await page.getByRole('button', { name: 'Invite a member' }).click()
    await page.getByLabel('E-mail').fill('grace@example.com')
    await page.getByRole('button', { name: 'Create link' }).click()
    await page.getByText('Invite link').waitFor()
    await page.goBack()
    await page.getByText('2 of 4 done').waitFor()
    await page.getByText(key).waitFor()
    const [{ keys }] = await server.sql<[{ keys: number }]>`
      select count(*)::int as keys from api_keys where name <> 'First key'
    `
    expect(keys).toBe(1)
    await page.getByRole('link', { name: 'Go to the feed' }).click()
    await page.getByRole('link', { name: 'hello' }).waitFor()
    await page.goto(`${server.url}/setup`)
    await page.getByText('Already set up').waitFor()
    expect(it.problems).toEqual([])
  })

  test('sign-in fails with a wrong password, succeeds with the right one, and sign-out ends it', async () => {
    await using it = await browser.open()
    const { page } = it
    const { email } = await newAccount(server)
    await page.goto(`${server.url}/account`)
    await page.getByLabel('E-mail').waitFor()
    expect(page.url()).toBe(`${server.url}/sign-in?next=%2Faccount`)
    // By keyboard alone.
    await page.keyboard.type(email)
    await page.keyboard.press('Tab')
    await page.keyboard.type('wrong')
    await page.keyboard.press('Enter')
    await page.locator('.notice').waitFor()
    expect(await page.getByLabel('E-mail').inputValue()).toBe(email)
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.keyboard.press('Enter')
    await page.waitForURL(`${server.url}/account`)
    await page.evaluate(() => fetch('/api/session', { method: 'DELETE' }))
    await page.goto(server.url)
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(it.problems).toEqual([])
  })

  /** Opens the feed of a project with a signed-in member, at the URL of a server. */
  async function watch(url = server.url) {
    const tenant = await newTenant(server)
    const it = await browser.open()
    const [name = '', value = ''] = tenant.account.cookie.split('=')
    await it.context.addCookies([{ name, value, url }])
    const project = tenant.organization.project.id
    await it.page.goto(`${url}/p/${project}`)
    const says = (text: string) => it.page.locator('.pill').filter({ hasText: text }).waitFor()
    const titles = () => it.page.locator('article h2').allTextContents()
    await says('Live')
    return { ...it, tenant, says, titles }
  }

  test('events appear at once, in one channel or in all, and are marked as read', async () => {
    await using it = await watch()
    await it.tenant.send({ title: 'New payment', channelName: 'payments', icon: '💰' })
    await until(async () => (await it.titles()).join() === 'New payment')
    await it.tenant.send({ title: 'Deployed', channelName: 'deploys', icon: '🚀' })
    await until(async () => (await it.titles()).join() === 'Deployed,New payment')
    await it.page.getByRole('link', { name: 'payments' }).click()
    await until(async () => (await it.titles()).join() === 'New payment')
    await it.says('Live')
    // The other channel was read in the list of all, a moment before it was left.
    await it.page.getByRole('link', { name: 'deploys', exact: true }).waitFor()
    await it.tenant.send({ title: 'Another', channelName: 'deploys' })
    await it.tenant.send({ title: 'Second payment', channelName: 'payments' })
    await until(async () => (await it.titles()).join() === 'Second payment,New payment')
    await it.page.getByRole('link', { name: 'deploys 1 unread' }).click()
    await until(async () => (await it.titles()).join() === 'Another,Deployed')
    await it.page.getByRole('link', { name: 'deploys', exact: true }).waitFor()
    expect(it.problems).toEqual([])
  })

  test('an event is found, deleted and restored, and leads to its user, who is changed and erased', async () => {
    const tenant = await newTenant(server)
    await using it = await browser.open()
    const { page } = it
    const [name = '', value = ''] = tenant.account.cookie.split('=')
    await it.context.addCookies([{ name, value, url: server.url }])
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

    await page.goto(`${server.url}/p/${tenant.organization.project.id}`)
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
    await page.getByRole('dialog').getByRole('button', { name: 'Delete view' }).click()
    await page.getByRole('button', { name: 'Save this search' }).waitFor()

    await page.locator('article').click()
    const panel = page.locator('.panel')
    await panel.getByRole('button', { name: 'More actions for this event' }).click()
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

  test('a server that stops and returns leaves no gap, and neither does a pause', async () => {
    const { databaseUrl } = server
    let other = await boot({ databaseUrl })
    const { port } = other.server
    await using it = await watch(other.url)
    const { send } = await sender(server, it.tenant.projectId)
    await send('First')
    await until(async () => (await it.titles()).join() === 'First')
    await it.page.keyboard.press('Space')
    await it.says('Paused')
    await other[Symbol.asyncDispose]()
    await it.says('Reconnecting')
    await send('Second')
    other = await boot({ databaseUrl, port })
    await send('Third')
    await it.says('Paused · 2 new')
    await it.page.keyboard.press('Space')
    await until(async () => (await it.titles()).join() === 'Third,Second,First')
    await other[Symbol.asyncDispose]()
  })

  test('contract §11 a session that ends elsewhere ends here, and leaves no events', async () => {
    await using it = await watch()
    await it.tenant.send({ title: 'Kept' })
    const kept = () =>
      it.page.evaluate(() => Object.keys(localStorage).filter(name => name.includes('events')))
    await until(async () => (await kept()).length > 0)
    await it.tenant.account.delete('/api/sessions')
    await it.page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(await kept()).toEqual([])
  })

  test('contract §11 a former member is led away', async () => {
    await using it = await watch()
    await server.sql`delete from memberships where account_id = ${it.tenant.account.uuid}`
    await it.page.getByText('You are not a member of any project.').waitFor()
  })
})

/** Returns a function that sends events to a project through another server. */
async function sender(server: Booted, projectId: string) {
  const { token } = await createKey(server.sql, { projectId, name: 'test' })
  const { post } = createRequests(server.url, token)
  return { send: (title: string) => post('/v1/events', { channelName: 'ops', title }) }
}
