import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { clearFolder, isRunning, listLeftovers, type Leftover } from '../support/leftovers.ts'
import { KINDS, type Batch } from './lanes.ts'
import { createOutputReader, type FileOutput } from './output.ts'

/** A process that does nothing for this long, times the factor of the machine, is wedged. */
const QUIET_MS = 120_000
/** So is one that prints nothing for this long, such as at an await outside of tests. */
const STUCK_MS = 660_000
const CHECK_MS = 250
/** The end of Postgres and of a browser takes a moment after that of their test. */
const GRACE_MS = 10_000
/**
 * A process of tests lives for minutes. It keeps freed memory, and compiles no function a third
 * time: measured, both save a fifth of its processor time.
 */
const THRIFTY = { MIMALLOC_PURGE_DELAY: '-1', BUN_JSC_useFTLJIT: '0' }
/** A line of output can be read this much later than it was printed. */
export const LAG_MS = 500

export interface BatchOptions {
  /** The folder for the files of all batches. */
  scratch: string
  /** Returns how many times slower than usual this machine is now. */
  factor(): number
  /** Drops the databases whose names begin like this, and returns their names. */
  dropDatabases(prefix: string): Promise<string[]>
  quietMs?: number
  stuckMs?: number
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
  /** All that was left; it is gone now. */
  left: Left[]
}

/** A process, folder or database that a file has left. */
interface Left {
  what: string
  /** The files that can have left it: one, if the time of its start tells. */
  by: readonly string[]
}

const ROOT = resolve(import.meta.dirname, '../..')
let batches = 0

/** Runs the files of a batch in one process, with a TMPDIR that is removed at the end. */
export async function runBatch(batch: Batch, options: BatchOptions): Promise<BatchResult> {
  const { scratch, factor, quietMs = QUIET_MS, stuckMs = STUCK_MS, graceMs = GRACE_MS } = options
  const nth = ++batches
  const folder = join(scratch, String(nth))
  mkdirSync(folder)
  chmodSync(folder, 0o755)
  const factorNow = factor()
  const limitMs = Math.round(KINDS[batch.kind].limitMs * factorNow)
  const paths = batch.files.map(file => (file.startsWith('/') ? file : `./${file}`))
  const beat = join(folder, 'beat')
  // A runner that a test starts is in a batch of another one, and must not drop its databases.
  const databases = `${process.env['TIDINGS_TEST_DATABASES'] ?? 'test_'}${nth}_`
  const child = spawn(
    process.execPath,
    ['test', '--no-env-file', `--timeout=${limitMs}`, ...paths],
    {
      cwd: ROOT,
      env: {
        ...process.env,
        ...THRIFTY,
        TMPDIR: folder,
        TIDINGS_SCRATCH: folder,
        TIDINGS_TEST_BEAT: beat,
        TIDINGS_TEST_DATABASES: databases,
        TIDINGS_TEST_FACTOR: String(factorNow),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const reader = createOutputReader()
  let printedMs = performance.now()
  for (const stream of [child.stdout, child.stderr]) {
    createInterface(stream).on('line', line => {
      printedMs = performance.now()
      reader.read(line, printedMs)
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
  let beats = ''
  let aliveMs = printedMs
  while (exit === undefined && pid !== undefined && isRunning(pid)) {
    await Promise.race([closed, sleep(CHECK_MS)])
    const nowMs = performance.now()
    const lastBeats = beats
    beats = tryRead(beat)
    if (beats !== lastBeats) aliveMs = nowMs
    isWedged =
      nowMs - Math.max(aliveMs, printedMs) > quietMs * factor() ||
      nowMs - printedMs > stuckMs * factor()
    if (isWedged) child.kill('SIGKILL')
    if (isWedged) break
  }
  await Promise.race([closed, sleep(CHECK_MS)])
  const { files, assertions } = reader
  const left: Left[] = []
  if (!isWedged) {
    for (const { pid, command, ageMs } of await waitForEnd(folder, () => graceMs * factor())) {
      left.push({ what: `process ${pid}: ${command}`, by: findFiles(batch, files, ageMs) })
    }
  }
  try {
    await clearFolder(folder, factor())
  } catch (error) {
    left.push({ what: String(error), by: batch.files })
  }
  await options.dropDatabases(`shared_${databases}`)
  for (const name of await options.dropDatabases(databases)) {
    // A process that did not end by itself could not drop its own.
    if (reader.isComplete) left.push({ what: `database ${name}`, by: batch.files })
  }
  const ending = isWedged ? 'wedged' : reader.isComplete ? 'complete' : 'crashed'
  return { batch, ending, exit, files, assertions, left }
}

/** Returns what still works in `folder` this long after the end of its process. */
async function waitForEnd(folder: string, graceMs: () => number): Promise<Leftover[]> {
  const startedMs = performance.now()
  for (;;) {
    const running = listLeftovers(folder)
    if (running.length === 0 || performance.now() - startedMs > graceMs()) return running
    await sleep(100)
  }
}

/** Returns the files that ran when a process of this age started; all if that is not known. */
function findFiles(
  batch: Batch,
  files: readonly FileOutput[],
  ageMs: number | undefined,
): readonly string[] {
  if (ageMs === undefined) return batch.files
  const atMs = performance.now() - ageMs
  const found = files.filter(
    ({ startedMs, endedMs = Infinity }) => startedMs - LAG_MS <= atMs && atMs <= endedMs + LAG_MS,
  )
  return found.length > 0 ? found.map(({ file }) => file) : batch.files
}

function tryRead(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
