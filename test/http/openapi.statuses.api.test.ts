import { afterAll, beforeAll, expect, test } from 'bun:test'
import { listRateHeaders, RATE_HEADERS } from '../support/answers.ts'
import { checkDeclared, listDeclared } from '../support/conformance.ts'
import { lockLog, lockTable } from '../support/database-lock.ts'
import {
  createRequests,
  newProject,
  type RequestOptions,
  type TestProject,
} from '../support/worlds/project.ts'
import { withDatabase } from '../support/servers/postgres.ts'
import { openRaw, toRequest } from '../support/clients/raw-http.ts'
import { boot, type Booted } from '../support/servers/server.ts'
import { openSql } from '../support/sql.ts'

let server: Booted
/** A server that finds unexpected tables and functions. */
let broken: Booted
/** A server whose database accepts no connections. */
let cutOff: Booted
let brokenProject: TestProject
let cutOffProject: TestProject

beforeAll(async () => {
  server = await boot({}, { bodyTimeoutMs: 200, erasureWaitMs: 2_000, lockWaitMs: 60_000 })
  broken = await boot()
  brokenProject = await newProject(broken)
  for (const name of ['append_batch', 'write_identities', 'begin_erasure']) {
    await broken.sql.unsafe(`alter function ${name} rename to gone_${name}`)
  }
  for (const name of [
    ...['events', 'event_logs', 'channels', 'identities', 'organizations', 'silences', 'questions'],
  ]) {
    await broken.sql.unsafe(`alter table ${name} rename to gone_${name}`)
  }
  cutOff = await boot()
  cutOffProject = await newProject(cutOff)
  await takeAwayDatabase(cutOff.databaseUrl)
})
afterAll(async () => {
  for (const one of [cutOff, broken, server]) await one[Symbol.asyncDispose]()
})

interface Sample extends RequestOptions {
  path: string
}

const json = { 'content-type': 'application/json' }
const text = { 'content-type': 'text/plain' }
const write = (path: string, body: object): Sample => ({
  path,
  method: 'POST',
  body: JSON.stringify(body),
  headers: json,
})

/** For each operation a valid request, and one that breaks a rule. */
const samples: Record<string, { good: Sample; bad?: Partial<Sample> }> = {
  identify: { good: write('/v1/identify', { user_id: 'ada' }), bad: { body: '{}' } },
  createEvent: {
    good: write('/v1/events', { channelName: 'c', title: 't' }),
    bad: { body: '{"title":7}' },
  },
  logEvent: { good: write('/v1/log', { channel: 'c', event: 'e' }), bad: { body: '[]' } },
  sendText: {
    good: { path: '/v1/channels/c', method: 'POST', body: 'text', headers: text },
    bad: { body: ' ' },
  },
  listEvents: { good: { path: '/v1/events?limit=1' }, bad: { path: '/v1/events?limit=0' } },
  listThreads: { good: { path: '/v1/threads' }, bad: { path: '/v1/threads?channel=c' } },
  getEvent: { good: { path: '/v1/events/{id}' }, bad: { path: '/v1/events/%ff' } },
  getAnswer: { good: { path: '/v1/events/{id}/answer' }, bad: { path: '/v1/events/%ff/answer' } },
  listChannels: { good: { path: '/v1/channels' }, bad: { path: '/v1/channels?cursor=x' } },
  getUser: { good: { path: '/v1/users/ada' }, bad: { path: '/v1/users/%00' } },
  eraseUser: {
    good: { path: '/v1/users/ada', method: 'DELETE' },
    bad: { path: `/v1/users/${'x'.repeat(256)}` },
  },
  findUser: { good: { path: '/v1/users?userId=ada' }, bad: { path: '/v1/users' } },
  eraseFoundUser: {
    good: { path: '/v1/users?userId=ada', method: 'DELETE' },
    bad: { path: '/v1/users?userId=' },
  },
  createSilence: {
    good: write('/v1/silences', { minutes: 1, reason: 'r' }),
    bad: { body: '{"minutes":0}' },
  },
  endSilence: {
    good: { path: '/v1/silences/{id}', method: 'DELETE' },
    bad: { path: '/v1/silences/%ff', method: 'DELETE' },
  },
  getMe: { good: { path: '/v1/me' }, bad: { path: '/v1/me?limit=1' } },
}

function toSample(operation: string): Sample {
  const sample = samples[operation]?.good
  if (!sample) throw new Error(`${operation} has no sample`)
  return sample
}

function send({ request }: Pick<TestProject, 'request'>, sample: Sample) {
  return request(sample.path, sample)
}

function withHeaders(sample: Sample, headers: Record<string, string>): Sample {
  return { ...sample, headers: { ...sample.headers, ...headers } }
}

const KEYED = { 'idempotency-key': 'k' }

