import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** The sockets that the load opens, and their messages. */
export interface LoadJob {
  url: string
  path: string
  sockets: number
  /** One for each socket, in turn. */
  cookies: string[]
  /** Sends `say` after a message that begins with `after`. */
  script: { after: string; say: string }[]
  /** The beginning of the message that makes a socket ready; empty if it is ready once open. */
  ready: string
}

export type Job = Omit<LoadJob, 'sockets'>

/** A process that answers each line of input with a line. */
export interface LineProcess {
  pid: number
  say(line: string): void
  hear(): Promise<string>
  stop(): Promise<void>
}

/**
 * Starts one of this folder's programs; resolves at its line `READY`, with the rest of that line.
 */
export async function startLineProcess(
  program: string,
  args: string[],
  runtime = process.execPath,
): Promise<LineProcess & { ready: string }> {
  const child = spawn(runtime, [join(import.meta.dir, program), ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const hear = async () => {
    const { value, done } = await lines.next()
    if (done) throw new Error(`${program} ended`)
    return value as string
  }
  let ready = await hear()
  while (!ready.startsWith('READY')) ready = await hear()
  return {
    // Without a pid it did not start: the next line throws.
    pid: child.pid ?? 0,
    ready,
    say: line => void child.stdin.write(`${line}\n`),
    hear,
    async stop() {
      if (child.exitCode !== null) return
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}

export function startLoad(job: LoadJob): Promise<LineProcess> {
  return startLineProcess('feed-load.ts', [JSON.stringify(job)])
}
