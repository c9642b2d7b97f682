import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { launch, type TestBrowser } from '../support/clients/chromium.ts'
import { measureFirstMinute } from '../support/first-minute.ts'
import { median } from './wrk.ts'
import { makeFolder } from '../support/scratch.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const ROUNDS = 3

/**
 * Measures the README's command up to the first event in the browser, on an empty and on a prepared
 * machine.
 */
export async function benchStart(): Promise<void> {
  await using browser = await launch()
  const rounds = async (what: string, aimS: number, run: typeof fromNothing) => {
    const values: number[] = []
    for (let round = 0; round < ROUNDS; round += 1) values.push(await run(browser))
    const all = values.map(ms => (ms / 1000).toFixed(1)).join(', ')
    console.log(`${what}: median ${(median(values) / 1000).toFixed(1)} s of ${all}, aim ${aimS} s`)
  }
  await rounds('start to first event, npx and packages downloaded', 60, fromNothing)
  await rounds('the same, already installed, empty DATA_DIR', 10, installed)
}

/** Runs a copy of the committed files with empty caches. */
function fromNothing(browser: TestBrowser): Promise<number> {
  return inFolder(async folder => {
    const cwd = join(folder, 'tidings')
    mkdirSync(cwd)
    const { status } = spawnSync('sh', ['-c', 'git archive HEAD | tar -x -C "$TO"'], {
      cwd: ROOT,
      env: { ...process.env, TO: cwd },
    })
    if (status !== 0) throw new Error('git archive failed')
    const { eventMs } = await measureFirstMinute(browser, {
      command: ['npx', '--yes', 'bun@1.4.5', 'run', 'start'],
      cwd,
      env: {
        npm_config_cache: join(folder, 'npm'),
        BUN_INSTALL_CACHE_DIR: join(folder, 'bun'),
        DATA_DIR: join(folder, 'data'),
      },
    })
    return eventMs
  })
}

function installed(browser: TestBrowser): Promise<number> {
  return inFolder(async folder => {
    const { eventMs } = await measureFirstMinute(browser, {
      command: [process.execPath, 'run', 'start'],
      cwd: ROOT,
      env: { DATA_DIR: folder },
    })
    return eventMs
  })
}

async function inFolder<Result>(run: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = makeFolder()
  try {
    return await run(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
