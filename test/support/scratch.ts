import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readStart } from './leftovers.ts'

/** A socket has a path of at most 103 bytes on macOS, 107 on Linux. */
const MAX_PARENT_BYTES = 32

/**
 * The folder of this run. It is the TMPDIR of tests and benches, so that they write below it.
 * Neither `bun test` nor a signal tells a test process of its end. A separate watcher process ends
 * leftover processes and removes the folder after the run.
 */
export const SCRATCH = (process.env['TIDINGS_SCRATCH'] ??= openScratch())
process.env['TMPDIR'] = SCRATCH
/** The folder for what several processes of a run share, such as Postgres and the executable. */
export const SHARED = (process.env['TIDINGS_SHARED'] ??= join(SCRATCH, 'shared'))
tryMake(SHARED)

/** Creates an empty folder in the scratch folder. */
export function makeFolder(mode = 0o755): string {
  const folder = realpathSync(mkdtempSync(join(SCRATCH, 'folder-')))
  chmodSync(folder, mode)
  return folder
}

function openScratch(): string {
  // The workers of `bun test --parallel` share the folder of the process that started them.
  const owner = process.env['BUN_TEST_WORKER_ID'] === undefined ? process.pid : process.ppid
  const start = readStart(owner) ?? '0'
  const wanted = realpathSync(tmpdir())
  const parent = Buffer.byteLength(wanted) > MAX_PARENT_BYTES ? realpathSync('/tmp') : wanted
  const folder = join(parent, `tidings-${owner.toString(36)}-${Number(start).toString(36)}`)
  if (!tryMake(folder)) return folder
  const watcher = join(import.meta.dirname, 'scratch-watcher.ts')
  spawn(process.execPath, [watcher, String(owner), start, folder], {
    // Ctrl-C at the terminal does not reach it.
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
