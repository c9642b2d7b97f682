import { createOrganization } from '../../src/access/organizations/organizations.ts'
import { createProject } from '../../src/access/organizations/projects.ts'
import { connect } from '../../src/database/sql.ts'
import { startProgram } from '../support/servers/process.ts'
import { createKey } from '../support/worlds/keys.ts'
import { startLineProcess } from './feed-process.ts'

/** A process that accepts `POST /v1/events`. */
export interface Candidate {
  name: string
  url: string
  /** The headers that authenticate a request. */
  headers: Record<string, string>
  pid: number
  stop(): Promise<unknown>
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
  const { pid, url, kill } = await startProgram({ env: { DATABASE_URL: databaseUrl, ...env } })
  const stop = () => kill('SIGTERM')
  return { name: 'tidings', headers: toBearer(key), url: `${url}/v1/events`, pid, stop }
}

/** Starts a reference of bare.ts, which takes any key. */
export async function startBare(
  name: string,
  kind: 'nothing' | 'batch',
  databaseUrl: string,
): Promise<Candidate> {
  const { pid, ready, stop } = await startLineProcess('bare.ts', [kind, databaseUrl])
  const url = `http://127.0.0.1:${ready.split(' ')[1]}/v1/events`
  return { name, headers: toBearer('none'), url, pid, stop }
}

/** Stops the candidates. */
export async function stopCandidates(
  candidates: readonly Pick<Candidate, 'stop'>[],
): Promise<void> {
  await Promise.all(candidates.map(one => one.stop()))
}
