import { beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Role } from '../../src/access/guard/permissions.ts'
import { listCodeBlocks } from '../support/docs.ts'
import { SCRATCH } from '../support/scratch.ts'
import { runProgram, spawnProgram } from '../support/servers/process.ts'
import { withServer } from '../support/servers/server.ts'
import { createKey } from '../support/worlds/keys.ts'
import { newManagementToken } from '../support/worlds/management-token.ts'
import { until } from '../support/until.ts'
import { createRequests } from '../support/worlds/project.ts'
import {
  newMember,
  newOrganization,
  type SignedInAccount,
  type TestOrganization,
} from '../support/worlds/signed-in-account.ts'

const PAGE = 'docs/management-api.md'

const server = withServer({}, { kinds: [] })
let organization: TestOrganization
let owner: SignedInAccount
/** The secrets of tokens by their role. */
const tokens = new Map<Role, string>()

beforeAll(async () => {
  organization = await newOrganization(server)
  owner = await newMember(server, organization, 'owner')
  const { sql } = server
  await sql`update organizations set name = 'Acme' where id = ${organization.uuid}`
  await sql`update projects set name = 'Web shop' where id = ${organization.project.uuid}`
  const options = { accountId: owner.uuid, organizationId: organization.uuid }
  for (const role of ['owner', 'member'] as const) {
    tokens.set(role, (await newManagementToken(server, { ...options, role })).secret)
  }
  const key = await createKey(sql, {
    projectId: organization.project.uuid,
    name: 'test',
    limit: 1000,
    scopes: ['events:write'],
  })
  const { post } = createRequests(server.url, key.token)
  for (const channelName of ['payments', 'debug', 'unnamed']) {
    expect((await post('/v1/events', { channelName, title: 'First' })).status).toBe(201)
  }
})

/** The number of written files. */
let files = 0

interface ApplyOptions {
  role?: Role
  args?: string[]
}

/** Applies a file with `--yes`, and with the token of an owner, unless the options differ. */
async function applyFile(text: string, { role = 'owner', args = ['--yes'] }: ApplyOptions = {}) {
  const file = join(SCRATCH, `apply-${process.pid}-${++files}.yaml`)
  writeFileSync(file, text)
  return runProgram({
    args: ['apply', '-f', file, ...args],
    env: {
      ...{ TIDINGS_URL: server.url, TIDINGS_TOKEN: tokens.get(role) ?? '' },
      HOOK_TOKEN: 'Bearer s3cret',
    },
  })
}

const example = () => {
  const [block] = listCodeBlocks(PAGE).filter(({ language }) => language === 'yaml')
  expect(block?.text).toContain('organization: Acme')
  return block?.text ?? ''
}

const ofProject = () => `/api/projects/${organization.project.id}`

async function read(path: string): Promise<any> {
  const { status, body } = await owner.get(path)
  expect([path, status]).toEqual([path, 200])
  return body.data
}

async function countEntries(): Promise<number> {
  const [row] = await server.sql<[{ count: number }]>`select count(*)::int as count from audit_log`
  return row.count
}

