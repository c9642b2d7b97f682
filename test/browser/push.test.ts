import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { HAS_BROWSER, launch, type TestBrowser } from '../support/chromium.ts'
import { openPushWorld } from '../support/push.ts'
import { newTenant } from '../support/tenant.ts'
import { until } from '../support/until.ts'
import { giveSubscription, reachWorker } from '../support/worker.ts'

setDefaultTimeout(120_000)

describe.skipIf(!HAS_BROWSER)('dashboard §8 push, from an event to the page that it opens', () => {
  let browser: TestBrowser
  beforeAll(async () => {
    browser = await launch()
  })
  afterAll(() => browser[Symbol.asyncDispose]())

  test('is turned on, tested, shown, opened, and ends with the session', async () => {
    await using world = await openPushWorld()
    const { server, service } = world
    const { url } = server.server
    const tenant = await newTenant(server)
    const device = service.subscribe()
    await using it = await browser.open({
      hasWorker: true,
      prepare: async context => {
        await context.grantPermissions(['notifications'], { origin: url })
        await giveSubscription(context, device)
        const [name = '', value = ''] = tenant.person.cookie.split('=')
        await context.addCookies([{ name, value, url }])
      },
    })
    const { page } = it
    const button = (name: string) => page.getByRole('button', { name, exact: true })
    const state = (text: string) => page.getByRole('heading', { name: text }).waitFor()

    await page.goto(`${url}/notifications`)
    await state('Off in this browser')
    await button('Turn on').click()
    await state('On in this browser')
    const worker = await reachWorker(it.context, page)
    await button('Send a test').click()
    await page.getByText('The push service answered 201, after').waitFor()
    const [tested] = await service.until(device, 1)
    await worker.deliver(tested!.text)
    expect(await worker.titles(1)).toEqual(['👋 Test from Tidings'])

    const event = await tenant.send({
      title: 'New payment',
      icon: '💰',
      description: '42 € from Ada',
      channelName: 'payments',
    })
    const [, pushed] = await service.until(device, 2)
    expect(pushed!.notification.navigate).toBe(`${url}/e/${event.id}`)
    await worker.deliver(pushed!.text)
    expect((await worker.titles(2)).sort()).toEqual(['👋 Test from Tidings', '💰 New payment'])
    await worker.click('💰 New payment')
    await page.locator('.panel').getByRole('heading', { name: 'New payment' }).waitFor()
    expect(page.url()).toContain(`/e/${event.id}`)
    expect(it.context.pages()).toHaveLength(1)
    expect(await worker.titles(1)).toEqual(['👋 Test from Tidings'])

    for (const broken of ['', '{"web_push":8030', '{"notification":7}'])
      await worker.deliver(broken)
    expect((await worker.titles(4)).filter(title => title === 'Tidings')).toHaveLength(3)

    await button('Account').click()
    await button('Sign out').click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await until(async () => {
      const kept = await server.sql`select id from push_subscriptions`
      const told = await page.evaluate(async () => sessionStorage.getItem('test.subscribed'))
      return kept.count === 0 && told === null
    })
    expect(service.problems).toEqual([])
    expect(it.problems).toEqual([])
  })
})
