import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { HAS_BROWSER } from '../support/clients/chromium.ts'
import { toHostile } from '../support/hostile.ts'
import { openScreen, PAGES } from './screens.ts'
import { openDashboard, type Dashboard } from '../support/worlds/dashboard.ts'

describe.skipIf(!HAS_BROWSER)('reliability §9 hostile text stays text, and fits', () => {
  let dashboard: Dashboard
  beforeAll(async () => {
    dashboard = await openDashboard()
  })
  afterAll(() => dashboard[Symbol.asyncDispose]())

  // Further controls are found by names, which are hostile here.
  test.each(PAGES.filter(({ isSignedIn = true }) => isSignedIn))('$name', async screen => {
    await using shown = await openScreen(dashboard, screen, { change: toHostile })
    const { page } = shown
    await page.locator('h1').first().waitFor()
    await shown.settle()
    for (const device of ['phone', 'wide'] as const) {
      await shown.become(device)
      const seen = await page.evaluate(() => {
        const { scrollWidth, clientWidth } = document.documentElement
        return {
          overflow: scrollWidth - clientWidth,
          heading: document.querySelector('h1')?.textContent,
          made: document.querySelectorAll('img[src="x"], script:not([src]), [onmouseover]').length,
        }
      })
      await shown.picture(`hostile-${screen.name}`)
      expect([device, seen]).toEqual([
        device,
        { overflow: 0, made: 0, heading: expect.not.stringContaining('went wrong') },
      ])
    }
    expect(shown.problems).toEqual([])
  })
})
