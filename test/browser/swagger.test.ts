import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { HAS_BROWSER, launch, type TestBrowser } from '../support/clients/chromium.ts'
import { boot, type Booted } from '../support/servers/server.ts'

/** The page, its text and its accent, as tokens.css has them. */
const OURS = {
  light: ['rgb(255, 255, 255)', 'rgb(20, 32, 30)', 'rgb(10, 111, 101)'],
  dark: ['rgb(14, 21, 20)', 'rgb(228, 238, 235)', 'rgb(99, 212, 194)'],
}

/** Reads what Scalar paints with. Runs in the page. */
function readColours(): string[] {
  const probe = document.body.appendChild(document.createElement('i'))
  const colours = ['background-1', 'color-1', 'color-accent'].map(name => {
    probe.style.color = `var(--scalar-${name})`
    return getComputedStyle(probe).color
  })
  probe.remove()
  return colours
}

describe.skipIf(!HAS_BROWSER)('/swagger', () => {
  let server: Booted
  let browser: TestBrowser
  let origin: string
  beforeAll(async () => {
    browser = await launch()
    server = await boot()
    // Like BASE_URL: Scalar sends its requests there.
    origin = `http://localhost:${server.server.port}`
  })
  afterAll(async () => {
    await browser[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  async function open({ isPhone = false, hash = '' } = {}) {
    const requests: string[] = []
    const opened = await browser.open({
      isPhone,
      prepare: async context => {
        context.on('request', request => void requests.push(request.url()))
      },
    })
    await opened.page.goto(`${origin}/swagger${hash}`)
    return { ...opened, requests }
  }

  test.each([
    [true, 'api', 'Create an event'],
    [false, 'management', 'Get your account'],
  ])('shows each document from this server alone (phone: %p, %s)', async (isPhone, slug, title) => {
    await using it = await open({ isPhone, hash: `#${slug}` })
    const heading = it.page.getByRole('heading', { name: title, exact: true })
    for (const scheme of ['light', 'dark'] as const) {
      await it.paint(scheme)
      // The page is open in light colours, and Scalar is slow to load.
      if (scheme === 'dark') await it.page.reload()
      await heading.waitFor()
      expect(await it.page.locator(`body.${scheme}-mode`).count()).toBe(1)
      expect(await it.page.evaluate(readColours)).toEqual(OURS[scheme])
      await it.picture(`swagger-${slug}`)
    }
    await heading.scrollIntoViewIfNeeded()
    await it.picture(`swagger-${slug}-operation`)
    expect(it.requests.filter(url => !url.startsWith(`${origin}/`))).toEqual([])
    expect(it.problems).toEqual([])
  })

  test('a request is tried out, against this server alone', async () => {
    await using it = await open({ hash: '#api/tag/keys/GET/v1/me' })
    await it.page.getByRole('button', { name: /Test Request.*\/v1\/me/ }).click()
    const answer = it.page.waitForResponse(`${origin}/v1/me`)
    await it.page.locator('[data-addressbar-action="send"]:visible').click()
    expect((await answer).status()).toBe(401)
    expect(it.requests.filter(url => !url.startsWith(`${origin}/`))).toEqual([])
    expect(it.problems).toEqual([])
  })
})
