import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { createSession } from '../../src/access/guard/sessions.ts'
import { createOrganization } from '../../src/access/organizations/organizations.ts'
import { createProject } from '../../src/access/organizations/projects.ts'
import { newId } from '../../src/base/ids.ts'
import { connect, type Queryable } from '../../src/database/sql.ts'
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

/** Inserts a viewer of an organization; returns a session cookie. */
export async function makeViewer(sql: Queryable, organizationId: string): Promise<string> {
  const { uuid, id } = newId('per')
  await sql`insert into accounts (id, name, email) values (${uuid}, 'Bench', ${`${id}@example.com`})`
  await sql`
    insert into memberships (organization_id, account_id, role) values (${organizationId}, ${uuid}, 'viewer')
  `
  const session = {
    accountId: uuid,
    method: 'password',
    isInstalled: false,
    isMultiFactor: false,
    address: '127.0.0.1',
    userAgent: 'bench',
  } as const
  return `tidings=${(await createSession(sql, session)).token}`
}

/** Starts the real server with `workers` processes; `env` is added to the configuration. */
export async function startTidings(
  databaseUrl: string,
  key: string,
  workers = 1,
  env: Record<string, string> = {},
): Promise<Candidate> {
  const child = spawn(process.execPath, [MAIN, 'serve', '--workers', String(workers)], {
    env: { ...process.env, PORT: '0', DATABASE_URL: databaseUrl, DATA_DIR: SCRATCH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const port = await readPort(child, /"url":"http:\/\/localhost:(\d+)"/)
  const name = workers === 1 ? 'tidings' : `${workers} workers`
  return { name, headers: toBearer(key), child, url: `http://127.0.0.1:${port}/v1/events` }
}

/** Starts a candidate of candidate.ts, or bare.ts. */
export async function startCandidate(
  name: string,
  kind: string,
  databaseUrl: string,
  key: string,
): Promise<Candidate> {
  const child = spawn(
    process.execPath,
    [join(import.meta.dir, kind === 'bare' ? 'bare.ts' : 'candidate.ts'), kind, databaseUrl],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const port = await readPort(child, /PORT (\d+)/)
  return { name, headers: toBearer(key), child, url: `http://127.0.0.1:${port}/v1/events` }
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
