import { expect, test } from 'bun:test'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { newSigningSecret, signMessage } from '../../../src/delivery/webhooks/signing.ts'
import { forProcess } from '../../support/for-file.ts'
import { newMember, newOrganization } from '../../support/worlds/signed-in-account.ts'
import { findMain } from '../../support/servers/process.ts'
import { bootForWebhooks, newChannel } from '../../support/worlds/webhooks.ts'

const world = forProcess(bootForWebhooks)

async function newAdmin() {
  const { server } = world
  const organization = await newOrganization(server)
  const admin = await newMember(server, organization, 'admin')
  return { organization, admin, all: `/api/projects/${organization.project.id}/webhooks` }
}

const URL_1 = 'http://127.0.0.1:9999/hooks/T0KEN?x=1'

test('design §6 creating a webhook shows its secret once', async () => {
  const { admin, all } = await newAdmin()
  const made = await admin.post(all, { url: `${URL_1}#part` })
  expect(made.status).toBe(201)
  expect(made.body.data).toMatchObject({
    name: '127.0.0.1:9999',
    host: '127.0.0.1:9999',
    url: URL_1,
    preset: 'standard',
    channels: null,
    isEnabled: true,
    breaker: { state: 'closed', failures: 0, failingSince: null, pausedUntil: null },
  })
  const { id, secret } = made.body.data
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  for (const path of [all, `${all}/${id}`]) {
    const { text } = await admin.get(path)
    expect(text).toContain(id)
    expect(text).not.toContain(secret)
  }
})

test('contract §12 a viewer sees webhooks with their hosts alone', async () => {
  const { admin, all, organization } = await newAdmin()
  const { id } = (await admin.post(all, { url: URL_1 })).body.data
  const viewer = await newMember(world.server, organization, 'viewer')
  const seen = await viewer.get(`${all}/${id}`)
  expect(seen.body.data).toMatchObject({ id, host: '127.0.0.1:9999', url: null })
  expect((await viewer.get(all)).text).not.toContain('T0KEN')
})

test('a webhook is edited: name, address, preset and channels', async () => {
  const { admin, all, organization } = await newAdmin()
  const { id } = (await admin.post(all, { url: URL_1 })).body.data
  const channel = await newChannel(world.server, organization.project.uuid, 'payments')
  const edited = await admin.patch(`${all}/${id}`, {
    name: '  Ops ',
    url: 'http://127.0.0.1:8888/b',
    channels: [channel.id],
    preset: 'slack',
  })
  expect(edited.body.data).toMatchObject({
    name: 'Ops',
    url: 'http://127.0.0.1:8888/b',
    host: '127.0.0.1:8888',
    channels: [channel.id],
    preset: 'slack',
  })
  expect((await admin.patch(`${all}/${id}`, { preset: 'telegram' })).status).toBe(400)
  const widened = await admin.patch(`${all}/${id}`, { channels: null })
  expect(widened.body.data).toMatchObject({ name: 'Ops', channels: null, preset: 'slack' })
  // Without a name it has that of its host again, also after a move.
  const unnamed = await admin.patch(`${all}/${id}`, { name: null })
  expect(unnamed.body.data.name).toBe('127.0.0.1:8888')
  const moved = await admin.patch(`${all}/${id}`, { url: URL_1 })
  expect(moved.body.data.name).toBe('127.0.0.1:9999')
})

test('a filter names channels of the project, at least one', async () => {
  const { admin, all } = await newAdmin()
  const other = await newAdmin()
  const foreign = await newChannel(world.server, other.organization.project.uuid, 'payments')
  const answer = await admin.post(all, { url: URL_1, channels: [foreign.id, 'nonsense'] })
  expect(answer.status).toBe(400)
  expect(answer.body.details.map(({ path }: { path: string[] }) => path)).toEqual([
    ['channels', '0'],
    ['channels', '1'],
  ])
  const empty = await admin.post(all, { url: URL_1, channels: [] })
  expect(empty.body.details[0]).toMatchObject({ path: ['channels'], code: 'too_short' })
  expect((await admin.get(all)).body.data.items).toEqual([])
})

