import { beforeAll, expect, spyOn, test } from 'bun:test'
import { openRaw, sendRaw, toRequest } from '../../support/clients/raw-http.ts'
import { listOperations } from '../../support/operations.ts'
import { withServer } from '../../support/servers/server.ts'
import { newProject, type TestProject } from '../../support/worlds/project.ts'
import {
  newOrganization,
  newSignedInAccount,
  type SignedInAccount,
} from '../../support/worlds/signed-in-account.ts'

// Texts that are cheap to send and would cost the process or its database seconds, also when they
// are refused.

const server = withServer()
let mine: TestProject
let theirs: TestProject
let owner: SignedInAccount
let ids: Record<string, string>
beforeAll(async () => {
  const organization = await newOrganization(server)
  owner = await newSignedInAccount(server, { isOperator: true })
  await server.sql`
    insert into memberships (organization_id, account_id, role)
    values (${organization.uuid}, ${owner.uuid}, 'owner')
  `
  ids = { organizationId: organization.id, projectId: organization.project.id }
  mine = await newProject(server)
  theirs = await newProject(server)
})

const EVENT = { channelName: 'payments', title: 'New payment' }
/** Runs that Postgres' text parser would scan again from each of their characters. */
const RUNS = ['~/', 'a_', 'http@1', '<!--']

test.each(RUNS)(
  'properties and 20 concurrent events full of %s delay no other request, and are found',
  async run => {
    const needle = `needle${RUNS.indexOf(run)}`
    const properties = { plan: needle, bomb: run.repeat(60_000 / run.length) }
    const identified = await mine.post('/v1/identify', { user_id: `user ${run}`, properties })
    expect(identified.status).toBe(200)
    const [{ n }] = await server.sql<[{ n: number }]>`
    select cardinality(ids) as n from search_users(${mine.id}, array[${needle}], null, 10, 2000)
  `
    expect(n).toBe(1)
    const event = { ...EVENT, description: `${run.repeat(4_900 / run.length)} ${needle}` }
    const answers = await Promise.all([
      ...Array.from({ length: 20 }, () => mine.post('/v1/events', event)),
      theirs.post('/v1/events', EVENT),
    ])
    expect(answers.map(({ status }) => status)).toEqual(Array.from(answers, () => 201))
    // A page may be short, because texts that are not indexed yet are parsed within a time limit.
    const found: unknown[] = []
    let cursor = ''
    do {
      const page = await mine.get(`/v1/events?text=${needle}&limit=20${cursor}`)
      expect(page.status).toBe(200)
      const { items, nextCursor } = page.body.data
      found.push(...items)
      cursor = nextCursor === null ? '' : `&cursor=${encodeURIComponent(nextCursor)}`
    } while (cursor !== '')
    expect(found).toHaveLength(20)
  },
)

test('a channel name of 80,000 marks is refused at once', async () => {
  // The composed form has these marks in the other order.
  const channelName = `e${'\u0301'.repeat(40_000)}${'\u0316'.repeat(40_000)}`
  const answer = await mine.post('/v1/events', { ...EVENT, channelName })
  expect(answer.status).toBe(400)
  expect(answer.body.details[0]).toMatchObject({ code: 'too_long' })
})

test('the longest channel name is accepted in its longest spelling', async () => {
  // Each is one letter, or four when decomposed.
  const longest = 'ᾂ'.repeat(255)
  const answer = await mine.post('/v1/events', { ...EVENT, channelName: longest.normalize('NFD') })
  expect(answer.status).toBe(201)
  expect(answer.body.data.channelName).toBe(longest)
})

test('an error repeats a long field name in shortened form, however often it occurs in a path', async () => {
  const metadata = `{"${'k'.repeat(200_000)}":[${Array.from({ length: 20 }, () => '"\\ud800"').join()}]}`
  const answer = await mine.request('/v1/events', {
    method: 'POST',
    body: `{"channelName":"payments","title":"New payment","metadata":${metadata}}`,
    headers: { 'content-type': 'application/json' },
  })
  expect(answer.status).toBe(400)
  expect(answer.text.length).toBeLessThan(32_000)
})

