import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { HAS_BROWSER, launch, type TestBrowser } from '../support/chromium.ts'
import { fakeApi, type FakeApi } from '../support/fake-api.ts'
import { toHostile } from '../support/hostile.ts'
import { boot, type Booted } from '../support/server.ts'
import { SCREENS } from './screens.ts'

setDefaultTimeout(90_000)

// What leads to a screen by a press is found by its name, which is another here; the screens themselves are enough.
const paths = [
  ...new Map(
    SCREENS.filter(({ isSignedIn = true }) => isSignedIn).map(screen => [screen.path, screen]),
  ).values(),
]

describe.skipIf(!HAS_BROWSER)('reliability §9 text of others stays text, and fits', () => {
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

  test.each(paths.flatMap(screen => [[screen.name, 'wide', screen] as const, [screen.name, 'phone', screen] as const]))(
    '%s (%s)',
    async (name, device, screen) => {
      let api: FakeApi | undefined
      await using opened = await browser.open({
        isPhone: device === 'phone',
        prepare: async context => {
          api = await fakeApi(context)
          screen.prepare?.(api)
          api.change = toHostile
        },
      })
      const { page } = opened
      await page.goto(server.url + screen.path)
      await page.locator('h1').first().waitFor()
      await page.waitForLoadState('networkidle')
      const seen = await page.evaluate(() => {
        const { scrollWidth, clientWidth } = document.documentElement
        return {
          overflow: scrollWidth - clientWidth,
          made: document.querySelectorAll('img[src="x"], script:not([src]), [onmouseover]').length,
        }
      })
      await opened.picture(`hostile-${name}`)
      expect(seen).toEqual({ overflow: 0, made: 0 })
      expect(opened.problems).toEqual([])
    },
  )
})