test('deleting a webhook deletes its secrets, and the sweep deletes its attempts', async () => {
  const { admin, all } = await newAdmin()
  const { id } = (await admin.post(all, { url: URL_1 })).body.data
  expect((await admin.delete(`${all}/${id}`)).body.data).toEqual({ id })
  expect((await admin.get(`${all}/${id}`)).status).toBe(404)
  expect((await admin.delete(`${all}/${id}`)).status).toBe(404)
  expect((await admin.get(all)).body.data.items).toEqual([])
})

test('webhooks are listed newest first, page by page', async () => {
  const { admin, all } = await newAdmin()
  const ids: string[] = []
  for (let n = 0; n < 3; n++) ids.unshift((await admin.post(all, { url: URL_1 })).body.data.id)
  const first = (await admin.get(`${all}?limit=2`)).body.data
  expect(first.items.map(({ id }: { id: string }) => id)).toEqual(ids.slice(0, 2))
  const second = (await admin.get(`${all}?limit=2&cursor=${first.nextCursor}`)).body.data
  expect(second.items.map(({ id }: { id: string }) => id)).toEqual(ids.slice(2))
  expect(second.nextCursor).toBeNull()
})

test('a project has at most 50 webhooks, also under concurrent requests', async () => {
  const { admin, all } = await newAdmin()
  const add = async () => {
    // A busy server answers 503. Then the request has no effect.
    for (;;) {
      const answer = await admin.post(all, { url: URL_1 })
      if (answer.status !== 503) return answer
    }
  }
  const answers = await Promise.all(Array.from({ length: 55 }, add))
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(50)
  const refused = answers.filter(({ status }) => status !== 201)
  expect(refused.map(({ body }) => body.code)).toEqual(Array(5).fill('conflict'))
})

test('reliability §11 addresses, secrets, own headers and bodies are sealed', async () => {
  const { admin, all, organization } = await newAdmin()
  const body = '{"routing_key":"K3Y","text":"{{title}}"}'
  const headers = { Authorization: 'Bearer T0KEN2', 'X-Team': 'ops' }
  const made = await admin.post(all, { url: URL_1, body, headers })
  const path = `${all}/${made.body.data.id}`
  const names = ['Authorization', 'X-Team']
  expect(made.body.data).toMatchObject({ body, headers: names })
  const viewer = await newMember(world.server, organization, 'viewer')
  expect((await viewer.get(path)).body.data).toMatchObject({ body: null, headers: [] })

  // A header without a value keeps it, unless the URL leads to another server.
  const kept = await admin.patch(path, {
    url: 'http://127.0.0.1:9999/other',
    headers: { authorization: null, 'X-New': 'new' },
  })
  expect(kept.body.data.headers).toEqual(['authorization', 'X-New'])
  for (const fields of [{}, { headers: { Authorization: null, 'X-New': 'a' } }]) {
    const moved = await admin.patch(path, { url: 'http://127.0.0.1:8888/b', ...fields })
    expect(moved.status).toBe(400)
    expect(moved.body.details[0]).toMatchObject({
      path: ['headers', expect.stringMatching(/authorization/i)],
      message: expect.stringContaining('the URL leads to another server'),
    })
  }
  const given = { url: 'http://127.0.0.1:8888/b', headers: { Authorization: 'other' } }
  expect((await admin.patch(path, given)).body.data.headers).toEqual(['Authorization'])
  expect((await admin.patch(path, { headers: {}, body: null })).body.data).toMatchObject({
    headers: [],
    body: null,
  })
  await admin.patch(path, { headers, body, url: URL_1 })
  const [row] = await world.server.sql`
    select (select string_agg(w::text, ' ') from webhooks w where project_id = ${organization.project.uuid}) as webhooks,
      (select string_agg(a::text, ' ') from audit_log a where project_id = ${organization.project.uuid}) as audit
  `
  for (const text of [row!['webhooks'], row!['audit'], (await admin.get(all)).text])
    expect(text).not.toMatch(/T0KEN2|Bearer/)
  expect(row!['audit']).toContain('webhook.created')
  for (const text of [row!['webhooks'], row!['audit']])
    for (const secret of ['K3Y', 'T0KEN', made.body.data.secret]) expect(text).not.toContain(secret)
})

