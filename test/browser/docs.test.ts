import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { HAS_BROWSER } from '../support/clients/chromium.ts'
import { openDashboard, type Dashboard } from '../support/worlds/dashboard.ts'
import { listSizeFaults } from './screens.ts'

describe.skipIf(!HAS_BROWSER)('dashboard.md §12 the documentation', () => {
  let dashboard: Dashboard
  beforeAll(async () => {
    dashboard = await openDashboard()
  })
  afterAll(() => dashboard[Symbol.asyncDispose]())

  async function open(path: string, { isSignedIn = true, isPhone = false } = {}) {
    const opened = await dashboard.openFaked({ isPhone, isSignedIn })
    await opened.page.goto(dashboard.url + path)
    return opened
  }

  test('the search finds pages, sections and operations by keyboard', async () => {
    await using it = await open('/docs')
    const { keyboard } = it.page
    for (const [query, title, target] of [
      ['Python', 'Python', /sending-events#python$/],
      ['create an event', 'Create an event', /api#createEvent$/],
      ['rotate a key', 'Rotate an API key', /#rotate-an-api-key$/],
    ] as const) {
      await keyboard.press('/')
      await keyboard.type(query)
      const results = it.page.getByRole('search').getByRole('link')
      await results.first().getByText(title).first().waitFor()
      await keyboard.press('ArrowDown')
      await keyboard.press('Enter')
      await it.page.waitForURL(target)
    }
    expect(it.problems).toEqual([])
  })

  test('Enter chooses characters of an input method before it opens a result, and Escape closes the search', async () => {
    await using it = await open('/docs')
    const field = it.page.getByLabel('Search the documentation')
    await field.fill('zyxwv qponm')
    await it.page.getByText('Nothing found').waitFor()
    await it.page.emulateMedia({ forcedColors: 'active' })
    const search = it.page.getByRole('search')
    expect(await search.evaluate(box => getComputedStyle(box).outlineStyle)).toBe('solid')
    await it.page.keyboard.press('Escape')
    expect(await it.page.getByText('Nothing found').isVisible()).toBe(false)
    await field.fill('rotate a key')
    await search.getByRole('link').first().waitFor()
    expect(await it.findBarriers()).toEqual([])
    await it.picture('docs-search')
    await field.dispatchEvent('keydown', { key: 'Enter', isComposing: true })
    await field.dispatchEvent('keydown', { key: 'Enter', keyCode: 229 })
    expect(it.page.url()).toBe(`${dashboard.url}/docs`)
    await field.press('Enter')
    await it.page.waitForURL(/#rotate-an-api-key$/)
  })

  test('code is copied', async () => {
    await using it = await open('/docs/sending-events')
    await it.context.grantPermissions(['clipboard-read', 'clipboard-write'])
    const sample = it.page.locator('.code-block').nth(1)
    await sample.getByRole('button', { name: 'Copy' }).click()
    await sample.getByText('Copied').waitFor()
    expect(await it.page.evaluate(() => navigator.clipboard.readText())).toStartWith('curl')
    expect(it.problems).toEqual([])
  })

  test('axe finds nothing, and the pages fit a phone and a wide screen', async () => {
    await using it = await open('/docs', { isPhone: true, isSignedIn: false })
    for (const path of ['', '/sending-events', '/benchmarks', '/api']) {
      await it.become('phone')
      await it.page.goto(`${dashboard.url}/docs${path}`)
      await it.page.getByLabel('Search the documentation').waitFor()
      // Colours hardly depend on the width, so that each device shows one scheme.
      for (const [device, scheme] of [
        ['phone', 'dark'],
        ['wide', 'light'],
      ] as const) {
        await it.become(device)
        const { scrollWidth, clientWidth } = await it.page.evaluate(() => {
          const { scrollWidth, clientWidth } = document.documentElement
          return { scrollWidth, clientWidth }
        })
        expect([path, device, scrollWidth]).toEqual([path, device, clientWidth])
        expect([path, device, await it.page.evaluate(listSizeFaults)]).toEqual([path, device, []])
        await it.paint(scheme)
        await it.picture(`docs${path.replace('/', '-')}`)
        expect([path, device, await it.findBarriers()]).toEqual([path, device, []])
      }
    }
    expect(it.problems).toEqual([])
  })
})
