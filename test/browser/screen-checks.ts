import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { HAS_BROWSER, launch, type TestBrowser, type TestPage } from '../support/chromium.ts'
import { boot, type Booted } from '../support/server.ts'
import { openScreens, type ScreenPages } from './screen-pages.ts'
import { SCREENS } from './screens.ts'

/** Declares a test per screen. Halves of the screens have separate files, to run at once. */
export function describeScreens(half: 'first' | 'second'): void {
  setDefaultTimeout(90_000)

  const middle = Math.ceil(SCREENS.length / 2)
  const screens = half === 'first' ? SCREENS.slice(0, middle) : SCREENS.slice(middle)

  describe.skipIf(!HAS_BROWSER)('dashboard.md: every screen', () => {
    let server: Booted
    let browser: TestBrowser
    let pages: ScreenPages
    beforeAll(async () => {
      browser = await launch()
      server = await boot()
      pages = openScreens(browser, server.url)
    })
    afterAll(async () => {
      await pages[Symbol.asyncDispose]()
      await browser[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    })

    test.each(screens)(
      '$name keeps to the policy, fits a phone and a wide screen, and axe finds nothing, light or dark',
      async screen => {
        const shown = await pages.show(screen)
        await shown.page.locator(screen.until).first().waitFor()
        await screen.act?.(shown.page)
        for (const device of ['phone', 'wide'] as const) {
          await shown.become(device)
          expect(await findOverflow(shown)).toBe(0)
          for (const scheme of ['light', 'dark'] as const) {
            await shown.paint(scheme)
            await shown.picture(screen.name)
            expect([device, await shown.findBarriers()]).toEqual([device, []])
          }
        }
        expect(shown.problems).toEqual([])
      },
    )
  })
}

/** Returns the number of pixels by which a page is wider than its window. */
function findOverflow({ page }: TestPage): Promise<number> {
  return page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement
    return scrollWidth - clientWidth
  })
}