/** Provokes each status; `send` checks that the answer is declared. */
const provocations: Record<string, (operation: string) => Promise<{ status: number }>> = {
  200: succeed,
  201: succeed,
  async 202(operation) {
    const project = await newProject(server)
    await send(project, write('/v1/events', { channelName: 'c', title: 't', userId: 'ada' }))
    // An erasure leaves a locked event for later.
    return server.sql.begin(async tx => {
      await tx`select from events where project_id = ${project.id} for update`
      return send(project, toSample(operation))
    })
  },
  async 400(operation) {
    const { good, bad } = samples[operation] ?? {}
    if (!good || !bad) throw new Error(`${operation} has no bad sample`)
    return send(await newProject(server), { ...good, ...bad })
  },
  401: operation => send(createRequests(server.url, 'wrong'), toSample(operation)),
  403: async operation => send(await newProject(server, { scopes: [] }), toSample(operation)),
  404: async operation => send(await newProject(server), toSample(operation)),
  async 408(operation) {
    const { path, headers = {} } = toSample(operation)
    const { key } = await newProject(server)
    using connection = openRaw(server.url)
    const lines = {
      ...headers,
      host: 'localhost',
      authorization: `Bearer ${key}`,
      'content-length': 99,
    }
    connection.write(
      toRequest(
        `POST ${path} HTTP/1.1`,
        Object.entries(lines).map(pair => pair.join(': ')),
        '{',
      ),
    )
    const answer = await connection.answer()
    if (!answer) throw new Error('No answer')
    await checkDeclared({ ...answer, url: `${server.url}${path}`, method: 'POST' })
    return answer
  },
  async 409(operation) {
    const project = await newProject(server)
    const sample = withHeaders(toSample(operation), KEYED)
    await using hold = await (operation === 'createSilence'
      ? lockTable(server.sql, 'silences')
      : lockLog(server.sql, project.id))
    const winner = send(project, sample)
    await hold.untilBlocked()
    const answer = await send(project, sample)
    await hold.release()
    await winner
    return answer
  },
  413: async operation =>
    send(await newProject(server), { ...toSample(operation), body: 'x'.repeat(256 * 1024 + 1) }),
  415: async operation =>
    send(
      await newProject(server),
      withHeaders(toSample(operation), { 'content-type': 'application/xml' }),
    ),
  async 422(operation) {
    const project = await newProject(server)
    // Uses the key on another route first.
    const other = toSample(operation === 'identify' ? 'createEvent' : 'identify')
    await send(project, withHeaders(other, KEYED))
    return send(project, withHeaders(toSample(operation), KEYED))
  },
  async 429(operation) {
    const project = await newProject(server, { limit: 1 })
    await project.get('/v1/me')
    return send(project, toSample(operation))
  },
  async 500(operation) {
    const answer = await send(brokenProject, toId(toSample(operation)))
    // It does not reveal its cause.
    expect(answer.body).toEqual({
      success: false,
      error: 'Internal server error',
      requestId: answer.headers.get('x-request-id'),
    })
    expect(listRateHeaders(answer)).toEqual(RATE_HEADERS)
    return answer
  },
  503: operation => send(cutOffProject, toSample(operation)),
}

async function succeed(operation: string) {
  const project = await newProject(server)
  const event = await send(project, toSample('createEvent'))
  await send(project, toSample('identify'))
  const before: Record<string, Sample> = {
    endSilence: toSample('createSilence'),
    getAnswer: write('/v1/events', {
      ...{ channelName: 'c', title: 'Deploy?', actions: [{ id: 'yes', label: 'Yes' }] },
      answer: { expiresInSeconds: 60 },
    }),
  }
  const named = before[operation] ? await send(project, before[operation]) : event
  return send(project, toId(toSample(operation), named.body.data.id))
}

function toId(sample: Sample, id = 'evt_01kadz5p6vf2w8y3m4n5q6r7s8'): Sample {
  return { ...sample, path: sample.path.replace('{id}', id) }
}

test('contract §8 every declared status of an operation occurs, and matches its schema', async () => {
  const declared = listDeclared((await (await fetch(`${server.url}/openapi.json`)).json()) as never)
  const unseen: string[] = []
  for (const pair of declared) {
    const [operation = '', status = ''] = pair.split(' ')
    const answer = await provocations[status]?.(operation)
    if (String(answer?.status) !== status) unseen.push(`${pair}: ${answer?.status}`)
  }
  expect(unseen).toEqual([])
  expect(declared.length).toBeGreaterThan(80)
})

test('contract §1 deleting the project during a request is a 401 without rate limit headers', async () => {
  const project = await newProject(server)
  await server.sql`delete from event_logs where project_id = ${project.id}`
  for (const operation of ['createEvent', 'identify']) {
    const answer = await send(project, toSample(operation))
    expect(answer.status).toBe(401)
    expect(answer.body).toEqual({ error: 'Unauthorized', message: 'Invalid or missing API key' })
    expect(listRateHeaders(answer)).toEqual([])
  }
})

/** Ends every connection of a database and refuses new ones. */
async function takeAwayDatabase(url: string): Promise<void> {
  const name = new URL(url).pathname.slice(1)
  const admin = openSql(withDatabase(url, 'postgres'))
  await admin.unsafe(`alter database ${name} allow_connections false`)
  await admin`
    select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name} and backend_type = 'client backend'
  `
  await admin.end({ timeout: 1 })
}
