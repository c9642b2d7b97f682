import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { Webhook } from 'standardwebhooks'
import type { Role } from '../../src/access/guard/permissions.ts'
import { HAS_BROWSER } from '../support/clients/chromium.ts'
import { startReceiver } from '../support/servers/receiver.ts'
import { until } from '../support/until.ts'
import { hashCheaply, PASSWORD } from '../support/worlds/browser.ts'
import { createRequests } from '../support/worlds/project.ts'
import { newTenant } from '../support/worlds/tenant.ts'
import { openDashboard, type Dashboard } from '../support/worlds/dashboard.ts'

describe.skipIf(!HAS_BROWSER)('dashboard.md §9 and §10 with the real server', () => {
  let dashboard: Dashboard
  beforeAll(async () => {
    dashboard = await openDashboard({ egressAllowCidrs: ['127.0.0.0/8'] }, {})
  })
  afterAll(() => dashboard[Symbol.asyncDispose]())

  test('a tab neither acts as the account of another tab, nor shows the former one', async () => {
    const { sql } = dashboard.server
    const [ada, bob] = [await newTenant(dashboard.server), await newTenant(dashboard.server)]
    await sql`
      update accounts set name = 'Bob', password_hash = ${await hashCheaply()}
      where id = ${bob.account.uuid}
    `
    const it = await dashboard.openFor(ada.account)
    const open = async () => {
      const page = await it.context.newPage()
      await page.goto(`${dashboard.url}/account`)
      await page.getByRole('button', { name: 'Edit', exact: true }).waitFor()
      return page
    }
    const [writing, idle, elsewhere] = [await open(), await open(), await open()]
    await writing.getByRole('button', { name: 'Edit', exact: true }).click()
    await writing.getByLabel('Your name').fill('Ada')
    await elsewhere.getByRole('button', { name: 'Sign out', exact: true }).click()
    await elsewhere.getByLabel('E-mail').fill(bob.account.email)
    await elsewhere.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await elsewhere.keyboard.press('Enter')
    await elsewhere.waitForURL(url => !url.pathname.startsWith('/sign-in'))

    await writing.getByRole('button', { name: 'Save' }).click()
    await writing.getByText('signed in to another account').waitFor()
    await writing.getByText('Your session has ended').waitFor()
    expect(await writing.getByLabel('Your name').inputValue()).toBe('Ada')
    const [named] = await sql`select name from accounts where id = ${bob.account.uuid}`
    expect(named?.['name']).toBe('Bob')
    const comeBack = (page: Page) =>
      page.evaluate(() => void document.dispatchEvent(new Event('visibilitychange')))
    await comeBack(idle)
    await idle.getByText(bob.account.email).first().waitFor()

    // The projects of an account may change, too.
    await idle.goto(`${dashboard.url}/p/${bob.organization.project.id}`)
    await idle.locator('.pill').filter({ hasText: 'Live' }).waitFor()
    await sql`update projects set name = 'Renamed' where id = ${bob.projectId}`
    await comeBack(idle)
    await until(async () => (await idle.title()).includes('Renamed'))
    expect(it.problems).toEqual([])
  })

  /** Opens a page of a project for a member with a known password. */
  async function visit(place: 'keys' | 'webhooks', role: Role = 'admin') {
    const tenant = await newTenant(dashboard.server, role)
    await dashboard.server.sql`
      update accounts set password_hash = ${await hashCheaply()} where id = ${tenant.account.uuid}
    `
    const it = await dashboard.openFor(tenant.account)
    const { page } = it
    await page.goto(`${dashboard.url}/p/${tenant.organization.project.id}/settings/${place}`)
    const click = (name: string) => page.getByRole('button', { name, exact: true }).click()
    const code = async (label: string) => (await page.getByLabel(label).textContent()) ?? ''
    return { ...it, tenant, click, code }
  }

  test('a key is shown once after the password, works, is renamed, restored, rotated and revoked', async () => {
    await using it = await visit('keys')
    const { page, tenant } = it
    await dashboard.server.sql`
      update sessions set verified_at = now() - interval '1 hour'
      where id = ${tenant.account.sessionId}
    `
    await it.click('Create a key')
    await page.getByLabel('Name', { exact: true }).fill('Web shop')
    await page.getByLabel('Requests per minute').fill('0')
    // Browsers accept years of five digits.
    await page.getByLabel('Expires on').fill('20277-01-01')
    await it.click('Create key')
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await it.click('Confirm')
    await page.locator('.issue').nth(1).waitFor()
    await page.getByText(/in the future, such as \d+ Jan\b.*\d:\d\d$/).waitFor()
    await page.getByLabel('Requests per minute').fill('70')
    await page.getByLabel('Expires on').fill('2077-01-01')
    await it.click('Create key')
    await page.getByText('it is shown only once').waitFor()
    const key = await it.code('API key')
    expect(await it.code('In a terminal')).toContain(`Bearer ${key}`)
    const { post } = createRequests(dashboard.url, key)
    const sent = await post('/v1/events', { channelName: 'orders', title: 'Order 1' })
    expect(sent.status).toBe(201)
    expect(sent.headers.get('x-ratelimit-limit')).toBe('70')

    await page.reload()
    const item = page.locator('.items > li').filter({ hasText: 'Web shop' })
    await item.getByText(`tdg_…${key.slice(-4)}`).waitFor()
    expect(await page.content()).not.toContain(key)

    await dashboard.server.sql`
      insert into key_usage (key_id, hour, requests)
      select id, date_trunc('hour', now()), 1234
      from api_keys
      where project_id = ${tenant.projectId} and name = 'Web shop'
      on conflict (key_id, hour) do update set requests = excluded.requests
    `
    const plots: string[] = []
    page.on('request', request => void (request.url().includes('/plot-') && plots.push('')))
    await page.reload()
    await item.getByRole('button', { name: 'Requests' }).waitFor()
    expect(plots).toEqual([])
    await item.getByRole('button', { name: 'Requests' }).click()
    await page.getByRole('img', { name: /^1,23\d requests since \d+ \w+, \d+:\d\d/ }).waitFor()
    await page.getByText('Show as table').click()
    await page.getByRole('cell', { name: /^1,23\d$/ }).waitFor()

    await item.getByRole('button', { name: 'Edit' }).click()
    await page.getByLabel('Name', { exact: true }).fill('Shop of the web')
    await page.getByLabel('Requests per minute').fill('70')
    // Another admin changes the other field meanwhile.
    await dashboard.server.sql`update api_keys set rate_limit = 90 where name = 'Web shop'`
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    await item.getByText('90 requests per minute').waitFor()
    await it.click('Save')
    const edited = page.locator('.items > li').filter({ hasText: 'Shop of the web' })
    await edited.getByText('90 requests per minute').waitFor()
    await it.click('Undo')
    await page.getByRole('heading', { name: 'Web shop' }).waitFor()

    await item.getByRole('button', { name: 'Rotate' }).click()
    await page.getByLabel('Keep old key valid').selectOption('0')
    await it.click('Create new key')
    await page.locator('.secret-once:focus').waitFor()
    const next = await it.code('API key')
    const events = { channelName: 'orders', title: 'Order 2' }
    expect((await post('/v1/events', events)).status).toBe(401)
    const rotated = createRequests(dashboard.url, next)
    expect((await rotated.post('/v1/events', events)).status).toBe(201)

    await item.filter({ hasText: 'Expired' }).waitFor()
    await item.filter({ hasNotText: 'Expired' }).getByRole('button', { name: 'Revoke' }).click()
    await it.click('Revoke key')
    await item.filter({ hasText: 'Revoked' }).waitFor()
    expect((await rotated.post('/v1/events', events)).status).toBe(401)
    expect(it.problems).toEqual([])
  })

  test('the secret of a new webhook ends with the session', async () => {
    await using it = await visit('webhooks')
    const { page, tenant } = it
    await it.click('Add a webhook')
    await page.getByLabel('URL').fill('http://127.0.0.1:9999/hook')
    await page.getByLabel('Description').fill('Fulfilment')
    await it.click('Add webhook')
    expect(await it.code('Signing secret')).toStartWith('whsec_')
    await it.click('Account')
    await it.click('Sign out')
    // The same page goes on for the next person.
    await page.getByLabel('E-mail').fill(tenant.account.email)
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await it.click('Sign in')
    await page.getByRole('heading', { name: 'Fulfilment' }).waitFor()
    expect(await page.getByLabel('Signing secret').count()).toBe(0)
  })

  test('a webhook is created, has its secret rotated, is tested, sent an event twice, and recovers missed ones', async () => {
    await using receiver = await startReceiver({ reply: { status: 200, body: 'thank you' } })
    await using it = await visit('webhooks')
    const { page, tenant } = it
    await it.click('Add a webhook')
    await page.getByLabel('URL').fill(`${receiver.url}/hook`)
    await page.getByLabel('Description').fill('Fulfilment')
    await it.click('Add webhook')
    await page.getByRole('heading', { name: 'Fulfilment' }).waitFor()
    await it.click('I have saved it')
    await it.click('Rotate secret')
    await it.click('Create new secret')
    await page.locator('.secret-once:focus').waitFor()
    const secret = await it.code('Signing secret')
    await page.getByText(`${receiver.url}/hook`).waitFor()

    await it.click('Send a test')
    await page.getByRole('heading', { name: 'Test result' }).waitFor()
    await page.getByLabel('Response').getByText('thank you').waitFor()
    expect(receiver.received).toHaveLength(1)

    const event = await tenant.send({ title: 'New payment' })
    await receiver.until(2)
    const { body, headers } = receiver.received[1]!
    expect(new Webhook(secret).verify(body, headers)).toMatchObject({ data: { id: event.id } })
    const told = page.locator('.attempt').filter({ hasText: 'New payment' })
    await until(async () => {
      await it.click('Refresh')
      return (await told.count()) === 1
    })
    await told.locator('summary').click()
    expect(await told.locator('summary').textContent()).toContain('200')
    const sent = (await told.locator('pre[aria-label="Request"]').textContent()) ?? ''
    expect(sent).toContain(String(body))
    expect(sent).toContain(`webhook-id: ${headers['webhook-id']}`)
    await told.getByRole('link', { name: 'Open event' }).waitFor()
    await told.getByRole('button', { name: 'Resend' }).click()
    await receiver.until(3)
    expect(receiver.received[2]?.headers['webhook-id']).toBe(headers['webhook-id']!)

    await it.click('Disable')
    await page.getByText('No events are sent until you enable it').waitFor()
    await tenant.send({ title: 'Missed' })
    // Recovery is for events that were dispatched to nobody while the webhook was disabled.
    await until(async () => {
      const [{ count }] = await dashboard.server.sql<[{ count: number }]>`
        select count(*)::int as count
        from delivery_cursors
        where project_id = ${tenant.projectId} and kind = 'webhook' and seq >= 2
      `
      return count > 0
    })
    await it.click('Enable')
    await it.click('Recover missed events')
    await it.click('Recover')
    await page.getByText('1 message queued.').waitFor()
    await receiver.until(4)
    expect(receiver.received[3]?.body).toContain('Missed')
    expect(it.problems).toEqual([])
  })

  test('an own body is previewed, and arrives as shown with the own headers of what a view finds', async () => {
    await using receiver = await startReceiver()
    await using it = await visit('webhooks')
    const { page, tenant } = it
    const view = { name: 'VIPs', q: 'tag:vip', isShared: true }
    expect((await tenant.account.post(`${tenant.path}/views`, view)).status).toBe(201)
    await tenant.send({ title: 'First', tags: ['vip'] })
    await it.click('Add a webhook')
    await page.getByLabel('URL').fill(receiver.url)
    await page.getByLabel('Only events of a view').selectOption('VIPs')
    await page.getByLabel('Custom headers').fill('X-Team: ops\n\nAuthorization: Basic a:b')
    await page.getByLabel('Custom body').fill('{"text": "{{titel}}"}')
    await it.click('Preview')
    await page.getByText('{{titel}} is no field of an event').waitFor()
    await it.click('Add webhook')
    await page.locator('.field', { hasText: 'Custom body' }).locator('.issue').waitFor()
    await page.getByLabel('Custom body').fill('{"text": "{{title}}"}')
    await it.click('Preview')
    await page.getByText('{"text":"First"}').waitFor()
    await it.click('Add webhook')
    await it.click('I have saved it')
    await tenant.send({ title: 'Small' })
    await tenant.send({ title: 'Second', tags: ['vip'] })
    await receiver.until(1)
    const [{ body, headers }] = receiver.received as [(typeof receiver.received)[0]]
    expect(body).toBe('{"text":"Second"}')
    expect(headers).toMatchObject({ 'x-team': 'ops', authorization: 'Basic a:b' })

    // Values of headers are not shown, and stay.
    await it.click('Edit')
    expect(await page.getByLabel('Custom headers').inputValue()).toBe('X-Team\nAuthorization')
    await page.getByLabel('Custom headers').fill('Authorization')
    await page.getByLabel('Custom body').fill('')
    await page.getByLabel('Only events of a view').selectOption('')
    await it.click('Save')
    await page.getByText('Saved.').waitFor()
    await tenant.send({ title: 'Third' })
    await receiver.until(2)
    expect(receiver.received[1]!.body).toContain('"type":"event.created"')
    expect(receiver.received[1]!.headers).toMatchObject({ authorization: 'Basic a:b' })
    expect(receiver.received[1]!.headers).not.toHaveProperty('x-team')
    expect(it.problems).toEqual([])
  })

  test('a failed test shows its error, and deleting removes the webhook', async () => {
    await using receiver = await startReceiver({ reply: { status: 503, body: 'not today' } })
    await using it = await visit('webhooks')
    const { page } = it
    await it.click('Add a webhook')
    await page.getByLabel('URL').fill('ftp://example.com')
    await it.click('Add webhook')
    await page.locator('.issue').waitFor()
    await page.getByLabel('URL').fill('https://10.0.0.1/')
    await it.click('Add webhook')
    await page.locator('.issue').getByText('EGRESS_ALLOW_CIDRS').waitFor()
    await page.getByLabel('URL').fill(receiver.url)
    await it.click('Add webhook')
    await it.click('Send a test')
    await page.getByText('The receiver answered 503').first().waitFor()
    await page.getByText('not today').first().waitFor()
    await it.click('Delete this webhook')
    await it.click('Delete permanently')
    await page.getByText('No webhooks yet').waitFor()
    expect(it.problems).toEqual([])
  })

  test('a dead letter is sent again', async () => {
    await using receiver = await startReceiver()
    await using it = await visit('webhooks')
    const { page, tenant } = it
    const { id } = (await tenant.account.post(`${tenant.path}/webhooks`, { url: receiver.url }))
      .body.data
    const event = await tenant.send({ title: 'Lost' })
    await receiver.until(1)
    const record = async () =>
      (
        await tenant.account.get(`${tenant.path}/events/${event.id}/deliveries`)
      ).body.data.items.find(({ target }: { target: { id: string } | null }) => target?.id === id)
    await until(async () => (await record())?.state === 'delivered')
    await dashboard.server.sql`
      with lost as (
        update deliveries set state = 'dead', reason = 'The receiver answered 500', attempts = 10
        where project_id = ${tenant.projectId} and kind = 'webhook'
        returning *
      )
      insert into dead_letters (id, project_id, event_id, kind, target_id, attempts, reason, at)
      select id, project_id, event_id, kind, target_id, attempts, reason, at
      from lost
    `
    await page.reload()
    await page.getByText('The receiver answered 500').waitFor()
    await it.click('Retry')
    await receiver.until(2)
    await page.getByText('No deliveries were given up.').waitFor()
    expect(it.problems).toEqual([])
  })

  test('a viewer sees webhooks without addresses and keys', async () => {
    await using it = await visit('webhooks', 'viewer')
    const { page, tenant } = it
    await page.getByText('No webhooks yet').waitFor()
    expect(await page.locator('main button').count()).toBe(0)
    await page.goto(`${dashboard.url}/p/${tenant.organization.project.id}/settings/keys`)
    await page.getByText('Ask an admin of your organization').waitFor()
    expect(await page.locator('main button').count()).toBe(0)
    expect(it.problems).toEqual([])
  })
})
