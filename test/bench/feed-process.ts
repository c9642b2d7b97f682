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
  /** What is said first, as soon as it is open. */
  greeting?: string
  /** What is said when a message begins so. */
  script: { after: string; say: string }[]
  /** How the message begins after which a socket is ready; nothing for a socket that is open. */
  ready: string
  /** Reads nothing once it is ready. */
  isStalled?: boolean
  /** Notes when events arrive. */
  isTimed?: boolean
  /** Where it posts events, and as whom. */
  post?: { path: string; headers: Record<string, string> }
}

export type Job = Omit<LoadJob, 'sockets'>

/** A process that is told things line by line, and answers in lines. */
export interface Worker {
  pid: number
  say(line: string): void
  hear(): Promise<string>
  stop(): Promise<void>
}

/** Starts one of this folder's programs; it is ready with the line that begins with `READY`, and what may follow there. */
export async function startWorker(
  program: string,
  args: string[],
  runtime = process.execPath,
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
  let ready = await hear()
  while (!ready.startsWith('READY')) ready = await hear()
  return {
    // It was started, or the next line throws.
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

export function startLoad(job: LoadJob): Promise<Worker> {
  return startWorker('feed-load.ts', [JSON.stringify(job)])
}

/** What a load says to a line: figures by name. */
export async function ask(load: Worker, line: string): Promise<Record<string, number>> {
  load.say(line)
  return readFigures(await load.hear())
}

export function readFigures(line: string): Record<string, number> {
  return JSON.parse(line) as Record<string, number>
}
