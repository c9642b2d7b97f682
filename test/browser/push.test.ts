import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { HAS_BROWSER, launch, type TestBrowser } from '../support/clients/chromium.ts'
import { SCOPES } from '../../src/access/keys/schema.ts'
import type { Subscription } from '../../src/delivery/push/subscription-schema.ts'
import { OTHER_KEY } from '../support/fakes/push.ts'
import { openPushWorld, type PushWorld } from '../support/worlds/push.ts'
import { createKey } from '../support/worlds/keys.ts'
import { spawnProgram } from '../support/servers/process.ts'
import { newTenant, type TestTenant } from '../support/worlds/tenant.ts'
import { newMember } from '../support/worlds/signed-in-account.ts'
import { until } from '../support/until.ts'
import { giveSubscription, reachWorker } from '../support/clients/worker.ts'

describe.skipIf(!HAS_BROWSER)('dashboard §8 push, from an event to the page that it opens', () => {
  let browser: TestBrowser
  let world: PushWorld
  beforeAll(async () => {
    ;[browser, world] = await Promise.all([launch({ canNotify: true }), openPushWorld()])
  })
  afterAll(async () => {
    await browser[Symbol.asyncDispose]()
    await world[Symbol.asyncDispose]()
  })

  /** Opens the notifications page in a browser with permission; its push service is ours. */
  async function visit(tenantOf?: TestTenant) {
    const { server, service } = world
    const { url } = server.server
    const tenant = tenantOf ?? (await newTenant(server))
    const device = service.subscribe()
    const it = await browser.open({
      hasWorker: true,
      prepare: async context => {
        await context.grantPermissions(['notifications'], { origin: url })
        await giveSubscription(context, device)
        const [name = '', value = ''] = tenant.account.cookie.split('=')
        await context.addCookies([{ name, value, url }])
      },
    })
    const { page } = it
    await page.goto(`${url}/notifications`)
    return {
      ...it,
      tenant,
      device,
      url,
      button: (name: string) => page.getByRole('button', { name, exact: true }),
      state: (text: string) => page.getByRole('heading', { name: text }).waitFor(),
      /** Returns the key that the browser has subscribed with. */
      readKey: () => page.evaluate(() => sessionStorage.getItem('test.subscribed')),
      listDevices: async () =>
        (await tenant.account.get('/api/push/subscriptions')).body.data.items as Subscription[],
    }
  }

  test('is turned on, tested, shown, opened, and ends with the session', async () => {
    const { server, service } = world
    await using it = await visit()
    const { page, tenant, device, url, button, state } = it
    await state('Off in this browser')
    await button('Turn on').click()
    await state('On in this browser')
    const worker = await reachWorker(it.context, page)
    await button('Send a test').click()
    await page.getByText('The push service answered 201, after').waitFor()
    const [tested] = await service.until(device, 1)
    await worker.deliver(tested!.text)
    expect(await worker.readTitles()).toEqual(['👋 Test from Tidings'])

    const event = await tenant.send({
      title: 'New payment',
      icon: '💰',
      description: '42 € from Ada',
      channelName: 'payments',
    })
    const [, pushed] = await service.until(device, 2)
    expect(pushed!.notification.navigate).toBe(`${url}/e/${event.id}`)
    await worker.deliver(pushed!.text)
    expect(await worker.readTitles()).toEqual(['👋 Test from Tidings', '💰 New payment'])
    await page.evaluate(() => Object.assign(globalThis, { isKept: true }))
    await page.getByRole('link', { name: 'Users', exact: true }).first().click()
    await page.getByRole('heading', { name: 'Users', level: 1 }).waitFor()
    expect(await worker.click('💰 New payment')).toBeNull()
    await page.locator('.panel').getByRole('heading', { name: 'New payment' }).waitFor()
    // Without a reload.
    expect(await page.evaluate(() => 'isKept' in globalThis)).toBe(true)
    expect(page.url()).toContain(`/e/${event.id}`)
    expect(it.context.pages()).toHaveLength(1)
    expect(await worker.readTitles()).toEqual(['👋 Test from Tidings'])

    const dashboard = 'https://grafana.example.com/d/disk?from=now-1h'
    const alert = await tenant.send({ title: 'Disk full', level: 'critical', url: dashboard })
    const [, , urgent] = await service.until(device, 3)
    await worker.deliver(urgent!.text)
    expect(await worker.click('Disk full')).toBe(dashboard)
    await worker.deliver(urgent!.text)
    expect(await worker.click('Disk full', 'Show event')).toBeNull()
    await page.locator('.panel').getByRole('heading', { name: 'Disk full' }).waitFor()
    expect(page.url()).toContain(`/e/${alert.id}`)

    // The push service delivers the later one first.
    for (const [title, state] of [
      ['Slow', 'firing'],
      ['Fast', 'resolved'],
    ] as const)
      await tenant.send({ thread: 'site', title, state })
    const [, , , firing, resolved] = await service.until(device, 5)
    for (const push of [resolved, firing]) await worker.deliver(push!.text)
    expect(await worker.readTitles()).toEqual(['Fast', '👋 Test from Tidings'])

    for (const broken of ['', '{"web_push":8030', '{"notification":7}'])
      await worker.deliver(broken)
    expect((await worker.readTitles()).filter(title => title === 'Tidings')).toHaveLength(3)
    expect(worker.problems).toEqual([])

    await button('Account').click()
    await button('Sign out').click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await until(
      async () =>
        (
          await server.sql`select id from push_subscriptions where account_id = ${tenant.account.uuid}`
        ).count === 0 && (await it.readKey()) === null,
    )
    expect(service.problems).toEqual([])
    expect(it.problems).toEqual([])
  })

  test('a click leaves a page alone on which something would be lost', async () => {
    await using it = await visit()
    const { page, tenant, device, url, button, state } = it
    await button('Turn on').click()
    await state('On in this browser')
    const worker = await reachWorker(it.context, page)
    const project = `${url}${tenant.path.replace('/api/projects', '/p')}`
    // Pages would close the notifications of what they show.
    await it.context.addInitScript(() => {
      ServiceWorkerRegistration.prototype.getNotifications = async () => []
    })
    const show = async (name: string) => {
      await page.getByRole('link', { name, exact: true }).first().click()
      await page.getByRole('heading', { name, level: 1 }).waitFor()
    }
    // The document was made for the feed, on which nothing would be lost.
    await page.goto(project)
    await page.getByRole('link', { name: 'Users', exact: true }).first().waitFor()
    await page.evaluate(() => Object.assign(globalThis, { isKept: true }))
    await page.locator('.sidebar').getByRole('button', { name: 'Settings' }).click()
    await show('API Keys')
    const event = await tenant.send({ title: 'New payment', channelName: 'payments' })
    const [pushed] = await world.service.until(device, 1)
    const click = async () => {
      await worker.deliver(pushed!.text)
      return worker.click('New payment')
    }
    await button('Create a key').click()
    await page.getByLabel('Name', { exact: true }).fill('Web shop')
    expect(await click()).toBe(`/e/${event.id}`)
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Web shop')
    await button('Create key').click()
    await page.getByText('it is shown only once').waitFor()
    expect(await click()).toBe(`/e/${event.id}`)
    await page.getByText('it is shown only once').waitFor()
    // A dialog is left alone, too. So is a page that does not answer, as those of earlier versions.
    await button('I have saved it').click()
    await page.keyboard.press('Control+k')
    await page.getByRole('dialog').waitFor()
    expect(await click()).toBe(`/e/${event.id}`)
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(page.url()).toBe(`${project}/settings/keys`)
    const earlier = await it.context.newPage()
    await earlier.addInitScript(() => {
      ServiceWorkerContainer.prototype.addEventListener = () => {}
    })
    await earlier.goto(`${url}/overview`)
    expect(await click()).toBeNull()
    const panel = (of: typeof page) =>
      of.locator('.panel').getByRole('heading', { name: 'New payment' })
    await panel(page).waitFor()

    // The tab that shows the event is used, not the one whose document was made for it.
    const other = await it.context.newPage()
    await other.goto(`${project}/e/${event.id}`)
    await panel(other).waitFor()
    await other.evaluate(() => Object.assign(globalThis, { isKept: true }))
    await other.getByRole('link', { name: 'Users', exact: true }).first().click()
    await other.getByRole('heading', { name: 'Users', level: 1 }).waitFor()
    expect(await click()).toBeNull()
    expect(other.url()).toBe(`${project}/users`)
    for (const one of [page, other])
      expect(await one.evaluate(() => 'isKept' in globalThis)).toBe(true)
    expect(new URL(earlier.url()).pathname).toBe('/overview')
    expect([worker.problems, it.problems]).toEqual([[], []])
  })

  test('notifications are closed when their events are seen here, or were read on another device', async () => {
    await using it = await visit()
    const { page, tenant, device, url, button, state } = it
    await button('Turn on').click()
    await state('On in this browser')
    const worker = await reachWorker(it.context, page)
    const events: { id: string; seq: number; channelId: string }[] = []
    for (const channelName of ['payments', 'deployments', 'sign-ups']) {
      events.push(await tenant.send({ title: channelName, channelName }))
      const pushes = await world.service.until(device, events.length)
      await worker.deliver(pushes.at(-1)!.text)
    }
    const [payment, deployment, signUp] = events
    expect(await worker.readTitles()).toEqual(['deployments', 'payments', 'sign-ups'])
    const read = async ({ channelId, seq }: { channelId: string; seq: number }) =>
      expect((await tenant.account.put(`${tenant.path}/read`, { channelId, seq })).status).toBe(200)
    // Another device has read one channel.
    await read(deployment!)
    // A search marks nothing as read. Its sidebar shows what is unread.
    await page.goto(`${url}${tenant.path.replace('/api/projects', '/p')}?q=nothing`)
    await until(async () => !(await worker.readTitles()).includes('deployments'))
    expect(await worker.readTitles()).toEqual(['payments', 'sign-ups'])
    await page.goto(`${url}/e/${payment!.id}?q=nothing`)
    await page.locator('.panel').getByRole('heading', { name: 'payments' }).waitFor()
    await until(async () => !(await worker.readTitles()).includes('payments'))
    await page.goto(
      `${url}${tenant.path.replace('/api/projects', '/p')}?channel=${signUp!.channelId}`,
    )
    await until(async () => (await worker.readTitles()).length === 0)

    // An event that came while the page was hidden keeps its notification until it is read.
    await page.goto(`${url}${tenant.path.replace('/api/projects', '/p')}/users`)
    const turn = (hidden: boolean) =>
      page.evaluate(hidden => {
        Object.defineProperty(document, 'hidden', { configurable: true, value: hidden })
        document.dispatchEvent(new Event('visibilitychange'))
      }, hidden)
    const isChannels = (at: { url(): string; request(): { method(): string } }) =>
      at.url().includes('/channels?') && at.request().method() === 'GET'
    await page.getByRole('heading', { name: 'Users', level: 1 }).waitFor()
    await turn(true)
    const unread = await tenant.send({ title: 'new', channelName: 'payments' })
    await worker.deliver((await world.service.until(device, 4)).at(-1)!.text)
    const [response] = await Promise.all([page.waitForResponse(isChannels), turn(false)])
    await response.finished()
    // Notifications would be closed before the list is shown.
    await page.locator('.unread').first().waitFor({ state: 'attached' })
    expect(await worker.readTitles()).toEqual(['new'])
    await turn(true)
    await read(unread)
    await turn(false)
    await until(async () => (await worker.readTitles()).length === 0)
    expect([worker.problems, it.problems]).toEqual([[], []])
  })

  test('attention §5 the button of an alarm acknowledges it, or says why not and opens the event', async () => {
    await using it = await visit()
    const { page, tenant, device, url, button, state } = it
    const { server, service } = world
    await button('Turn on').click()
    await state('On in this browser')
    const worker = await reachWorker(it.context, page)
    // No page sets the badge, and the browser of the test has none.
    const scope = it.context.serviceWorkers()[0]!
    await scope.evaluate(() => {
      Object.assign(navigator, { setAppBadge: async (n: number) => Object.assign(self, { n }) })
      const { clients } = self as unknown as { clients: object }
      Object.assign(clients, { matchAll: async () => [] })
    })
    const readBadge = () => scope.evaluate(() => (self as unknown as { n: number }).n)
    let count = 0
    const tell = async (title: string) => {
      const event = await tenant.send({ title, level: 'critical' })
      await worker.deliver((await service.until(device, ++count)).at(-1)!.text)
      return event
    }
    const readAcknowledgement = async ({ id }: { id: string }) =>
      (await tenant.account.get(`${tenant.path}/events/${id}/acknowledgement`)).body.data
        .acknowledgement
    const [disk, site] = [await tell('Disk full'), await tell('Site down')]
    expect(await readBadge()).toBe(2)
    expect(await worker.click('Disk full', 'Acknowledge')).toBeNull()
    expect((await readAcknowledgement(disk))?.by).toBe('Test person')
    expect(await worker.readTitles()).toEqual(['Site down'])

    // Another device acknowledges the other. The next push closes it here.
    await tenant.account.post(`${tenant.path}/events/${site.id}/acknowledgement`, {})
    const queue = await tell('Queue full')
    expect([await worker.readTitles(), await readBadge()]).toEqual([['Queue full'], 1])
    // An open page closes it at once.
    await page.goto(`${url}${tenant.path.replace('/api/projects', '/p')}?q=nothing`)
    await page.getByText('Live', { exact: true }).waitFor()
    await tenant.account.post(`${tenant.path}/events/${queue.id}/acknowledgement`, {})
    await until(async () => (await worker.readTitles()).length === 0)

    const late = await tell('Late')
    await it.context.setOffline(true)
    expect(await worker.click('Late', 'Acknowledge')).toBe(`/e/${late.id}`)
    expect(await worker.readTitles()).toEqual(['Not done: Late'])
    await it.context.setOffline(false)
    // It can be tried again. By now, the session has ended.
    await server.sql`delete from sessions where account_id = ${tenant.account.uuid}`
    expect(await worker.click('Not done: Late', 'Acknowledge')).toBe(`/e/${late.id}`)
    expect(await worker.readTitles()).toHaveLength(1)
    expect(worker.problems).toEqual([])
  })

  test('attention §7 an answer on the phone lets the command line go on', async () => {
    await using it = await visit()
    const { page, tenant, device, url, button, state } = it
    const { server, service } = world
    await button('Turn on').click()
    await state('On in this browser')
    const worker = await reachWorker(it.context, page)
    const { token } = await createKey(server.sql, {
      ...{ projectId: tenant.projectId, name: 'cli', limit: 1_000, scopes: SCOPES },
    })
    await using asking = spawnProgram({
      args: ['ask', 'Deploy 1.4?', '--action', 'deploy', '--action', 'abort'],
      env: { TIDINGS_URL: url, TIDINGS_API_KEY: token },
    })
    const question = (await service.until(device, 1)).at(-1)!
    await worker.deliver(question.text)
    expect(await worker.click('Deploy 1.4?', 'Deploy')).toBeNull()
    expect([(await asking.exited).code, asking.output()]).toEqual([0, 'deploy\n'])
    // Another device still shows the question, and its answer replaces it.
    await worker.deliver(question.text)
    await worker.deliver((await service.until(device, 2)).at(-1)!.text)
    expect(await worker.readTitles()).toEqual(['Deploy — answered by Test person'])
    await page.goto(`${url}/e/${question.notification.navigate.split('/').at(-1)}`)
    await page.getByText('Answered by Test person: Deploy').waitFor()
    await page.locator('.timeline').getByText('Ended').waitFor()
    await page.getByText('Received by the program', { exact: false }).waitFor()
    expect([worker.problems, it.problems]).toEqual([[], []])
  })

  test('attention §5 an alarm that one member acknowledges is closed for the other, and ends quietly', async () => {
    await using ada = await visit()
    const { tenant, url } = ada
    const ben = { ...tenant, account: await newMember(world.server, tenant.organization, 'member') }
    await using his = await visit(ben)
    const feed = `${url}${tenant.path.replace('/api/projects', '/p')}?q=nothing`
    const turnOn = async (it: typeof ada) => {
      await it.button('Turn on').click()
      await it.state('On in this browser')
      return { ...it, worker: await reachWorker(it.context, it.page), count: 0 }
    }
    const [hers, other] = [await turnOn(ada), await turnOn(his)]
    const devices = [hers, other]
    /** Sends an event; resolves when those devices show its push. */
    const tell = async (event: Record<string, unknown>, told = devices) => {
      const sent = await tenant.send(event)
      const isSilent: unknown[] = []
      for (const one of told) {
        const push = (await world.service.until(one.device, ++one.count)).at(-1)!
        await one.worker.deliver(push.text)
        isSilent.push(push.notification.silent)
      }
      return { id: sent.id as string, isSilent }
    }
    const disk = { thread: 'disk', title: 'Disk full', state: 'firing', level: 'critical' }
    const site = { ...disk, thread: 'site', title: 'Site down' }

    // An open page hears of it.
    await other.page.goto(feed)
    await other.page.getByText('Live', { exact: true }).waitFor()
    await tell(disk)
    expect(await other.worker.readTitles()).toEqual(['Disk full'])
    expect(await hers.worker.click('Disk full', 'Acknowledge')).toBeNull()
    await until(async () => (await other.worker.readTitles()).length === 0)
    const quiet = await tell({ ...disk, title: 'Disk is fine', state: 'resolved' })
    expect(quiet.isSilent).toEqual([true, true])
    for (const { worker } of devices) expect(await worker.readTitles()).toEqual(['Disk is fine'])

    // Without a page, the next push closes it.
    await other.page.goto(`${url}/docs`)
    await tell(site)
    expect(await hers.worker.click('Site down', 'Acknowledge')).toBeNull()
    expect(await other.worker.readTitles()).toEqual(['Disk is fine', 'Site down'])
    await tell({ title: 'Hello' })
    expect(await other.worker.readTitles()).toEqual(['Disk is fine', 'Hello'])

    // Critical events get through the quiet hours of one member.
    const always = { days: [1, 2, 3, 4, 5, 6, 7], from: '00:00', to: '00:00', timeZone: 'UTC' }
    for (const { account } of [tenant, ben])
      expect((await account.put('/api/push/quiet-hours', { quietHours: [always] })).status).toBe(
        200,
      )
    await hers.page.reload()
    await hers.button('Let them through').click()
    await hers.page.getByText('critical events get through').first().waitFor()
    const night = await tell({ title: 'Queue full', level: 'critical' }, [hers])
    const [held] = (await ben.account.get('/api/push/subscriptions')).body.data.items
    const readHeld = async () => (await world.outcomes(night))[held.id]
    // Her push can arrive before his is recorded.
    await until(async () => (await readHeld()) !== undefined)
    expect(await readHeld()).toBe('withheld: This device has quiet hours')
    expect([world.service.of(other.device).length, world.service.problems]).toEqual([4, []])
    expect(devices.flatMap(one => [...one.worker.problems, ...one.problems])).toEqual([])
  })

  test('a subscription that its push service or the server has lost is created again', async () => {
    await using it = await visit()
    await it.button('Turn on').click()
    await it.state('On in this browser')
    world.service.script(it.device, { status: 410, body: 'unsubscribed' }, { status: 201 })
    await it.button('Send a test').click()
    await it.page.getByText('410: the subscription is gone').waitFor()
    await it.page.getByText('unsubscribed', { exact: true }).waitFor()
    expect(await it.listDevices()).toEqual([])
    await it.button('Subscribe again').click()
    await until(async () => (await it.listDevices()).length === 1)
    await it.state('On in this browser')

    // The server was set up again. A page load subscribes with its current key.
    const key = await it.readKey()
    await it.page.evaluate(other => sessionStorage.setItem('test.subscribed', other), OTHER_KEY)
    await world.server.sql`
      delete from push_subscriptions where account_id = ${it.tenant.account.uuid}
    `
    await it.page.goto(`${it.url}/account`)
    await until(async () => (await it.listDevices()).length === 1 && (await it.readKey()) === key)
    expect(it.problems).toEqual([])
  })

  test('a new device is asked once whether critical events get through', async () => {
    await using it = await visit()
    const { page } = it
    const question = page.getByRole('heading', { name: 'Let critical events through?' })
    const readAnswer = async () => (await it.listDevices())[0]?.letsCriticalThrough
    await it.state('Off in this browser')
    expect(await question.count()).toBe(0)
    await it.button('Turn on').click()
    await question.waitFor()
    expect(await readAnswer()).toBeNull()
    await it.button('Hold them back').click()
    await it.state('Critical events in this browser')
    expect(await readAnswer()).toBe(false)
    // The focus stays on the answer.
    await page.locator(':focus', { hasText: 'Hold them back' }).waitFor()
    await page.reload()
    await it.button('Let them through').click()
    const devices = page.getByRole('region', { name: 'Your devices' })
    await devices.getByText('critical events get through').waitFor()
    expect([await readAnswer(), await question.count()]).toEqual([true, 0])
    await page.getByText('all but critical notifications are suppressed').waitFor()
    await it.button('Undo').click()
    await page.getByText('Quiet hours and mutes hold them back').waitFor()
    expect(await readAnswer()).toBe(false)
    expect(it.problems).toEqual([])
  })

  test('quiet hours are rows for all devices or for one; push is turned off and on, removed, and given up', async () => {
    await using it = await visit()
    const { page } = it
    await it.button('Turn on').click()
    await it.button('Set quiet hours').click()
    await page.getByLabel('To', { exact: true }).fill('06:30')
    await page.getByLabel('Sun').uncheck()
    await it.button('Save').click()
    await page.getByText('On all your devices: Mon, Tue, Wed, Thu, Fri, Sat from 22:00').waitFor()
    const timeZone = await page.evaluate(() => Intl.DateTimeFormat().resolvedOptions().timeZone)
    const night = { days: [1, 2, 3, 4, 5, 6], from: '22:00', to: '06:30', timeZone }
    const readDevice = async () => (await it.listDevices())[0]
    expect(await readDevice()).toMatchObject({ quietHours: [night], ownQuietHours: false })

    // This browser gets another time, a whole day, without the first one.
    await it.button('Change in this browser only').click()
    await it.button('Add a time').click()
    await it.button('Remove time 1').click()
    await page.getByLabel('To', { exact: true }).fill('22:00')
    await page.getByLabel('Time zone').fill('Mars/Olympus')
    await it.button('Save').click()
    await page.getByText('Must name a time zone').waitFor()
    await page.getByLabel('Time zone').fill('Asia/Kathmandu')
    await it.button('Save').click()
    const ofThis = page.getByText(
      'In this browser only: every day for 24 hours from 22:00 (Kathmandu)',
    )
    await ofThis.waitFor()
    await page.getByText('its own quiet hours').waitFor()
    const own = {
      days: [1, 2, 3, 4, 5, 6, 7],
      from: '22:00',
      to: '22:00',
      timeZone: 'Asia/Kathmandu',
    }
    expect(await readDevice()).toMatchObject({ quietHours: [own], ownQuietHours: true })
    await it.button('Sum up afterwards').click()
    await page.getByText('A summary comes afterwards').waitFor()
    expect((await readDevice())?.hasQuietSummary).toBe(true)

    // Those of all devices are as before.
    await it.button('Use those of all devices').click()
    await page.getByText('On all your devices: Mon, Tue').waitFor()
    expect(await readDevice()).toMatchObject({ quietHours: [night], ownQuietHours: false })
    await it.button('Undo').click()
    await ofThis.waitFor()
    expect(await readDevice()).toMatchObject({ quietHours: [own], ownQuietHours: true })

    await it.button('Turn off').click()
    await it.state('Off in this browser')
    expect((await it.listDevices())[0]?.isOn).toBe(false)
    await it.button('Turn on').click()
    await it.state('On in this browser')

    const devices = page.getByRole('region', { name: 'Your devices' })
    await devices.getByRole('button', { name: 'Remove' }).first().click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await it.state('Off in this browser')
    await page.getByText('No devices yet').waitFor()
    expect([await it.readKey(), await it.listDevices()]).toEqual([null, []])

    // The subscription of an account is given up when another one uses the browser.
    await it.button('Turn on').click()
    await it.state('On in this browser')
    const other = await newTenant(world.server)
    const [name = '', value = ''] = other.account.cookie.split('=')
    await it.context.addCookies([{ name, value, url: it.url }])
    await page.reload()
    await it.state('Off in this browser')
    expect(await it.readKey()).toBeNull()
    expect((await other.account.get('/api/push/subscriptions')).body.data.items).toEqual([])
    expect(it.problems).toEqual([])
  })
})
