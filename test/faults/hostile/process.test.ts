import { beforeAll, expect, test } from 'bun:test'
import { openRaw, sendRaw, toRequest } from '../../support/clients/raw-http.ts'
import { withServer } from '../../support/servers/server.ts'
import { newProject, type TestProject } from '../../support/worlds/project.ts'

// Texts that are cheap to send and would cost the process or its database seconds.
//
// Covered elsewhere: bodies too large, too slow, too deep (api/body, api/json), floods of faults at
// webhooks (api/egress-many), endless frames and messages (api/feed-guards), every rule broken at
// random (properties).

const server = withServer()
let mine: TestProject
let theirs: TestProject
beforeAll(async () => {
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
