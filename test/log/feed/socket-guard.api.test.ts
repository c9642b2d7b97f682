import { expect, test } from 'bun:test'
import { createProject } from '../../../src/access/organizations/projects.ts'
import { newId, toId } from '../../../src/base/ids.ts'
import { openFeed } from '../../support/clients/feed.ts'
import { newManagementToken } from '../../support/worlds/management-token.ts'
import { newSignedInAccount, type SignedInAccount } from '../../support/worlds/signed-in-account.ts'
import { sendRaw, toRequest } from '../../support/clients/raw-http.ts'
import { withSharedServer } from '../../support/servers/server.ts'
import { newFeedProject } from '../../support/worlds/feed-project.ts'

const server = withSharedServer()

const HANDSHAKE = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
]

/** Sends a handshake; returns the response, or the error that came instead. */
async function shake(lines: (string | undefined)[], first = 'GET /api/feed HTTP/1.1') {
  const all = [...HANDSHAKE, ...lines.filter(line => line !== undefined)]
  return sendRaw(server.url, toRequest(first, all))
}

const ORIGINS = [
  ...['https://evil.example', 'null', '', 'http://localhost:1', 'https://localhost'],
  'http://localhost.evil.example',
]

test('case 21, case 24, §12: a handshake needs our Host, our Origin and a session', async () => {
  const account = await newSignedInAccount(server)
  const former = await newSignedInAccount(server)
  await server.sql`delete from sessions where account_id = ${former.uuid}`
  const { secret } = await newManagementToken(server, { accountId: account.uuid })
  const own = `localhost:${server.server.port}`
  const lines = [`Host: ${own}`, `Origin: http://${own}`]
  const cookie = `Cookie: ${account.cookie}`
  const foreign = [undefined, ...ORIGINS.map(one => `Origin: ${one}`)].flatMap(origin =>
    [undefined, 'Sec-Fetch-Site: same-origin', 'Sec-Fetch-Site: none'].map(site => [origin, site]),
  )
  const cookies = ['tidings=nonsense', former.cookie, `${former.cookie}; ${former.cookie}`]
  const refused: [lines: (string | undefined)[], status: number, code: string][] = [
    ...foreign.map((more): (typeof refused)[0] => [[lines[0], cookie, ...more], 403, 'cross_site']),
    [[...lines, cookie, 'Sec-Fetch-Site: cross-site'], 403, 'cross_site'],
    [[...lines, cookie, `Authorization: Bearer ${secret}`], 403, 'forbidden'],
    [['Host: evil.example', cookie, 'Origin: http://evil.example'], 421, 'wrong_host'],
    [lines, 401, 'signed_out'],
    ...cookies.map((one): (typeof refused)[0] => [[...lines, `Cookie: ${one}`], 401, 'signed_out']),
  ]
  for (const [all, status, code] of refused) {
    const answer = await shake(all)
    expect([all, answer?.status, answer?.body.code]).toEqual([all, status, code])
    expect(answer?.body.success).toBe(false)
  }
  const mean = (id: string) => shake([...lines, cookie], `GET /api/feed?account=${id} HTTP/1.1`)
  expect((await mean(account.id))?.status).toBe(101)
  const other = await mean('per_other')
  expect([other?.status, other?.body.code]).toEqual([401, 'other_account'])
})

test('only /api/feed accepts sockets, and /api/feed accepts nothing else', async () => {
  const account = await newSignedInAccount(server)
  const own = `localhost:${server.server.port}`
  const lines = [`Host: ${own}`, `Origin: http://${own}`, `Cookie: ${account.cookie}`]
  for (const path of ['/api/feed/', '/api/Feed', '/api//feed', '/feed']) {
    expect((await shake(lines, `GET ${path} HTTP/1.1`))?.status).toBe(404)
  }
  expect((await shake(lines, 'POST /api/feed HTTP/1.1'))?.status).not.toBe(101)
  // A proxy that passes no handshake removes these headers.
  const isPassed = (line: string) => !/^(Upgrade|Connection):/.test(line)
  const passed = toRequest('GET /api/feed HTTP/1.1', [...HANDSHAKE.filter(isPassed), ...lines])
  for (const answer of [await sendRaw(server.url, passed), await account.get('/api/feed')]) {
    expect(answer?.status).toBe(404)
    expect(answer?.body.error).toContain('must pass the headers Upgrade and Connection')
  }
})

