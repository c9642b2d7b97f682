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
    server = await boot({}, { kinds: [] })
    // Like BASE_URL: Scalar sends its requests there.
    origin = `http://localhost:${server.server.port}`
  })
  afterAll(async () => {
    await browser[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  async function open(hash: string, { isPhone = false, isDark = false } = {}) {
    const requests: string[] = []
    const opened = await browser.open({ isPhone })
    opened.page.on('request', request => void requests.push(request.url()))
    if (isDark) await opened.paint('dark')
    await opened.page.goto(`${origin}/swagger${hash}`)
    const listForeign = () => {
      // Requests of another page would be missing.
      expect(opened.context.pages().at(-1)).toBe(opened.page)
      return requests.filter(url => !url.startsWith(`${origin}/`))
    }
    return { ...opened, listForeign }
  }

  // Scalar is slow to load, so that each page is loaded in one scheme and turned into the other.
  test.each([
    [true, 'api', 'Create an event', ['light', 'dark']],
    [false, 'management', 'Get your account', ['dark', 'light']],
  ] as const)('shows each document from this server alone (phone: %p, %s)', async (...row) => {
    const [isPhone, slug, title, schemes] = row
    await using it = await open(`#${slug}`, { isPhone, isDark: schemes[0] === 'dark' })
    const heading = it.page.getByRole('heading', { name: title, exact: true })
    for (const scheme of schemes) {
      await it.paint(scheme)
      await heading.waitFor()
      await it.page.locator(`body.${scheme}-mode`).waitFor()
      expect(await it.page.locator(`body.${scheme}-mode`).count()).toBe(1)
      expect(await it.page.evaluate(readColours)).toEqual(OURS[scheme])
      await it.picture(`swagger-${slug}`)
    }
    await heading.scrollIntoViewIfNeeded()
    await it.picture(`swagger-${slug}-operation`)
    expect(it.listForeign()).toEqual([])
    expect(it.problems).toEqual([])
  })

  test('a request is tried out, against this server alone', async () => {
    await using it = await open('#api/tag/keys/GET/v1/me')
    await it.page.getByRole('button', { name: /Test Request.*\/v1\/me/ }).click()
    const answer = it.page.waitForResponse(`${origin}/v1/me`)
    await it.page.locator('[data-addressbar-action="send"]:visible').click()
    expect((await answer).status()).toBe(401)
    expect(it.listForeign()).toEqual([])
    expect(it.problems).toEqual([])
  })
})
