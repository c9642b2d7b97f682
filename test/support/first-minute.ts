import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Page } from 'playwright-core'
import type { TestBrowser } from './clients/chromium.ts'
import { giveSubscription } from './clients/worker.ts'
import { scaled } from './until.ts'
import { PASSWORD } from './worlds/browser.ts'
import { newSubscription } from './worlds/push.ts'

const START_MS = scaled(300_000)

interface Journey {
  /** The command that a newcomer types in a checkout. */
  command: readonly [string, ...string[]]
  cwd: string
  env: Record<string, string | undefined>
  /** Continues after the first event, on the page of the quick start. */
  goOn?(page: Page): Promise<void>
}

/**
 * Runs the newcomer's command; returns the milliseconds until the link, until the first event, and
 * until the end of the journey.
 */
export async function measureFirstMinute(
  browser: TestBrowser,
  { command: [program, ...args], cwd, env, goOn }: Journey,
): Promise<{ linkMs: number; eventMs: number; endMs: number; problems: readonly string[] }> {
  const began = performance.now()
  const child = spawn(program, args, {
    cwd,
    env: { ...process.env, ...env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const exited = once(child, 'exit')
  try {
    const link = await readLink(child)
    const linkMs = performance.now() - began
    await using opened = await browser.open({
      hasWorker: true,
      async prepare(context) {
        await context.grantPermissions(['notifications'], { origin: new URL(link).origin })
        await giveSubscription(context, newSubscription())
      },
    })
    const { page } = opened
    await page.goto(link)
    await page.getByLabel('Your name').fill('Ada Lovelace')
    await page.getByLabel('E-mail').fill('ada@example.com')
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.keyboard.press('Enter')
    await page.getByText('Listening for your first event').waitFor()
    const curl = (await page.locator('.code-block code').textContent()) ?? ''
    const sent = spawn('sh', ['-c', curl], { stdio: 'ignore' })
    const [code] = await once(sent, 'exit')
    if (code !== 0) throw new Error(`curl ended with ${code}: ${curl}`)
    await page.getByText('Your first event has arrived').waitFor()
    const eventMs = performance.now() - began
    await goOn?.(page)
    return { linkMs, eventMs, endMs: performance.now() - began, problems: opened.problems }
  } finally {
    // Kills the whole group: npx and bun run are between us and the server.
    process.kill(-child.pid!, 'SIGTERM')
    await exited
  }
}

/** Resolves with the setup link that the start prints. */
async function readLink({ stdout, stderr }: ReturnType<typeof spawn>): Promise<string> {
  let output = ''
  return new Promise((resolve, reject) => {
    const give = (chunk: unknown) => {
      output += String(chunk)
      const link = /https?:\/\/\S+\/setup#[\w-]+/.exec(output)?.[0]
      if (link) resolve(link)
    }
    stdout?.on('data', give)
    stderr?.on('data', give)
    stdout?.on('end', () => reject(new Error(`It printed no link:\n${output}`)))
    setTimeout(() => reject(new Error(`No link in time:\n${output}`)), START_MS).unref()
  })
}
