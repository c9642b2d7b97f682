import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { createKey, listKeys, revokeKey, rotateKey } from '../../support/worlds/keys.ts'
import { DEFAULT_SCOPES } from '../../../src/access/keys/schema.ts'
import { hashToken } from '../../../src/base/token-form.ts'
import { createRequests, newProject, type TestProject } from '../../support/worlds/project.ts'
import { boot, type Booted } from '../../support/servers/server.ts'

let server: Booted
let second: Booted
beforeAll(async () => {
  server = await boot()
  second = await boot({
    databaseUrl: server.databaseUrl,
    trustedProxies: ['127.0.0.1/32'],
  })
})
afterAll(async () => {
  await second[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
})

/** Requests /v1/me with `key` from the first and the second server; returns the statuses. */
async function ask(key: string): Promise<number[]> {
  return Promise.all(
    [server, second].map(async ({ url }) => (await createRequests(url, key).get('/v1/me')).status),
  )
}

/** Moves all times of a key `seconds` into the past. */
async function age(key: string, seconds: number): Promise<void> {
  await server.sql`
    update api_keys set expires_at = expires_at - make_interval(secs => ${seconds})
    where hash = decode(${hashToken(key)}, 'hex')
  `
}

async function list({ id }: TestProject) {
  return listKeys(server.sql, id)
}

test('contract §7 a request admitted before a revocation is answered, later ones are refused', async () => {
  const project = await newProject(server)
  const { post } = createRequests(second.url, project.key)
  const event = { channelName: 'a', title: 't' }
  // Refusals count against this address, not against that of the other tests.
  const from = { 'X-Forwarded-For': '192.0.2.1' }
  const sent = Array.from({ length: 200 }, () => post('/v1/events', event, from))
  await Promise.race(sent)
  await revokeKey(server.sql, project.id, project.keyId)
  const after = await Promise.all(Array.from({ length: 50 }, () => post('/v1/events', event, from)))
  for (const { status } of after) expect([401, 429]).toContain(status)
  const created = (await Promise.all(sent)).filter(({ status }) => status === 201).length
  const [stored] = await server.sql`
    select count(*)::int as n from events where project_id = ${project.id}
  `
  expect(stored?.['n']).toBe(created)
})

test('contract §7 a key expires', async () => {
  const project = await newProject(server, { expiresAt: new Date(Date.now() + 3_600_000) })
  expect(await ask(project.key)).toEqual([200, 200])
  await age(project.key, 3_590)
  expect(await ask(project.key)).toEqual([200, 200])
  await age(project.key, 11)
  expect(await ask(project.key)).toEqual([401, 401])
})

describe('contract §7 rotation:', () => {
  test('rotation never extends the life of the old key', async () => {
    const project = await newProject(server, { expiresAt: new Date(Date.now() + 60_000) })
    await rotateKey(server.sql, project.id, { id: project.keyId })
    await age(project.key, 61)
    expect(await ask(project.key)).toEqual([401, 401])
  })

  test.each([
    ['without an expiry', undefined],
    ['with an expiry', new Date(Date.now() + 90 * 24 * 3_600_000)],
  ])(
    'a key %s that is rotated again passes it on, and its overlap gets no longer',
    async (_, expiresAt) => {
      const project = await newProject(server, expiresAt && { expiresAt })
      const rotate = async (overlapHours: number) => {
        const old = { id: project.keyId, overlapHours }
        const { id, token } = await rotateKey(server.sql, project.id, old)
        const keys = await list(project)
        return { token, key: keys.find(key => key.id === id) }
      }
      await rotate(24)
      const again = await rotate(48)
      expect(again.key?.expiresAt).toBe(expiresAt?.toISOString() ?? null)
      for (const key of [project.key, again.token]) await age(key, 25 * 3600)
      expect(await ask(project.key)).toEqual([401, 401])
      expect(await ask(again.token)).toEqual([200, 200])
    },
  )

  test('the new key has the name, scopes and limit of the old one, and its own window', async () => {
    const project = await newProject(server, { limit: 2, scopes: ['events:read'] })
    await project.get('/v1/me')
    await project.get('/v1/me')
    expect((await project.get('/v1/me')).status).toBe(429)
    const { token } = await rotateKey(server.sql, project.id, { id: project.keyId })
    const { headers, body } = await createRequests(server.url, token).get('/v1/me')
    expect(headers.get('x-ratelimit-remaining')).toBe('1')
    expect(body.data.key).toMatchObject({ name: 'test', limit: 2, scopes: ['events:read'] })
    expect((await project.get('/v1/me')).status).toBe(429)
  })
})

test('contract §7 keys are kept as SHA-256 alone', async () => {
  const { key, id } = await newProject(server)
  const [row] = await server.sql`
    select to_json(k)::text as row, encode(hash, 'hex') as hash from api_keys k where project_id = ${id}
  `
  expect(row?.['hash']).toBe(createHash('sha256').update(key).digest('hex'))
  expect(row?.['row']).not.toContain(key)
  expect(row?.['row']).not.toContain(key.slice(4, 20))
})

test('contract §7 a key may do everything but erase by default, and /v1/me names its project', async () => {
  const { keyId, get, id } = await newProject(server, { scopes: DEFAULT_SCOPES })
  const { status, body } = await get('/v1/me')
  expect(status).toBe(200)
  expect(body.data).toEqual({
    organization: { id: expect.stringMatching(/^org_/), name: 'Test organization' },
    project: { id: expect.stringMatching(/^prj_/), name: 'Test project' },
    key: {
      id: keyId,
      name: 'test',
      limit: 1_000_000,
      scopes: ['events:write', 'events:read', 'identities:write', 'identities:read'],
      expiresAt: null,
    },
  })
  const made = await createKey(server.sql, { projectId: id, name: 'default' })
  const answer = await createRequests(server.url, made.token).get('/v1/me')
  expect(answer.body.data.key.limit).toBe(100)
})
