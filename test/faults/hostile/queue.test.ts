import { expect, test } from 'bun:test'
import { newSecret } from '../../../src/access/guard/secret.ts'
import { openRaw } from '../../support/clients/raw-http.ts'
import { withServer } from '../../support/servers/server.ts'
import { newProject } from '../../support/worlds/project.ts'

// Attacks that make others wait.
//
// Covered elsewhere: webhooks that hang and deliveries that pile up (faults/fairness,
// api/egress-many), a locked log (faults/locked-log), sockets of one account (api/feed-guards),
// guesses at passwords (api/sign-in-throttle).

const server = withServer()

const EVENT = { channelName: 'payments', title: 'New payment' }
/** Beginnings of requests that never continue. */
const BEGINNINGS = [
  '',
  'G',
  'POST /v1/events HTTP/1.1\r\nHost: a\r\nX-Long: ',
  'POST /v1/events HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n{',
  'POST /api/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n',
  'GET /api/feed HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n',
]

test('600 connections that never finish a request delay no other', async () => {
  const { post } = await newProject(server)
  const open = Array.from({ length: 600 }, (_, n) => {
    const connection = openRaw(server.url)
    connection.write(BEGINNINGS[n % BEGINNINGS.length]!)
    return connection
  })
  try {
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
    expect((await post('/v1/events', EVENT)).status).toBe(201)
  } finally {
    for (const connection of open) connection[Symbol.dispose]()
  }
  expect((await post('/v1/events', EVENT)).status).toBe(201)
})

test.each([
  ['authorization', 'Bearer'],
  ['AUTHORIZATION', 'bearer'],
  ['Authorization', 'BEARER   '],
])(
  'a rate limit belongs to the key in any spelling of the header: %s: %s',
  async (name, scheme) => {
    const { key } = await newProject(server, { limit: 3 })
    const statuses: number[] = []
    for (let n = 0; n < 5; n++) {
      const headers = {
        [name]: `${scheme} ${key}`,
        'x-forwarded-for': `192.0.2.${n}`,
        'x-real-ip': `192.0.2.${n}`,
        forwarded: `for=192.0.2.${n}`,
      }
      statuses.push((await fetch(`${server.url}/v1/me`, { headers })).status)
    }
    expect(statuses).toEqual([200, 200, 200, 429, 429])
  },
)

test("failed authentications count for the connection's address, regardless of headers", async () => {
  const ask = (n: number) =>
    fetch(`${server.url}/v1/me`, {
      headers: { authorization: `Bearer x${n}`, 'x-forwarded-for': `192.0.2.${n % 250}` },
    })
  const answers = await Promise.all(Array.from({ length: 70 }, (_, n) => ask(n)))
  // Contract §6: 429 means the rate limit of a key and nothing else.
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]))
  // The failures count all the same: a guess at a session from there is one too many.
  const guess = await fetch(`${server.url}/api/me`, {
    headers: { cookie: `tidings=${newSecret(256)}`, 'x-forwarded-for': '192.0.2.251' },
  })
  expect(guess.status).toBe(429)
  // A valid key still works.
  const { get } = await newProject(server)
  expect((await get('/v1/me')).status).toBe(200)
})
