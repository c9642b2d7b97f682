import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { clearFolder, isRunning, listRunning } from '../support/leftovers.ts'
import { KINDS, type Batch } from './lanes.ts'
import { createOutputReader, type FileOutput } from './output.ts'

/** A process that prints nothing for this long, times the factor of the machine, is wedged. */
const QUIET_MS = 120_000
const CHECK_MS = 250
/** The end of Postgres and of a browser takes a moment after that of their test. */
const GRACE_MS = 10_000

export interface BatchOptions {
  /** The folder for the files of all batches. */
  scratch: string
  /** How many times slower this machine is than usual. */
  factor: number
  quietMs?: number
  graceMs?: number
}

/** How a process ended: by itself after all files, killed as it printed nothing, or in between. */
type Ending = 'complete' | 'wedged' | 'crashed'

export interface BatchResult {
  batch: Batch
  ending: Ending
  /** The exit code or signal; undefined where Bun did not report the end of the process. */
  exit: string | undefined
  files: FileOutput[]
  assertions: number
  /** Processes and mounts that were left. They are gone now. */
  left: string[]
}

const ROOT = resolve(import.meta.dirname, '../..')
let batches = 0

/** Runs the files of a batch in one process, with a TMPDIR that is removed at the end. */
export async function runBatch(batch: Batch, options: BatchOptions): Promise<BatchResult> {
  const { scratch, factor, quietMs = QUIET_MS, graceMs = GRACE_MS } = options
  const folder = join(scratch, String(++batches))
  mkdirSync(folder)
  chmodSync(folder, 0o755)
  const limitMs = Math.round(KINDS[batch.kind].limitMs * factor)
  const paths = batch.files.map(file => (file.startsWith('/') ? file : `./${file}`))
  const child = spawn(process.execPath, ['test', `--timeout=${limitMs}`, ...paths], {
    cwd: ROOT,
    env: {
      ...process.env,
      TMPDIR: folder,
      TIDINGS_SCRATCH: folder,
      TIDINGS_TEST_FACTOR: String(factor),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const reader = createOutputReader()
  let lastMs = performance.now()
  for (const stream of [child.stdout, child.stderr]) {
    createInterface(stream).on('line', line => {
      lastMs = performance.now()
      reader.read(line, lastMs)
    })
  }
  let exit: string | undefined
  const closed = new Promise<void>(resolve => {
    child.once('close', (code, signal) => {
      exit = signal ?? String(code)
      resolve()
    })
  })
  // Bun does not always report the end of a child (oven-sh/bun#43697), so it is looked for.
  const pid = child.pid
  let isWedged = false
  while (exit === undefined && pid !== undefined && isRunning(pid)) {
    await Promise.race([closed, sleep(CHECK_MS)])
    isWedged = performance.now() - lastMs > quietMs * factor
    if (isWedged) child.kill('SIGKILL')
    if (isWedged) break
  }
  await Promise.race([closed, sleep(CHECK_MS)])
  const left = isWedged ? [] : await listLeft(folder, graceMs * factor)
  await clearFolder(folder)
  const ending = isWedged ? 'wedged' : reader.isComplete ? 'complete' : 'crashed'
  const { files, assertions } = reader
  return { batch, ending, exit, files, assertions, left }
}

/** Returns what still works in `folder`, at most `graceMs` after the end of its process. */
async function listLeft(folder: string, graceMs: number): Promise<string[]> {
  const deadline = performance.now() + graceMs
  for (;;) {
    const running = listRunning(folder)
    if (running.length === 0) return []
    if (performance.now() > deadline) {
      return running.map(({ pid, command }) => `process ${pid}: ${command}`)
    }
    await sleep(100)
  }
}
