import type { Sql } from '../../src/database/sql.ts'
import { openRaw, type RawAnswer, type RawConnection } from '../support/clients/raw-http.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { startProgram } from '../support/servers/process.ts'
import { newProject, type TestProject } from '../support/worlds/project.ts'
import { createAnswerCheck, type AnswerCheck } from './answer-checker.ts'
import { readOperations, type Operation } from './operations.ts'
import type { ApiRequest } from './requests.ts'
import { parse } from './spelling.ts'
import { openSql } from '../support/sql.ts'

/** The number of requests of all properties together, and their seed: environment variables. */
export const RUNS = Number(process.env['PROPERTY_RUNS'] ?? 2_000)
export const SEED = Number(process.env['PROPERTY_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const HUGE_LIMIT = 100_000_000

/** A server in its own process, with its own database. */
export interface World extends AsyncDisposable {
  url: string
  operations: Operation[]
  sent: number
  /** Returns a new project, for requests one after the other. */
  openLane(): Promise<Lane>
  /** Throws if the server has logged a bug, or does not answer any more. */
  expectHealthy(): Promise<void>
}

export interface Lane extends Disposable {
  project: TestProject
  /**
   * Sends over a kept connection; throws if the document and the contract do not allow the answer.
   */
  send(request: ApiRequest): Promise<RawAnswer>
  get(target: string): Promise<RawAnswer>
  /** Sends bytes unchanged; undefined if the server hangs up without an answer. */
  sendBytes(bytes: Uint8Array): Promise<RawAnswer | undefined>
  judge: AnswerCheck
  /** Returns counts and heads of all that the project has stored. */
  snapshot(): Promise<string>
}

export async function openWorld(): Promise<World> {
  const databaseUrl = await cloneDatabase()
  const program = await startProgram({ env: { DATABASE_URL: databaseUrl } })
  const { url } = program
  const sql = openSql(databaseUrl, { max: 4 })
  // Silences store no events, and so do reads of answers. The fields of a question stand together,
  // and the hours of a silence have rules, which a schema cannot express.
  const operations = (await readOperations(url)).filter(({ id }) => !/Silence$|Answer$/.test(id))
  for (const { bodies } of operations)
    for (const [, { properties }] of bodies)
      for (const field of ['actions', 'answer']) delete properties?.[field]
  const neighbour = await newProject({ sql, url }, { name: 'canary-4e1f' })
  await neighbour.post('/v1/events', { channelName: 'canary-4e1f', title: 'canary-4e1f' })
  const { password, pathname } = new URL(databaseUrl)
  const secrets = ['canary-4e1f', neighbour.key, neighbour.id, password, pathname.slice(1)]
  if (program.firstKey) secrets.push(program.firstKey)
  // A start shows the first key, and names its database.
  const shown = [program.firstKey, pathname.slice(1)]

  const world: World = {
    url,
    operations,
    sent: 0,
    async openLane() {
      const project = await newProject({ sql, url }, { limit: HUGE_LIMIT })
      return createLane({ world, project, sql, secrets: [...secrets, project.key] })
    },
    async expectHealthy() {
      const bugs = program.logged('Request failed')
      if (bugs.length > 0) throw new Error(`The server logged a bug: ${bugs[0]}`)
      const told = secrets
        .filter(secret => !shown.includes(secret))
        .flatMap(secret => program.logged(secret))
      if (told.length > 0) throw new Error(`The server logged a secret: ${told[0]}`)
      const health = await fetch(`${url}/healthz`)
      if (!program.isRunning() || health.status !== 200)
        throw new Error('The server is not healthy')
    },
    async [Symbol.asyncDispose]() {
      await sql.end({ timeout: 1 })
      await program.kill('SIGTERM')
    },
  }
  return world
}

interface LaneOptions {
  world: World
  project: TestProject
  sql: Sql
  secrets: string[]
}

function createLane({ world, project, sql, secrets }: LaneOptions): Lane {
  let kept: RawConnection | undefined
  const judge = createAnswerCheck(world.url, secrets)

  async function sendBytes(bytes: Uint8Array): Promise<RawAnswer | undefined> {
    world.sent++
    kept ??= openRaw(world.url)
    kept.write(bytes)
    const answer = await kept.answer()
    if (answer?.headers.get('connection')?.toLowerCase() === 'close' || !answer) {
      kept[Symbol.dispose]()
      kept = undefined
    }
    return answer && { ...answer, body: answer.body && parse(answer.text) }
  }

  async function send(request: ApiRequest): Promise<RawAnswer> {
    const answer = await sendBytes(toBytes(request, project.key))
    if (!answer) throw new Error('The server hung up')
    await judge(request.method, request.target, answer)
    return answer
  }

  return {
    project,
    judge,
    sendBytes,
    send,
    get: target =>
      send({ id: '', method: 'GET', target, params: {}, query: {}, headers: [], choice: 0 }),
    async snapshot() {
      const [row] = await sql`
        select
          (select last_seq from event_logs where project_id = ${project.id}) as head,
          (select count(*) from events where project_id = ${project.id}) as events,
          (select count(*) from channels where project_id = ${project.id}) as channels,
          (select count(*) || ' ' || coalesce(max(updated_at)::text, '') from identities
            where project_id = ${project.id}) as identities,
          (select count(*) from aliases where project_id = ${project.id}) as aliases,
          (select count(*) from idempotency_keys where project_id = ${project.id}) as keys
      `
      return JSON.stringify(row)
    },
    [Symbol.dispose]: () => kept?.[Symbol.dispose](),
  }
}

/** Returns the request as bytes: header values have one byte per character. */
export function toBytes(request: ApiRequest, key: string, body = toBody(request)): Buffer {
  const headers: [string, string][] = [
    ['Host', 'localhost'],
    ['Authorization', `Bearer ${key}`],
    ...request.headers,
  ]
  if (body) headers.push(['Content-Length', String(body.length)])
  const lines = headers.map(([name, value]) => `${name}: ${value}`)
  const head = [`${request.method} ${request.target} HTTP/1.1`, ...lines].join('\r\n')
  return Buffer.concat([Buffer.from(`${head}\r\n\r\n`, 'latin1'), body ?? new Uint8Array()])
}

export function toBody({ body }: ApiRequest): Buffer | undefined {
  return body === undefined ? undefined : Buffer.from(body)
}
