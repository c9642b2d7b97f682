import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { HAS_BROWSER, launch, type TestBrowser } from '../support/chromium.ts'
import { fakeApi } from '../support/fake-api.ts'
import { toHostile } from '../support/hostile.ts'
import { boot, type Booted } from '../support/server.ts'
import { SCREENS } from './screens.ts'

setDefaultTimeout(90_000)

// Screens with a different address or different answers. Further controls are found by names, which
// are hostile here.
const DIFFERENT = [
  ...new Map(
    SCREENS.filter(({ isSignedIn = true }) => isSignedIn)
      .toReversed()
      .map(screen => [`${screen.path} ${screen.prepare}`, screen]),
  ).values(),
]

describe.skipIf(!HAS_BROWSER)('reliability §9 hostile text stays text, and fits', () => {
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

  const cases = DIFFERENT.map(({ name, path, prepare }) => ({ name, path, prepare }))
  test.each(cases)('$name', async ({ name, path, prepare }) => {
    for (const isPhone of [true, false]) {
      await using opened = await browser.open({
        isPhone,
        prepare: async context => {
          const api = await fakeApi(context)
          await prepare?.(api, context)
          api.change = toHostile
        },
      })
      const { page } = opened
      await page.goto(server.url + path)
      await page.locator('h1').first().waitFor()
      await page.waitForLoadState('networkidle')
      const seen = await page.evaluate(() => {
        const { scrollWidth, clientWidth } = document.documentElement
        return {
          overflow: scrollWidth - clientWidth,
          heading: document.querySelector('h1')?.textContent,
          made: document.querySelectorAll('img[src="x"], script:not([src]), [onmouseover]').length,
        }
      })
      await opened.picture(`hostile-${name}`)
      expect(seen).toEqual({
        overflow: 0,
        made: 0,
        heading: expect.not.stringContaining('went wrong'),
      })
      expect(opened.problems).toEqual([])
    }
  })
})
