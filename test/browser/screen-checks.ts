import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { HAS_BROWSER, launch, type TestBrowser } from '../support/chromium.ts'
import { fakeApi } from '../support/fake-api.ts'
import { boot, type Booted } from '../support/server.ts'
import { SCREENS } from './screens.ts'

/**
 * Declares a test per screen on one device. Devices and halves of the screens have separate files,
 * to run at once.
 */
export function describeScreens(device: 'wide' | 'phone', half: 'first' | 'second'): void {
  setDefaultTimeout(90_000)

  const middle = Math.ceil(SCREENS.length / 2)
  const screens = half === 'first' ? SCREENS.slice(0, middle) : SCREENS.slice(middle)

  describe.skipIf(!HAS_BROWSER)(`dashboard.md: every screen (${device})`, () => {
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

    test.each(screens)(
      '$name keeps to the policy, fits, and axe finds nothing, light or dark',
      async screen => {
        await using opened = await browser.open({
          isPhone: device === 'phone',
          prepare: async context => {
            const api = await fakeApi(context, { isSignedIn: screen.isSignedIn ?? true })
            await screen.prepare?.(api, context)
          },
        })
        const { page } = opened
        await page.goto(server.url + screen.path)
        await page.locator(screen.until).first().waitFor()
        await screen.act?.(page)
        const { scrollWidth, clientWidth } = await page.evaluate(() => {
          const { scrollWidth, clientWidth } = document.documentElement
          return { scrollWidth, clientWidth }
        })
        expect(scrollWidth).toBe(clientWidth)
        expect(opened.problems).toEqual([])
        for (const scheme of ['light', 'dark'] as const) {
          await opened.paint(scheme)
          await opened.picture(screen.name)
          expect(await opened.findBarriers()).toEqual([])
        }
      },
    )
  })
}
