import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** What sockets the load opens, and how it speaks to them. */
export interface LoadJob {
  url: string
  path: string
  sockets: number
  /** One for each socket, in turn. */
  cookies: string[]
  /** What is said when a message begins so. */
  script: { after: string; say: string }[]
  /** How the message begins after which a socket is ready; nothing for a socket that is open. */
  ready: string
  /** Reads nothing once it is ready. */
  isStalled?: boolean
  /** Notes when events arrive. */
  isTimed?: boolean
  /** With which it posts events. */
  key?: string
}

/** A process that is told things line by line, and answers in lines. */
export interface Worker {
  pid: number
  say(line: string): void
  hear(): Promise<string>
  stop(): Promise<void>
}

/** Starts one of this folder's programs; its first line is `READY`, with what may follow. */
export async function startWorker(
  program: string,
  args: string[],
  runtime = 'bun',
): Promise<Worker & { ready: string }> {
  const child = spawn(runtime, [join(import.meta.dir, program), ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const hear = async () => {
    const { value, done } = await lines.next()
    if (done) throw new Error(`${program} has ended`)
    return value as string
  }
  return {
    // It was started, or the next line throws.
    pid: child.pid ?? 0,
    ready: await hear(),
    say: line => void child.stdin.write(`${line}\n`),
    hear,
    async stop() {
      if (child.exitCode !== null) return
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}

export function startLoad(job: LoadJob): Promise<Worker> {
  return startWorker('feed-load.ts', [JSON.stringify(job)])
}
