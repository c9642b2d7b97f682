import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { startEmbedded } from '../../src/database/embedded/embedded.ts'
import { isUnavailable } from '../../src/database/sql.ts'
import { once as memoize } from '../../src/base/functions.ts'
import { sendSignal } from '../../src/database/embedded/processes.ts'
import type { Container } from './containers.ts'
import { listChildren } from './leftovers.ts'
import { makeFolder, SCRATCH } from './scratch.ts'
import { scaled, until } from './until.ts'
import { openSql } from './sql.ts'

const PROGRAM = join(import.meta.dirname, 'writer-program.ts')
const HOW = /^(started|attached)$/m
const START_MS = scaled(120_000)
const READ_MS = 60_000

export interface WriterOptions {
  dataDir: string
  /** Unique among the writers of a folder. */
  name: string
  /** Ends by itself after this many rows. Otherwise `stop` ends it. */
  rows?: number
  container?: Container | undefined
}

/** A program that uses the database of a data folder, as a command or a server does. */
export interface Writer {
  /** `started` or `attached`. Rejects when it has ended before. */
  how: Promise<string>
  /** The rows whose commit Postgres has acknowledged. */
  acknowledged(): string[]
  /** The sentence with which it refused to use the folder. */
  refusal(): string | undefined
  output(): string
  exited: Promise<void>
  /** Ends it as SIGTERM ends a server. */
  stop(): Promise<void>
  /** Ends it by SIGKILL. Its Postgres keeps running. */
  kill(): Promise<void>
}

export function spawnWriter({ dataDir, name, rows, container }: WriterOptions): Writer {
  const [command = '', ...words] = [...(container?.enter ?? []), process.execPath, PROGRAM]
  const child = spawn(command, words, {
    env: {
      PATH: process.env['PATH'],
      HOME: SCRATCH,
      TMPDIR: SCRATCH,
      DATA_DIR: dataDir,
      NAME: name,
      ...(rows !== undefined && { ROWS: String(rows) }),
    },
    stdio: 'pipe',
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stdin.on('error', () => {}) // It was killed.
  let isOver = false
  const exited = once(child, 'close').then(() => void (isOver = true))
  const find = (pattern: RegExp) => pattern.exec(output)?.[1]
  const readHow = async () => {
    await until(() => isOver || find(HOW) !== undefined, START_MS)
    const found = find(HOW)
    if (found === undefined) throw new Error(`${name}: ${output}`)
    return found
  }
  const how = readHow()
  how.catch(() => {}) // Not every writer is meant to start.
  return {
    how,
    acknowledged: () => [...output.matchAll(/^\+ (.*)$/gm)].map(([, row = '']) => row),
    refusal: () => find(/^refused ([\s\S]*)$/m),
    output: () => output,
    exited,
    async stop() {
      child.stdin.end()
      await exited
    },
    async kill() {
      await until(() => {
        // The child of `nsenter` can be about to start.
        const pids = container?.isChild ? listChildren(child.pid!) : [child.pid!]
        for (const pid of isOver ? [] : pids) sendSignal(pid, 'SIGKILL')
        return isOver
      })
    },
  }
}

/** Returns a new data folder with the table of the writers. */
export async function makeWrittenFolder(): Promise<string> {
  const dataDir = makeFolder()
  execFileSync('cp', ['-a', join(await prepareFolder(), 'postgres'), dataDir])
  return dataDir
}

/** Copies are much faster than further databases. */
const prepareFolder = memoize(async () => {
  const dataDir = makeFolder()
  const embedded = await startEmbedded({ dataDir })
  const sql = openSql(embedded.url)
  await sql`create table written (name text primary key)`
  await sql.end()
  await embedded.stop()
  return dataDir
})

/** Returns the acknowledged rows that the database of the folder lacks. */
export async function listLost(dataDir: string, writers: readonly Writer[]): Promise<string[]> {
  const embedded = await startEmbedded({ dataDir })
  const sql = openSql(embedded.url)
  try {
    // Those that still write go on meanwhile.
    const acknowledged = writers.flatMap(writer => writer.acknowledged())
    const stored = new Set<string>()
    // Postgres can be about to end with its container. Another user then restarts it.
    await until(async () => {
      try {
        for (const { name } of await sql<{ name: string }[]>`select name from written`)
          stored.add(name)
        return true
      } catch (error) {
        if (isUnavailable(error)) return false
        throw error
      }
    }, READ_MS)
    return acknowledged.filter(row => !stored.has(row))
  } finally {
    await sql.end({ timeout: 1 })
    await embedded.stop()
  }
}
