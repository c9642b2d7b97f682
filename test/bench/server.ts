import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { createOrganization } from '../../src/access/organizations/organizations.ts'
import { createProject } from '../../src/access/organizations/projects.ts'
import { connect } from '../../src/database/sql.ts'
import { SCRATCH } from '../support/scratch.ts'
import { createKey } from '../support/worlds/keys.ts'

const MAIN = resolve(import.meta.dir, '../../src/main.ts')

/** A process that accepts `POST /v1/events`. */
export interface Candidate {
  name: string
  url: string
  /** The headers that authenticate a request. */
  headers: Record<string, string>
  child: ChildProcess
}

/** Returns the header that authenticates an API key. */
export const toBearer = (key: string) => ({ Authorization: `Bearer ${key}` })

/** Returns a key without a rate limit, for a new project. */
export async function makeKey(databaseUrl: string): Promise<string> {
  const sql = connect(databaseUrl, { name: 'bench', max: 1 })
  const projectId = await sql.begin(async tx =>
    createProject(tx, { organizationId: await createOrganization(tx, 'Bench'), name: 'Bench' }),
  )
  const { token } = await createKey(sql, { projectId, name: 'bench', limit: 1_000_000_000 })
  await sql.end()
  return token
}

/** Starts the real server; `env` is added to its settings. */
export async function startTidings(
  databaseUrl: string,
  key: string,
  env: Record<string, string> = {},
): Promise<Candidate> {
  const child = spawn(process.execPath, [MAIN, 'serve'], {
    env: { ...process.env, PORT: '0', DATABASE_URL: databaseUrl, DATA_DIR: SCRATCH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const port = await readPort(child, /"url":"http:\/\/localhost:(\d+)"/)
  const url = `http://127.0.0.1:${port}/v1/events`
  return { name: 'tidings', headers: toBearer(key), child, url }
}

/** Starts a reference of bare.ts, which takes any key. */
export async function startBare(
  name: string,
  kind: 'nothing' | 'batch',
  databaseUrl: string,
): Promise<Candidate> {
  const program = join(import.meta.dir, 'bare.ts')
  const child = spawn(process.execPath, [program, kind, databaseUrl], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const port = await readPort(child, /PORT (\d+)/)
  return { name, headers: toBearer('none'), child, url: `http://127.0.0.1:${port}/v1/events` }
}

/** Stops the candidates. */
export async function stopCandidates(
  candidates: readonly Pick<Candidate, 'child'>[],
): Promise<void> {
  for (const { child } of candidates) child.kill('SIGTERM')
  await Promise.all(candidates.map(({ child }) => child.exitCode === null && once(child, 'exit')))
}

/**
 * Reads the port from a program's output. Throws with the output if the program ends before it
 * listens.
 */
async function readPort(child: ChildProcess, pattern: RegExp): Promise<string> {
  let output = ''
  child.stderr?.on('data', chunk => (output += chunk))
  const port = new Promise<string>(resolve => {
    child.stdout?.on('data', chunk => {
      output += chunk
      const found = pattern.exec(output)?.[1]
      if (!found) return
      // Drains the output from now on, so that the program never waits for us.
      child.stdout?.removeAllListeners('data').resume()
      child.stderr?.removeAllListeners('data').resume()
      resolve(found)
    })
  })
  const ended = once(child, 'close').then(([code, signal]) => {
    throw new Error(`${child.spawnargs.join(' ')} did not start (${signal ?? code}):\n${output}`)
  })
  ended.catch(() => {})
  return Promise.race([port, ended])
}
