import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { closeSync, openSync } from 'node:fs'
import { constants } from 'node:os'
import { basename } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import type { EventInput } from '../log/events/schema.ts'
import { removeEscapeSequences } from '../base/display-text.ts'
import { toReason } from '../base/errors.ts'
import { command, UsageError } from './command.ts'
import { createApiClient } from './login.ts'

/** How long the end of a command waits for its output, and then for the server. */
const END_MS = 5_000
const MAX_LINES = 20
const MAX_CHARACTERS = 4_000
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export const run = command({
  name: 'run',
  description:
    'Run a command, and tell how it ends: its exit code, duration and last lines. The exit code is that of the command. Requires TIDINGS_API_KEY or `tidings login`.',
  examples: [
    'tidings run -- ./deploy.sh production',
    "tidings run --channel backups --thread 'nightly backup' -- pg_dump -f shop.sql shop",
  ],
  hasWords: true,
  args: {
    channel: { type: 'string', default: 'runs', description: 'Name of the channel' },
    thread: { type: 'string', description: 'Key of the thread; one for each run by default' },
  },
  async run({ channel, thread, _: words }) {
    const [file, ...rest] = words
    if (file === undefined) throw new UsageError('Give a command after --.')
    const name = basename(file)
    const stopping = new AbortController()
    const key = thread ?? `run ${name} ${randomUUID()}`
    const startedMs = Date.now()
    async function tell(event: Pick<EventInput, 'title' | 'state'> & Partial<EventInput>) {
      try {
        const input = { channelName: channel, source: 'cli', thread: key, ...event }
        await createApiClient().events.create(input, { signal: stopping.signal })
      } catch (error) {
        console.error(`tidings: the event was not sent: ${toReason(error)}`)
      }
    }

    const child = spawn(file, rest, { stdio: ['inherit', 'pipe', 'pipe'] })
    const started = tell({ title: `${name} started`, state: 'running' })
    const isAtTerminal = hasTerminal()
    for (const signal of SIGNALS)
      process.on(signal, () => {
        // A terminal sends the others to the command, too.
        if (signal === 'SIGTERM' || !isAtTerminal) child.kill(signal)
      })
    const tail = keepTail()
    tail.follow(child.stdout, process.stdout)
    tail.follow(child.stderr, process.stderr)
    const exitCode = await new Promise<number>(resolve => {
      child.once('error', (error: NodeJS.ErrnoException) => {
        console.error(`tidings: ${file}: ${error.message}`)
        // As in a shell.
        resolve(error.code === 'ENOENT' ? 127 : 126)
      })
      child.once('exit', (code, signal) => {
        const end = () => resolve(code ?? 128 + constants.signals[signal ?? 'SIGKILL'])
        child.once('close', end)
        // A daemon that it started can hold the pipes open.
        setTimeout(end, END_MS)
      })
    })
    const durationMs = Date.now() - startedMs
    setTimeout(() => stopping.abort(new Error('The server did not respond in time')), END_MS)
    await started
    const took = `after ${(durationMs / 1_000).toFixed(1)} s`
    await tell({
      title:
        exitCode === 0 ? `${name} succeeded ${took}` : `${name} failed with ${exitCode} ${took}`,
      state: exitCode === 0 ? 'succeeded' : 'failed',
      metadata: { exitCode, durationMs },
      ...(tail.text && { description: tail.text }),
    })
    // Its reader can be slower than the command.
    await Promise.all(
      [process.stdout, process.stderr].map(stream => new Promise<void>(done => stream.end(done))),
    )
    process.exitCode = exitCode
  },
})

/** Returns true if the process has a controlling terminal, even one that none of its streams is. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}

/** Keeps the last lines of outputs, which go on unchanged. */
function keepTail() {
  let text = ''
  return {
    follow(from: Readable, to: Writable): void {
      from.pipe(to, { end: false })
      // If the reader is gone, such as `head`, the command gets SIGPIPE.
      to.on('error', () => from.destroy())
      const decoder = new TextDecoder()
      from.on('data', (chunk: Buffer) => {
        text = (text + decoder.decode(chunk, { stream: true })).slice(-4 * MAX_CHARACTERS)
      })
    },
    get text() {
      const lines = removeEscapeSequences(text).replaceAll('\u0000', '\ufffd').trimEnd()
      return lines
        .split(/\r?\n|\r/)
        .slice(-MAX_LINES)
        .join('\n')
        .slice(-MAX_CHARACTERS)
        .toWellFormed()
    },
  }
}
