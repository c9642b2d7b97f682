import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createServer } from 'node:http'
import type { Page } from 'playwright-core'
import { BUILD } from '../../src/dashboard/assets.ts'
import { HAS_BROWSER, launch, type TestBrowser } from '../support/clients/chromium.ts'
import { boot } from '../support/servers/server.ts'
import { newTenant } from '../support/worlds/tenant.ts'
import { until } from '../support/until.ts'
import { listen } from '../support/loopback.ts'

interface Manifest extends Record<
  'icons' | 'screenshots',
  { src: string; sizes: string; type: string; purpose?: string }[]
> {
  id: string
  start_url: string
  display: string
  shortcuts: { name: string; url: string }[]
}

describe.skipIf(!HAS_BROWSER)('dashboard: the installed application', () => {
  let browser: TestBrowser
  beforeAll(async () => {
    browser = await launch()
  })
  afterAll(() => browser[Symbol.asyncDispose]())

  /** Resolves when the page has its worker, with the application cached. */
  const untilKept = (page: Page) =>
    until(() => page.evaluate(() => navigator.serviceWorker.controller?.state === 'activated'))

  test("every page works without a network, and says so; the server's answers are not cached", async () => {
    const server = await boot()
    const { url } = server.server
    const tenant = await newTenant(server)
    await using it = await browser.open({ hasWorker: true })
    const { page } = it
    const [name = '', value = ''] = tenant.account.cookie.split('=')
    await it.context.addCookies([{ name, value, url }])
    await page.goto(`${url}/notifications`)
    await page.getByText('Your devices').waitFor()
    await untilKept(page)
    const kept = await page.evaluate(async () => {
      const [only = '', ...others] = await caches.keys()
      const requests = await (await caches.open(only)).keys()
      return { others, paths: requests.map(({ url }) => new URL(url).pathname) }
    })
    expect(kept.others).toEqual([])
    expect(kept.paths).toContain('/')
    expect(
      kept.paths.filter(path => !/^\/(assets\/\w{10}\/[\w-]+\.(js|css|svg|json))?$/.test(path)),
    ).toEqual([])

    await server[Symbol.asyncDispose]()
    await page.goto(`${url}/p/${tenant.organization.project.id}`)
    await page.getByText("Can't reach the server").waitFor()
    // Nothing was typed.
    expect(await page.getByText('typed').count()).toBe(0)
    await page.getByRole('button', { name: 'Retry' }).waitFor()
    expect(await page.evaluate(() => document.styleSheets.length)).toBe(1)
    // Paths outside the application have no page offline.
    await expect(page.goto(`${url}/docs`)).rejects.toThrow()
    expect(it.problems).toEqual([])
  })

  test('a new version is offered, and loaded on request', async () => {
    await using proxy = await openProxy()
    await using server = await boot({ baseUrl: proxy.url })
    proxy.target = server.url
    await using it = await browser.open({ hasWorker: true })
    const { page } = it
    await page.goto(`${proxy.url}/sign-in`)
    await untilKept(page)
    const line = page.getByText('A new version is available')
    expect(await line.count()).toBe(0)
    await page.evaluate(() => Object.assign(globalThis, { isOld: true }))

    proxy.build = 'releaselater'
    const update = () =>
      page.evaluate(async () => {
        const registration = await navigator.serviceWorker.getRegistration()
        await registration?.update()
        return registration?.waiting !== null
      })
    await until(update)
    await line.waitFor()
    expect(await it.findBarriers()).toEqual([])
    await it.picture('new-version')
    await page.getByRole('button', { name: 'Reload' }).click()
    await until(() => page.evaluate(() => !('isOld' in globalThis)).catch(() => false))
    await page.getByRole('heading', { level: 1 }).waitFor()
    await untilKept(page)
    const waiting = await page.evaluate(async () => {
      const registration = await navigator.serviceWorker.getRegistration()
      return registration?.waiting ?? null
    })
    expect(waiting).toBeNull()
    expect(await line.count()).toBe(0)
    expect(it.problems).toEqual([])
  })

  test('a page without a worker hears of a new version, too', async () => {
    await using server = await boot({}, { feed: { build: 'releaselater' } })
    const tenant = await newTenant(server)
    await using it = await browser.open()
    const [name = '', value = ''] = tenant.account.cookie.split('=')
    await it.context.addCookies([{ name, value, url: server.url }])
    await it.page.goto(server.url + tenant.path.replace('/api/projects', '/p'))
    await it.page.getByText('A new version is available').waitFor()
    expect(it.problems).toEqual([])
  })

  test('browsers find all that they need to install it', async () => {
    await using server = await boot()
    await using it = await browser.open({ hasWorker: true })
    await it.page.goto(`${server.server.url}/sign-in`)
    const session = await it.context.newCDPSession(it.page)
    const { errors, url, data } = await session.send('Page.getAppManifest')
    expect(errors).toEqual([])
    expect(url).toMatch(/\/assets\/\w{10}\/manifest\.webmanifest$/)
    const { installabilityErrors } = await session.send('Page.getInstallabilityErrors')
    // Tests use private windows, which install nothing.
    expect(installabilityErrors.filter(({ errorId }) => errorId !== 'in-incognito')).toEqual([])
    const { id, start_url, display, shortcuts, icons, screenshots } = JSON.parse(
      data ?? '',
    ) as Manifest
    // With another id, browsers would install a second application.
    expect([id, display, shortcuts.map(({ name }) => name)]).toEqual([
      '/',
      'standalone',
      ['Feed', 'Notifications'],
    ])
    expect(icons.filter(({ purpose }) => purpose === 'maskable')).toHaveLength(2)
    for (const path of [start_url, ...shortcuts.map(({ url }) => url)])
      expect((await fetch(server.url + path)).status).toBe(200)
    const isPng = ({ type }: { type: string }) => type === 'image/png'
    const shown = [...icons.filter(isPng), ...screenshots]
    const drawn = await it.page.evaluate(
      sources =>
        Promise.all(
          sources.map(async src => {
            const image = new Image()
            image.src = src
            await image.decode()
            return `${image.naturalWidth}x${image.naturalHeight}`
          }),
        ),
      shown.map(({ src }) => src),
    )
    expect(drawn).toEqual(shown.map(({ sizes }) => sizes))
    expect(drawn).toEqual(['192x192', '512x512', '192x192', '512x512', '2160x1350', '780x1688'])
    expect(it.problems).toEqual([])
  })
})

/** Forwards requests to a server, as another build once `build` is set. */
async function openProxy() {
  const state = { target: '', build: BUILD }
  const proxy = createServer(async (request, response) => {
    const { host = '', accept = '' } = request.headers
    const answer = await fetch(state.target + request.url?.replace(state.build, BUILD), {
      headers: { host, accept },
    })
    const headers = Object.fromEntries(answer.headers)
    // The body is already decoded.
    delete headers['content-encoding']
    delete headers['content-length']
    const body = await answer.text()
    response.writeHead(answer.status, headers)
    response.end(body.replaceAll(BUILD, state.build))
  })
  const port = await listen(proxy)
  return Object.assign(state, {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      proxy.closeAllConnections()
      await new Promise(resolve => proxy.close(resolve))
    },
  })
}
