import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readStart } from './leftovers.ts'

/** In the scratch folder, the DATA_DIR of a cluster that is kept and only stopped. */
export const KEPT_FILE = 'kept'

/**
 * The folder of this run. Everything that tests and benches write is below it, because it is also their TMPDIR. Neither
 * `bun test` nor a signal tells a test process of its end, so a watcher of its own ends what still runs there and removes
 * the folder once the run is over.
 */
export const SCRATCH = (process.env['TIDINGS_SCRATCH'] ??= openScratch())
process.env['TMPDIR'] = SCRATCH

/** Makes an empty folder in the scratch folder. Other users, such as that of Postgres, may enter it. */
export function makeFolder(mode = 0o755): string {
  const folder = realpathSync(mkdtempSync(join(SCRATCH, 'folder-')))
  chmodSync(folder, mode)
  return folder
}

function openScratch(): string {
  // The workers of `bun test --parallel` share the folder of the process that started them.
  const owner = process.env['BUN_TEST_WORKER_ID'] === undefined ? process.pid : process.ppid
  const start = readStart(owner) ?? '0'
  const folder = join(realpathSync(tmpdir()), `tidings-test-${owner}-${start}`)
  if (!tryMake(folder)) return folder
  const watcher = join(import.meta.dirname, 'scratch-watcher.ts')
  spawn(process.execPath, [watcher, String(owner), start, folder, KEPT_FILE], {
    // Out of reach of a Ctrl-C at the terminal.
    detached: true,
    stdio: ['ignore', 'ignore', 'inherit'],
  }).unref()
  return folder
}

function tryMake(folder: string): boolean {
  try {
    mkdirSync(folder)
    chmodSync(folder, 0o755)
    return true
  } catch (error) {
    if ((error as { code?: string }).code === 'EEXIST') return false
    throw error
  }
}