test("case 20: another tenant's project is not_found, like an unknown one, and reveals nothing", async () => {
  const own = await newFeedProject(server)
  const other = await newFeedProject(server)
  await other.postEvents(3)
  const client = await openFeed(server.url, own.member)
  await client.subscribe(own.project)
  for (const project of [other.project, newId('prj').id, 'prj_nonsense', own.organizationId, 'x']) {
    for (const after of [0, null, 99]) {
      expect(await client.subscribe(project, { after })).toEqual({
        type: 'error',
        code: 'not_found',
        message: 'No project has this id',
        project,
      })
      client.send({ type: 'unsubscribe', project: other.project })
      if (after === 0) await other.postEvent('secret')
    }
    // Stays below the limit of messages per socket.
    client.close()
    Object.assign(client, await openFeed(server.url, own.member))
    await client.subscribe(own.project)
  }
  await own.postEvent('mine')
  expect(await client.seqs(1)).toEqual([1])
  expect(JSON.stringify(client.all)).not.toContain('secret')
  client.close()
})

test('malformed messages are answered, and the fifth closes the socket', async () => {
  const { member, project } = await newFeedProject(server)
  const client = await openFeed(server.url, member)
  for (const bad of [
    'nonsense',
    '[]',
    { type: 'subscribe' },
    { type: 'subscribe', project, after: -1 },
  ]) {
    client.send(bad)
    expect(await client.next()).toMatchObject({ type: 'error', code: 'invalid' })
  }
  client.send({ type: 'subscribe', project, filters: { tags: new Array(21).fill('a') } })
  expect((await client.closed).code).toBe(4000)
})

const UNSUBSCRIBES = Array(21).fill({ type: 'unsubscribe', project: newId('prj').id })

test.each<[what: string, code: number, messages: (string | Uint8Array<ArrayBuffer> | object)[]]>([
  ['a frame over 4 KB', 1009, ['x'.repeat(4_200)]],
  ['a frame of 5 MB', 1009, ['x'.repeat(5_000_000)]],
  ['a binary message', 1003, [new TextEncoder().encode('{}')]],
  ['more than 20 messages in 10 s', 4029, UNSUBSCRIBES],
])('case 21, reliability §7: %s closes with %d', async (_, code, messages) => {
  const { member } = await newFeedProject(server)
  const client = await openFeed(server.url, member)
  for (const message of messages) client.send(message)
  expect((await client.closed).code).toBe(code)
})

test('reliability §7: an account has at most 20 sockets, independent of other accounts', async () => {
  const account = await newSignedInAccount(server)
  const open = (who: SignedInAccount) => openFeed(server.url, who, { isBare: true })
  const clients = await Promise.all(Array.from({ length: 20 }, () => open(account)))
  for (const client of clients) expect((await client.next()).type).toBe('hello')
  expect((await (await open(account)).closed).code).toBe(1013)
  const other = await open(await newSignedInAccount(server))
  expect((await other.next()).type).toBe('hello')
  clients[0]?.close()
  await clients[0]?.closed
  const next = await open(account)
  expect((await next.next()).type).toBe('hello')
  for (const client of [...clients, other, next]) client.close()
})

test('a socket follows at most 10 projects', async () => {
  const { organizationId, member } = await newFeedProject(server)
  const client = await openFeed(server.url, member)
  const answers: string[] = []
  for (let nth = 0; nth < 11; nth++) {
    const uuid = await server.sql.begin(async tx =>
      createProject(tx, { organizationId, name: 'one more' }),
    )
    const { type, code } = await client.subscribe(toId('prj', uuid as string))
    answers.push(code ?? type)
  }
  expect(answers).toEqual([...new Array(10).fill('subscribed'), 'too_many'])
  client.close()
})
