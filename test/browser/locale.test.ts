import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { HAS_BROWSER } from '../support/clients/chromium.ts'
import { SCREENS } from './screens.ts'
import { openDashboard, type Dashboard } from '../support/worlds/dashboard.ts'

describe.skipIf(!HAS_BROWSER)("dashboard.md: English, with the reader's clock and numbers", () => {
  let dashboard: Dashboard
  beforeAll(async () => {
    dashboard = await openDashboard()
  })
  afterAll(() => dashboard[Symbol.asyncDispose]())

  test.each([
    ['en-US', '1,240 of 1,000,000', /^\w+day, \w+ \d+, 2026 at \d+:\d\d:\d\d\s[AP]M/],
    ['de-DE', '1.240 of 1.000.000', /^\w+day,? \d+ \w+ 2026 at \d\d:\d\d:\d\d /],
  ])('in a browser of %s', async (locale, used, time) => {
    const { path, prepare, until } = SCREENS.find(({ name }) => name === 'server')!
    await using shown = await dashboard.openFaked({ locale, prepare: api => prepare?.(api) })
    await shown.page.goto(dashboard.url + path)
    await shown.page.locator(until).first().waitFor()
    await shown.page.getByText(`${used} events this minute`).waitFor()
    expect(await shown.page.locator('time').first().getAttribute('title')).toMatch(time)
    expect(shown.problems).toEqual([])
  })
})
