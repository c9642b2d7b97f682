import { afterEach, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { copyCheckout } from '../support/checkout.ts'
import type { Page } from 'playwright-core'
import { HAS_BROWSER, launch, type TestBrowser } from '../support/clients/chromium.ts'
import { makeFolder, clearEmbedded } from '../support/servers/embedded.ts'
import { measureFirstMinute } from '../support/first-minute.ts'
import manifest from '../../package.json' with { type: 'json' }
import { scaled } from '../support/until.ts'
import { PASSWORD } from '../support/worlds/browser.ts'

afterEach(clearEmbedded)

test.skipIf(!HAS_BROWSER)(
  'dashboard.md §1 from `start` in a fresh checkout to the first event, and to a colleague',
  async () => {
    await using browser = await launch({ canNotify: true })
    const checkout = makeFolder()
    copyCheckout(checkout)
    const { linkMs, eventMs, problems } = await measureFirstMinute(browser, {
      command: [process.execPath, 'run', 'start'],
      cwd: checkout,
      env: { DATA_DIR: makeFolder(), DATABASE_URL: undefined },
      goOn: page => followChecklist(browser, page),
    })
    expect(problems).toEqual([])
    expect(linkMs).toBeLessThan(eventMs)
    // The server needed no package for development: `start` installed none of them.
    const installed = Object.keys(manifest.devDependencies).filter(name =>
      existsSync(join(checkout, 'node_modules', name)),
    )
    expect(installed).toEqual([])
  },
  scaled(180_000),
)

/** Turns on notifications, and invites a colleague, who joins in a browser of their own. */
async function followChecklist(browser: TestBrowser, page: Page): Promise<void> {
  await page.getByText('1 of 4 done').waitFor()
  await page.getByRole('link', { name: 'Turn on notifications in this browser' }).click()
  await page.getByRole('button', { name: 'Turn on' }).click()
  await page.getByRole('heading', { name: 'On in this browser' }).waitFor()
  await page.getByRole('link', { name: 'Back to the checklist' }).click()
  await page.getByText('2 of 4 done').waitFor()
  await page.getByRole('link', { name: 'Invite a colleague' }).click()
  await page.getByRole('button', { name: 'Invite a member' }).click()
  await page.getByRole('button', { name: 'Create link' }).click()
  await page.getByText('It opens only on the server’s own machine').waitFor()
  const link = (await page.locator('.secret-once code').textContent()) ?? ''

  await using opened = await browser.open()
  const colleague = opened.page
  await colleague.goto(link)
  await colleague.getByText('Ada Lovelace invited you').waitFor()
  await colleague.getByLabel('Your name').fill('Grace Hopper')
  await colleague.getByLabel('E-mail').fill('grace@example.com')
  await colleague.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await colleague.keyboard.press('Enter')
  await colleague.getByRole('heading', { name: 'It works' }).waitFor()
  await colleague.locator('.pill').filter({ hasText: 'Live' }).waitFor()
  expect(opened.problems).toEqual([])

  await page.getByRole('link', { name: 'Back to the checklist' }).click()
  await page.getByText('3 of 4 done').waitFor()
}
