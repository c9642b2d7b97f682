import { expect, test } from 'bun:test'
import { resolve } from 'node:path'
import { HAS_BROWSER, launch } from '../support/chromium.ts'
import { makeFolder } from '../support/embedded.ts'
import { measureFirstMinute } from '../support/first-minute.ts'

const MINUTE_MS = 60_000

// `bun run bench start` measures it, with and without `npx` and an installation.
test.skipIf(!HAS_BROWSER)(
  'dashboard.md §1 from `start` with an empty DATA_DIR to the first event within a minute',
  async () => {
    await using browser = await launch()
    const { linkMs, eventMs, problems } = await measureFirstMinute(browser, {
      command: [process.execPath, 'run', 'start'],
      cwd: resolve(import.meta.dirname, '../..'),
      env: { DATA_DIR: makeFolder(), DATABASE_URL: undefined },
    })
    expect(problems).toEqual([])
    expect(linkMs).toBeLessThan(eventMs)
    // The promised maximum, not a measure of speed.
    expect(eventMs).toBeLessThan(MINUTE_MS)
  },
  180_000,
)