test('the example of the docs is planned, applied as it stands, and changes nothing twice', async () => {
  const unnamed = await read(`${ofProject()}/channels?search=unnamed`)

  const planned = await applyFile(example(), { args: ['--plan'] })
  expect(planned.output).toContain('~ project Web shop: keepDays none -> 365')
  expect(planned.output).toContain('+ create webhook Ops in Web shop: url https://example.com/…')
  expect(planned.output).toContain('+ invite member grace@example.com: role member')
  expect(planned.code).toBe(2)
  expect((await read(ofProject())).keepDays).toBeNull()

  const applied = await applyFile(example())
  expect([applied.output, applied.code]).toEqual([expect.stringContaining('Made 5 changes.'), 0])
  expect(applied.output.match(/whsec_/g)).toHaveLength(1)
  expect(applied.output.match(/\/invite#/g)).toHaveLength(1)
  const { items } = await read(`${ofProject()}/channels?archived=true`)
  const find = (name: string) => items.find((channel: { name: string }) => channel.name === name)
  expect(find('payments')).toMatchObject({
    icon: '💰',
    description: 'Every payment of the web shop',
    isArchived: false,
    keepDays: null,
  })
  expect(find('debug')).toMatchObject({ isArchived: true, keepDays: 7 })
  expect(find('unnamed')).toEqual(unnamed.items[0])
  const webhooks = await read(`${ofProject()}/webhooks`)
  expect(webhooks.items).toMatchObject([
    {
      ...{ name: 'Ops', url: 'https://example.com/hooks/tidings', channels: [find('payments').id] },
      ...{ body: '{"text": "{{title}}"}', headers: ['Authorization'] },
    },
  ])
  const invites = await read(`/api/organizations/${organization.id}/invites`)
  expect(invites.items).toMatchObject([{ email: 'grace@example.com', role: 'member' }])

  // A renamed channel keeps its first name.
  await owner.patch(`${ofProject()}/channels/${find('payments').id}`, { name: 'Money' })
  const before = await countEntries()
  const again = await applyFile(example())
  expect([again.output, again.code]).toEqual([expect.stringContaining('Nothing would change.'), 0])
  expect(await countEntries()).toBe(before)
})

test('a change says from what to what, and objects that the file does not name stay', async () => {
  const project = await read(ofProject())
  const text = `
projects:
  - name: Web shop
    webhooks:
      - name: Ops
        url: https://example.org/other
        channels: null
        headers: {Authorization: HOOK_TOKEN}
`
  const { output, code } = await applyFile(text, { args: ['--yes', '--json'] })
  expect(code).toBe(0)
  const { changes } = JSON.parse(output)
  expect(changes).toMatchObject([{ change: 'update', kind: 'webhook', status: 'done' }])
  expect(changes[0].details).toHaveLength(2)
  expect((await read(`${ofProject()}/webhooks`)).items).toMatchObject([
    { name: 'Ops', url: 'https://example.org/other', channels: null },
  ])
  expect(await read(ofProject())).toEqual(project)
})

test('a missing right is in the plan, and nothing is changed', async () => {
  const before = await countEntries()
  const text = `
projects:
  - name: Web shop
    channels: [{name: payments, icon: 🎉}]
  - name: New
`
  const { output, code } = await applyFile(text, { role: 'member' })
  expect(output).toContain(
    "! create project New. It requires the admin role. The token's role is member.",
  )
  expect(output).toContain('Nothing was changed')
  expect(code).toBe(1)
  expect(await countEntries()).toBe(before)
})

test('a failure says what was done and what was not, and a second run continues', async () => {
  const toFile = (url: string) => `
projects:
  - name: Second shop
    keepDays: 30
    channels: [{name: Orders, icon: 📦}]
    webhooks: [{name: Inside, url: "${url}", channels: [orders]}]
members: [{email: alan@example.com, role: viewer}]
`
  const failed = await applyFile(toFile('http://127.0.0.1/hook'))
  expect(failed.code).toBe(1)
  expect(failed.output).toContain('Done: create project Second shop\n')
  expect(failed.output).toContain('Failed: create webhook Inside in Second shop')
  expect(failed.output).toContain('Not done: invite member alan@example.com: role viewer')
  expect(failed.output).toContain('Made 3 of 5 changes. Run the command again to continue.')

  const { output, code } = await applyFile(toFile('https://example.com/hook'))
  expect([output, code]).toEqual([expect.stringContaining('Made 2 changes.'), 0])
  expect(output).not.toContain('create project')
  expect(output).not.toContain('create channel')
})

test('--json prints each secret as it is made, and one value in the end', async () => {
  const toFile = (name: string) => `
projects:
  - name: Web shop
    webhooks: [{name: ${name}, url: "https://example.com/hook"}]
members: [{email: ${name}@example.com, role: viewer}]
`
  const { output } = await applyFile(toFile('whole'), { args: ['--yes', '--json'] })
  expect(JSON.parse(output)).toMatchObject({
    organization: { id: organization.id },
    changes: [
      { kind: 'webhook', status: 'done', project: 'Web shop', secret: expect.any(String) },
      { kind: 'member', status: 'done', project: null, url: expect.any(String) },
    ],
    refused: [],
  })

  let answerInvite = () => Promise.resolve(Response.json({ success: true, data: null }))
  using proxy = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      if (request.method === 'POST' && pathname.endsWith('/invites')) return answerInvite()
      const headers = new Headers(request.headers)
      headers.delete('host')
      headers.set('accept-encoding', 'identity')
      const body = request.method === 'GET' ? null : await request.text()
      return fetch(`${server.url}${pathname}${search}`, { method: request.method, headers, body })
    },
  })
  const file = join(SCRATCH, `apply-${process.pid}-proxied.yaml`)
  const args = ['apply', '-f', file, '--yes', '--json']
  const env = { TIDINGS_URL: String(proxy.url), TIDINGS_TOKEN: tokens.get('owner') ?? '' }
  writeFileSync(file, toFile('unexpected'))
  const unexpected = await runProgram({ args, env })
  expect(unexpected.code).toBe(1)
  expect(JSON.parse(unexpected.output)).toMatchObject({
    changes: [
      { kind: 'webhook', status: 'done', secret: expect.any(String) },
      { kind: 'member', status: 'failed', error: expect.any(String) },
    ],
  })

  // The invite is never answered.
  answerInvite = () => new Promise(() => {})
  writeFileSync(file, toFile('stopped'))
  const program = spawnProgram({ args, env })
  await until(() => program.output().includes('whsec_'))
  await program.kill('SIGKILL')
})

test('an unknown organization, and a plan that nobody can confirm, are refused with the reason', async () => {
  const cases: [string, string[], number, string][] = [
    ['organization: Other', ['--yes'], 1, 'The token reaches no organization "Other".'],
    ['organization: Acme', [], 2, 'Add --yes to apply the plan'],
  ]
  await Promise.all(
    cases.map(async ([text, args, code, message]) => {
      const ended = await applyFile(text, { args })
      expect([text, ended.output, ended.code]).toEqual([
        text,
        expect.stringContaining(message),
        code,
      ])
    }),
  )
})

test('a plan that cannot be made does not look like one with changes', async () => {
  const file = join(SCRATCH, `apply-${process.pid}-none.yaml`)
  writeFileSync(file, example())
  for (const [env, args] of [
    [{ TIDINGS_TOKEN: '' }, ['--plan']],
    [{ TIDINGS_TOKEN: 'x', TIDINGS_URL: 'nowhere' }, ['--plan']],
    [{ TIDINGS_TOKEN: 'x', TIDINGS_URL: server.url }, ['--plan', '--yes']],
    [{ TIDINGS_TOKEN: 'x', TIDINGS_URL: server.url }, ['--plan', '--wrong']],
  ] as const)
    expect((await runProgram({ args: ['apply', '-f', file, ...args], env })).code).toBe(1)
})
