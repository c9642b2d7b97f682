import { afterEach, expect, test } from 'bun:test'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import manifest from '../../package.json' with { type: 'json' }
import { copyCheckout } from '../support/checkout.ts'
import { HAS_BROWSER, launch, type TestBrowser } from '../support/clients/chromium.ts'
import { giveSubscription } from '../support/clients/worker.ts'
import { makeFolder, clearEmbedded } from '../support/servers/embedded.ts'
import { scaled, until } from '../support/until.ts'
import { PASSWORD } from '../support/worlds/browser.ts'
import { newSubscription } from '../support/worlds/push.ts'

afterEach(clearEmbedded)

test.skipIf(!HAS_BROWSER)(
  'dashboard.md §1 from `start` in a fresh checkout to the first event, and to a colleague',
  async () => {
    await using browser = await launch({ canNotify: true })
    const checkout = makeFolder()
    copyCheckout(checkout)
    const child = spawn(process.execPath, ['run', 'start'], {
      cwd: checkout,
      env: { ...process.env, DATA_DIR: makeFolder(), DATABASE_URL: undefined, PORT: '0' },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    const exited = once(child, 'exit')
    try {
      const link = await readLink(child)
      await using opened = await browser.open({
        hasWorker: true,
        async prepare(context) {
          await context.grantPermissions(['notifications'], { origin: new URL(link).origin })
          await giveSubscription(context, newSubscription())
        },
      })
      await sendFirstEvent(opened.page, link)
      await followChecklist(browser, opened.page)
      expect(opened.problems).toEqual([])
    } finally {
      // Ends the whole group: `bun run` is between us and the server.
      process.kill(-child.pid!, 'SIGTERM')
      await exited
    }
    // The server needed no package for development: `start` installed none of them.
    const installed = Object.keys(manifest.devDependencies).filter(name =>
      existsSync(join(checkout, 'node_modules', name)),
    )
    expect(installed).toEqual([])
  },
  scaled(180_000),
)

/** Resolves with the setup link that the start prints. */
async function readLink({ stdout, stderr }: ChildProcess): Promise<string> {
  let output = ''
  for (const stream of [stdout, stderr]) stream!.on('data', chunk => (output += String(chunk)))
  const find = () => /https?:\/\/\S+\/setup#[\w-]+/.exec(output)?.[0]
  await until(() => find() !== undefined, 170_000)
  return find()!
}

/** Creates the first account, and runs the command of the quick start. */
async function sendFirstEvent(page: Page, link: string): Promise<void> {
  await page.goto(link)
  await page.getByLabel('Your name').fill('Ada Lovelace')
  await page.getByLabel('E-mail').fill('ada@example.com')
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.keyboard.press('Enter')
  await page.getByText('Listening for your first event').waitFor()
  const command = (await page.locator('.code-block code').textContent()) ?? ''
  const sent = spawn('sh', ['-c', command], { stdio: 'ignore' })
  expect([command, ...(await once(sent, 'exit'))]).toEqual([command, 0, null])
  await page.getByText('Your first event has arrived').waitFor()
}

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
