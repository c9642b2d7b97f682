import { afterAll, beforeAll, expect, test } from 'bun:test'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { newSigningSecret, signMessage } from '../../../src/delivery/webhooks/signing.ts'
import {
  newMember,
  newOrganization,
  type SignedInAccount,
} from '../../support/worlds/signed-in-account.ts'
import { findMain } from '../../support/servers/process.ts'
import { boot, type Booted } from '../../support/servers/server.ts'

const ADDRESSES: Record<string, string[]> = {
  'public.test': ['8.8.8.8', '2606:4700::1111'],
  'private.test': ['10.0.0.1'],
  'mixed.test': ['8.8.8.8', '127.0.0.1'],
  'metadata.test': ['169.254.169.254'],
}

let server: Booted
let admin: SignedInAccount
let all: string
beforeAll(async () => {
  const resolve = async (host: string) =>
    (ADDRESSES[host] ?? []).map(address => ({ address, family: address.includes(':') ? 6 : 4 }))
  server = await boot({}, { egress: { resolve } })
  const organization = await newOrganization(server)
  admin = await newMember(server, organization, 'admin')
  all = `/api/projects/${organization.project.id}/webhooks`
})
afterAll(() => server[Symbol.asyncDispose]())

test.each([
  'file:///etc/passwd',
  'http://[::ffff:7f00:1]/',
  'http://169.254.169.254/latest/meta-data/',
  'https://user:password@public.test/',
  'https://public.test:25/',
  `https://public.test/${'ü'.repeat(400)}`,
  '',
])('case 22: a webhook to %p is refused when it is saved, with a sentence', async url => {
  const made = await admin.post(all, { url })
  expect([made.status, made.body.details[0].path]).toEqual([400, ['url']])
  expect(made.body.details[0].message).not.toMatch(/10\.0|127\.0/)
  const { id } = (await admin.post(all, { url: 'https://public.test/hook' })).body.data
  const edited = await admin.patch(`${all}/${id}`, { url })
  expect([edited.status, edited.body.details[0].path]).toEqual([400, ['url']])
  expect((await admin.get(`${all}/${id}`)).body.data.url).toBe('https://public.test/hook')
  await admin.delete(`${all}/${id}`)
})

test('a name in a private network cannot be told apart from one that does not exist', async () => {
  const answers = []
  for (const name of ['soon.test', 'private.test', 'mixed.test', 'metadata.test']) {
    const made = await admin.post(all, { url: `https://${name}/` })
    expect(made.status).toBe(201)
    const { status, body } = await admin.post(`${all}/${made.body.data.id}/test`)
    expect(body.data).toMatchObject({ status: null, error: 'dns', outcome: 'failed' })
    const { id: _, latencyMs: __, startedAt: ___, ...rest } = body.data
    answers.push(JSON.stringify([status, rest]))
  }
  expect(new Set(answers).size).toBe(1)
})

test('case 22: an address that became private is refused when sending', async () => {
  ADDRESSES['turning.test'] = ['8.8.8.8']
  const made = await admin.post(all, { url: 'http://turning.test/' })
  ADDRESSES['turning.test'] = ['127.0.0.1']
  const tested = await admin.post(`${all}/${made.body.data.id}/test`)
  expect(tested.body.data).toMatchObject({ status: null, error: 'dns' })
  expect(tested.text).not.toContain('127.0.0.1')
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
