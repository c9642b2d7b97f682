import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { HAS_BROWSER, launch, type TestBrowser } from '../support/chromium.ts'
import { fakeApi, type FakeApi } from '../support/fake-api.ts'
import { boot, type Booted } from '../support/server.ts'

setDefaultTimeout(90_000)

describe.skipIf(!HAS_BROWSER)('dashboard.md §12 the documentation', () => {
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

  async function open({ isSignedIn = true, isPhone = false } = {}) {
    let api: FakeApi | undefined
    const opened = await browser.open({
      isPhone,
      prepare: async context => {
        api = await fakeApi(context, { isSignedIn })
      },
    })
    await opened.page.goto(`${server.url}/docs`)
    return { ...opened, api: api! }
  }

  test('a language is chosen, also by keyboard, and its sample is copied', async () => {
    await using it = await open()
    const shown = it.page.locator('.tabs').first().locator('.tab:visible')
    await shown.getByText('-H').first().waitFor()
    expect(await shown.count()).toBe(1)
    await it.page.getByLabel('Go', { exact: true }).first().check()
    await shown.getByText('package main').waitFor()
    await it.page.keyboard.press('ArrowRight')
    await shown.getByText('Net::HTTP').waitFor()
    await it.context.grantPermissions(['clipboard-read', 'clipboard-write'])
    await shown.getByRole('button', { name: 'Copy' }).click()
    await shown.getByText('Copied').waitFor()
    expect(await it.page.evaluate(() => navigator.clipboard.readText())).toContain('Net::HTTP')
    expect(it.problems).toEqual([])
  })

  test('a signed-in member gets a key in all examples, after typing their password', async () => {
    await using it = await open()
    const path = 'POST /api/projects/:id/keys'
    const make = it.api.handler(path)
    it.api.on(path, () => ({ status: 403, code: 'verification_needed', error: 'Password first' }))
    it.api.on('POST /api/session/verify', () => {
      it.api.on(path, make)
      return { data: {} }
    })
    await it.page.getByRole('button', { name: 'Make a key' }).click()
    await it.page.getByLabel('Password').fill('a phrase of some words')
    await it.page.keyboard.press('Enter')
    await it.page.getByText('shown this once').waitFor()
    const samples = await it.page.locator('.sample code').allTextContents()
    expect(samples.filter(text => text.includes('YOUR_API_KEY'))).toEqual([])
    expect(samples.filter(text => text.includes('Bearer tdg_example')).length).toBeGreaterThan(8)
    expect(it.api.requests.at(-1)).toBe(path)
    expect(it.problems).toEqual([])
  })

  test('without a session no key is offered', async () => {
    await using it = await open({ isSignedIn: false })
    await it.page.locator('.copy').first().waitFor()
    expect(await it.page.locator('#key-offer').isVisible()).toBe(false)
  })

  test.each([false, true])('axe finds nothing, and the page fits (phone: %p)', async isPhone => {
    await using it = await open({ isPhone })
    await it.page.getByRole('button', { name: 'Make a key' }).waitFor()
    const { scrollWidth, clientWidth } = await it.page.evaluate(() => {
      const { scrollWidth, clientWidth } = document.documentElement
      return { scrollWidth, clientWidth }
    })
    expect(scrollWidth).toBe(clientWidth)
    for (const scheme of ['light', 'dark'] as const) {
      await it.paint(scheme)
      await it.picture('docs')
      expect(await it.findBarriers()).toEqual([])
    }
    for (const part of ['who', 'webhooks', 'push', 'self-hosting', 'management']) {
      await it.page.evaluate(id => document.getElementById(id)?.scrollIntoView(), part)
      await it.picture(`docs-${part}`)
    }
    expect(it.problems).toEqual([])
  })
})