test('pipelined requests get their own answers or none, and are safe to repeat', async () => {
  const keys = ['first', 'second'].map(name => `pipelined ${name} ${crypto.randomUUID()}`)
  const toPost = (key: string) => {
    const body = JSON.stringify({ ...EVENT, title: key })
    return toRequest(
      'POST /v1/events HTTP/1.1',
      [
        ...['Host: localhost', `Authorization: Bearer ${mine.key}`],
        ...['Content-Type: application/json', `Content-Length: ${body.length}`],
        `Idempotency-Key: ${key}`,
      ],
      body,
    )
  }
  using connection = openRaw(server.url)
  connection.write(keys.map(toPost).join(''))
  const answers = []
  for (let answer; answers.length < 2 && (answer = await connection.answer());) {
    answers.push(answer.body.data.title)
  }
  // Bun closes the connection without an answer. Other runtimes answer both in order.
  expect(answers).toEqual(answers.length === 0 ? [] : keys)
  for (const key of keys) {
    const repeated = await sendRaw(server.url, toPost(key))
    expect([repeated?.status, repeated?.body.data.title]).toEqual([201, key])
  }
  const { items } = (await mine.get('/v1/events?limit=20')).body.data
  const titles = (items as { title: string }[]).map(({ title }) => title)
  expect(titles.filter(title => keys.includes(title))).toEqual(keys.toReversed())
})

interface Operation {
  requestBody?: {
    content: Record<string, { schema: { $ref?: string; properties?: Record<string, unknown> } }>
  }
  responses: Record<string, { description: string } | undefined>
}

/** Returns every operation that takes JSON, with its fields and the KiB of its largest body. */
async function listWrites(document: string) {
  const { paths, components } = (await (await fetch(server.url + document)).json()) as {
    paths: Record<string, Record<string, Operation>>
    components: { schemas: Record<string, { properties?: Record<string, unknown> }> }
  }
  return listOperations({ paths }).flatMap(({ method, path, requestBody, responses }) => {
    const schema = requestBody?.content['application/json']?.schema
    if (!schema) return []
    const named = components.schemas[schema.$ref?.split('/').at(-1) ?? '']
    const fields = Object.keys((named ?? schema).properties ?? {})
    const maxKib = Number(/\d+(?= KiB)/.exec(responses['413']?.description ?? '')?.[0])
    return [{ method, path, fields, maxKib }]
  })
}

/** Returns a body of almost `maxKib`, 60 levels deep in each of `fields` and in an unknown one. */
function toDeepBody(fields: readonly string[], maxKib: number): string {
  const names = [...fields, 'unknown']
  const width = Math.floor((maxKib * 450) / names.length)
  const deep = `${'['.repeat(60)}${'1,'.repeat(width)}1${']'.repeat(60)}`
  return `{${names.map(name => `${JSON.stringify(name)}:${deep}`).join(',')}}`
}

test.each(['/openapi.json', '/api/management.json'])(
  'a refused deep body is never serialized: %s',
  async document => {
    const writes = await listWrites(document)
    expect(writes.length).toBeGreaterThan(2)
    const stringify = spyOn(JSON, 'stringify')
    try {
      for (const { method, path, fields, maxKib } of writes) {
        const body = toDeepBody(fields, maxKib)
        stringify.mockClear()
        const target = path.replace(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? 'none')
        const headers = { 'content-type': 'application/json' }
        const client = path.startsWith('/v1/') ? mine : owner
        const answer = await client.request(target, { method, body, headers })
        const longest = stringify.mock.results.map(({ value }) => String(value).length)
        expect([method, path, answer.status]).toEqual([method, path, 400])
        expect([method, path, Math.max(0, ...longest) < body.length]).toEqual([method, path, true])
      }
    } finally {
      stringify.mockRestore()
    }
  },
)

test.each(['/v1/events', '/api/me'])(
  '%s: query and cookies are not read without authentication',
  async path => {
    const pairs = (separator: string) =>
      Array.from({ length: 500 }, (_, index) => `%61${index}=%62`).join(separator)
    const cookie = `${owner.cookie.replace(/=.*/, '=x')}; ${pairs('; ')}`
    const decode = spyOn(globalThis, 'decodeURIComponent')
    try {
      const { status } = await fetch(`${server.url}${path}?${pairs('&')}`, { headers: { cookie } })
      expect([status, decode.mock.calls.length < 5]).toEqual([401, true])
    } finally {
      decode.mockRestore()
    }
  },
)