test.each([
  ['a header of the message', { headers: { 'Content-Type': 'text/plain' } }, 'headers'],
  ['a signature', { headers: { 'Webhook-Signature': 'v1,x' } }, 'headers'],
  ['a header that frames the request', { headers: { Host: 'x' } }, 'headers'],
  ['a name with a space', { headers: { 'X Team': 'x' } }, 'headers'],
  ['a value with a line break', { headers: { 'X-Team': 'x\r\nHost: y' } }, 'headers'],
  ['a repeated name', { headers: { 'X-Team': 'x', 'x-team': 'y' } }, 'headers'],
  ['a new header without a value', { headers: { 'X-Team': null } }, 'headers'],
  [
    'eleven headers',
    { headers: Object.fromEntries([...'abcdefghijk'].map(name => [`X ${name}`, 'x'])) },
    'headers',
  ],
  ['an unknown place', { body: '{"a":"{{titel}}"}' }, 'body'],
  ['a view that does not exist', { viewId: 'viw_01kadz5p6vf2w8y3m4n5q6r7s8' }, 'viewId'],
  ['ntfy without a topic', { url: 'http://127.0.0.1:9999/', preset: 'ntfy' }, 'url'],
  ['Discord without its preset', { url: 'https://discord.com/api/webhooks/x', body: '{}' }, 'url'],
])('a webhook with %s is refused', async (_, fields, field) => {
  const { admin, all } = await newAdmin()
  const { status, body } = await admin.post(all, { url: URL_1, ...fields })
  expect([status, body.details?.length, body.details?.[0].path[0]]).toEqual([400, 1, field])
})

test.each([
  'file:///etc/passwd',
  'http://[::ffff:a00:1]/',
  'http://169.254.169.254/latest/meta-data/',
  // A public address of the server itself.
  'http://8.8.4.4:8080/',
  'https://user:password@public.test/',
  'https://public.test:25/',
  `https://public.test/${'ü'.repeat(400)}`,
  '',
])('case 22: a webhook to %p is refused when it is saved', async url => {
  const { admin, all } = await newAdmin()
  const path = `${all}/${(await admin.post(all, { url: URL_1 })).body.data.id}`
  for (const { status, body } of [await admin.post(all, { url }), await admin.patch(path, { url })])
    expect([status, body.details[0].path]).toEqual([400, ['url']])
  expect((await admin.get(path)).body.data.url).toBe(URL_1)
})

/** Runs `tidings webhook verify` with a body on its standard input. */
async function verify(body: string | Uint8Array, args: string[], secret?: string) {
  const child = spawn(process.execPath, [findMain(), 'webhook', 'verify', ...args], {
    env: { PATH: process.env['PATH'], ...(secret && { TIDINGS_WEBHOOK_SECRET: secret }) },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  }
  child.stdin.end(body)
  const [code] = (await once(child, 'close')) as [number]
  return { code, output }
}

test('tidings webhook verify says whether a message is genuine, and otherwise why not', async () => {
  const secret = newSigningSecret()
  const body = '{"type":"event.created","é":"💰"}'
  const toArgs = (headers: Record<string, string>) =>
    ['id', 'timestamp', 'signature'].flatMap(name => [`--${name}`, headers[`webhook-${name}`]!])
  const args = toArgs(signMessage({ id: 'msg_1', timestampMs: Date.now(), body }, [secret]))
  expect(await verify(body, args, secret)).toEqual({ code: 0, output: 'The signature is valid.\n' })
  const other = await verify(body, [...args, '--json'], newSigningSecret())
  expect([other.code, JSON.parse(other.output).isGenuine]).toEqual([1, false])
  const none = await verify(body, args)
  expect([none.code, none.output]).toEqual([2, expect.stringContaining('TIDINGS_WEBHOOK_SECRET')])
  expect((await verify(Buffer.from([0xff, 0xfe]), args, secret)).code).toBe(2)
})
