import { afterEach, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { copyCheckout } from '../support/checkout.ts'
import { HAS_BROWSER, launch } from '../support/clients/chromium.ts'
import { makeFolder, clearEmbedded } from '../support/servers/embedded.ts'
import { measureFirstMinute } from '../support/first-minute.ts'
import manifest from '../../package.json' with { type: 'json' }
import { scaled } from '../support/until.ts'

afterEach(clearEmbedded)

const MINUTE_MS = 60_000

// `bun run bench start` measures it, with and without `npx` and an installation.
test.skipIf(!HAS_BROWSER)(
  'dashboard.md §1 from `start` in a fresh checkout to the first event within a minute',
  async () => {
    await using browser = await launch()
    const checkout = makeFolder()
    copyCheckout(checkout)
    const { linkMs, eventMs, problems } = await measureFirstMinute(browser, {
      command: [process.execPath, 'run', 'start'],
      cwd: checkout,
      env: { DATA_DIR: makeFolder(), DATABASE_URL: undefined },
    })
    expect(problems).toEqual([])
    expect(linkMs).toBeLessThan(eventMs)
    // The promised maximum, not a measure of speed.
    expect(eventMs).toBeLessThan(MINUTE_MS)
    // The server needed no package for development: `start` installed none of them.
    const installed = Object.keys(manifest.devDependencies).filter(name =>
      existsSync(join(checkout, 'node_modules', name)),
    )
    expect(installed).toEqual([])
  },
  scaled(180_000),
)
