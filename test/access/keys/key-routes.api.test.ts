import { describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { parseId } from '../../../src/base/ids.ts'
import { hashToken } from '../../../src/base/token-form.ts'
import { expectFailure, expectIssues } from '../../support/answers.ts'
import { listAuditEntries } from '../../support/audit.ts'
import { newTeam } from '../../support/worlds/signed-in-account.ts'
import { listKeys, revokeKey, rotateKey } from '../../support/worlds/keys.ts'
import { createRequests, newProject } from '../../support/worlds/project.ts'
import { boot, withServer } from '../../support/servers/server.ts'
import { forFile } from '../../support/for-file.ts'

const server = withServer()
const trustedProxies = ['127.0.0.1/32']
const second = forFile(() => boot({ databaseUrl: server.databaseUrl, trustedProxies }))

async function newAdmin() {
  const [organization, admin] = await newTeam(server, 'admin')
  return { organization, admin, path: `/api/projects/${organization.project.id}/keys` }
}

/** Requests /v1/me with `key` from the first and the second server; returns the statuses. */
async function ask(key: string): Promise<number[]> {
  return Promise.all(
    [server, second].map(async ({ url }) => (await createRequests(url, key).get('/v1/me')).status),
  )
}

test('contract §7 a key is shown once, on creation, and has all scopes but that to erase, and 100 requests a minute', async () => {
  const { organization, admin, path } = await newAdmin()
  const { status, body } = await admin.post(path, { name: ' ci ' })
  expect(status).toBe(201)
  const { key, ...info } = body.data
  expect(key).toMatch(/^tdg_[0-9A-Za-z]{38}$/)
  expect(info).toMatchObject({
    ...{ name: 'ci', prefix: 'tdg_', lastFour: key.slice(-4), limit: 100 },
    scopes: ['events:write', 'events:read', 'identities:write', 'identities:read'],
    ...{ createdBy: 'Test person', lastUsedAt: null, expiresAt: null, revokedAt: null },
    ...{ isPrinted: false, requestsPerHour: Array(24).fill(0) },
  })
  expect(await ask(key)).toEqual([200, 200])
  const list = await admin.get(path)
  expect(list.body.data).toEqual({ items: [info], nextCursor: null })
  expect(list.text).not.toContain(key.slice(4, 30))
  const me = (await createRequests(server.url, key).get('/v1/me')).body.data
  expect(me).toEqual({
    organization: { id: organization.id, name: 'Test organization' },
    project: { id: organization.project.id, name: 'Test project' },
    key: { id: info.id, name: 'ci', limit: 100, scopes: info.scopes, expiresAt: null },
  })
  // Keys are kept as SHA-256 alone.
  const [row] = await server.sql`
    select to_json(k)::text as row, encode(hash, 'hex') as hash from api_keys k
    where project_id = ${organization.project.uuid}
  `
  expect(row?.['hash']).toBe(createHash('sha256').update(key).digest('hex'))
  for (const part of [key, key.slice(4, 20)]) expect(row?.['row']).not.toContain(part)
  expect(await listAuditEntries(server.sql, organization.uuid)).toEqual([
    {
      ...{ action: 'key.created', target: info.id, accountId: admin.uuid },
      details: { name: 'ci', scopes: info.scopes.join(' '), limit: 100, expiresAt: null },
    },
  ])
})

test('contract §7 a key has the requested scopes, limit and expiry', async () => {
  const { admin, path } = await newAdmin()
  const expiresAt = new Date(Date.now() + 86_400_000).toISOString()
  const given = { name: 'k', scopes: ['events:read', 'events:read'], limit: 7, expiresAt }
  const { body } = await admin.post(path, given)
  expect(body.data).toMatchObject({ scopes: ['events:read'], limit: 7, expiresAt })
  const me = await createRequests(server.url, body.data.key).get('/v1/me')
  expect(me.body.data.key).toMatchObject({ scopes: ['events:read'], limit: 7, expiresAt })

  const bad: [object, string][] = [
    [{ name: '' }, 'name too_short'],
    [{ name: 'k', scopes: [] }, 'scopes too_short'],
    [{ name: 'k', scopes: ['all'] }, 'scopes.0 invalid_value'],
    [{ name: 'k', limit: 0 }, 'limit out_of_range'],
    [{ name: 'k', limit: 1e10 }, 'limit out_of_range'],
    [{ name: 'k', expiresAt: '2020-01-01T00:00:00Z' }, 'expiresAt invalid_value'],
    [{ name: 'k', expiresAt: 'tomorrow' }, 'expiresAt invalid_value'],
    [{ name: 'k', expiresAt: '2027-13-41T00:00:00Z' }, 'expiresAt invalid_value'],
    [{ name: 'k', expiresAt: '9999-12-31T23:59:59-12:00' }, 'expiresAt invalid_value'],
  ]
  for (const [body, issue] of bad) expectIssues(await admin.post(path, body), issue)
})

test('contract §7 a key is renamed, and its new limit applies from the next request on', async () => {
  const { admin, path } = await newAdmin()
  const { id, key } = (await admin.post(path, { name: 'k', limit: 5 })).body.data
  const limits = async () =>
    (await createRequests(second.url, key).get('/v1/me')).headers.get('x-ratelimit-limit')
  expect(await limits()).toBe('5')
  const { status, body } = await admin.patch(`${path}/${id}`, { limit: 6 })
  expect([status, body.data.limit, body.data.name]).toEqual([200, 6, 'k'])
  expect((await admin.patch(`${path}/${id}`, { name: 'other' })).body.data.name).toBe('other')
  expect(await limits()).toBe('6')
  expectIssues(await admin.patch(`${path}/${id}`, { limit: 0 }), 'limit out_of_range')
})

test('contract §7 rotation creates a new key, and the old one works for 24 hours or the requested hours', async () => {
  const { admin, organization, path } = await newAdmin()
  const old = (await admin.post(path, { name: 'k', limit: 9 })).body.data
  const { status, body } = await admin.post(`${path}/${old.id}/rotate`, {})
  expect([status, body.data.name, body.data.limit]).toEqual([201, 'k', 9])
  expect(await ask(old.key)).toEqual([200, 200])
  expect(await ask(body.data.key)).toEqual([200, 200])
  const { items } = (await admin.get(path)).body.data
  const hours = (Date.parse(items[1].expiresAt) - Date.now()) / 3_600_000
  expect(hours).toBeWithin(23.9, 24.1)

  const next = await admin.post(`${path}/${body.data.id}/rotate`, { overlapHours: 0 })
  expect(await ask(body.data.key)).toEqual([401, 401])
  expect(await ask(next.body.data.key)).toEqual([200, 200])
  for (const overlapHours of [-1, 169, 0.5, '1']) {
    const { status } = await admin.post(`${path}/${next.body.data.id}/rotate`, { overlapHours })
    expect(status).toBe(400)
  }
  expect(
    (await listAuditEntries(server.sql, organization.uuid)).map(({ action }) => action),
  ).toEqual(['key.created', 'key.rotated', 'key.rotated'])
})

test('contract §7 every server refuses a revoked key on the next request, and the list keeps it', async () => {
  const { admin, organization, path } = await newAdmin()
  const { id, key } = (await admin.post(path, { name: 'k' })).body.data
  for (let times = 0; times < 2; times++) {
    expect((await admin.delete(`${path}/${id}`)).body.data).toEqual({ id })
    expect(await ask(key)).toEqual([401, 401])
  }
  const [item] = (await admin.get(path)).body.data.items
  expect(item).toMatchObject({ id, revokedAt: expect.any(String) })
  expectFailure(await admin.patch(`${path}/${id}`, { name: 'n' }), 404, 'not_found')
  expectFailure(await admin.post(`${path}/${id}/rotate`, {}), 404, 'not_found')
  expect(await listAuditEntries(server.sql, organization.uuid)).toHaveLength(2)
})

test('contract §7 a project has at most 100 live keys, under concurrent requests and rotations', async () => {
  const { admin, path } = await newAdmin()
  const [first] = await Promise.all(
    Array.from({ length: 98 }, () => admin.post(path, { name: 'k' })),
  )
  const { id } = first?.body.data
  const answers = await Promise.all([
    ...Array.from({ length: 3 }, () => admin.post(path, { name: 'k' })),
    ...Array.from({ length: 3 }, () => admin.post(`${path}/${id}/rotate`, {})),
  ])
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 409, 409, 409, 409])
  expect(answers.find(({ status }) => status === 409)?.body.error).toContain('at most 100')
  // A rotation without overlap replaces the old key, and a revocation frees a place.
  expect((await admin.post(`${path}/${id}/rotate`, { overlapHours: 0 })).status).toBe(201)
  const { items, nextCursor } = (await admin.get(`${path}?limit=60`)).body.data
  const rest = (await admin.get(`${path}?limit=60&cursor=${nextCursor}`)).body.data
  expect([...items, ...rest.items]).toHaveLength(101)
  await admin.delete(`${path}/${items[0].id}`)
  expect((await admin.post(path, { name: 'k' })).status).toBe(201)
})

test('dashboard §9 requests of the last 24 hours are counted per hour, refused ones included', async () => {
  const { admin, path } = await newAdmin()
  const { id, key } = (await admin.post(path, { name: 'k', limit: 3 })).body.data
  const uuid = parseId('key', id) ?? ''
  await server.sql`
    insert into key_usage (key_id, hour, requests)
    select ${uuid}::uuid, date_trunc('hour', now()) - make_interval(hours => h), 10 * h
    from unnest(array[1, 23, 24]) as t (h)
  `
  // Each of two servers writes its counts when it stops.
  for (let n = 0; n < 2; n++) {
    await using third = await boot({ databaseUrl: server.databaseUrl })
    for (let m = 0; m < 4; m++) await createRequests(third.url, key).get('/v1/me')
  }
  const [item] = (await admin.get(path)).body.data.items
  expect(item.lastUsedAt).toEqual(expect.any(String))
  const { requestsPerHour } = item
  expect(requestsPerHour).toHaveLength(24)
  // A new hour may begin and shift the counts by one place.
  expect(requestsPerHour.reduce((sum: number, n: number) => sum + n)).toBeOneOf([248, 18])
  expect(requestsPerHour.slice(-3).reduce((sum: number, n: number) => sum + n)).toBe(18)
})

/** Moves all times of a key `seconds` into the past. */
async function age(key: string, seconds: number): Promise<void> {
  await server.sql`
    update api_keys set expires_at = expires_at - make_interval(secs => ${seconds})
    where hash = decode(${hashToken(key)}, 'hex')
  `
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

describe('contract §7 rotation:', () => {
  test('a key expires, and its rotation does not extend its life', async () => {
    const project = await newProject(server, { expiresAt: new Date(Date.now() + 3_600_000) })
    await rotateKey(server.sql, project.id, { id: project.keyId })
    await age(project.key, 3_590)
    expect(await ask(project.key)).toEqual([200, 200])
    await age(project.key, 11)
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
        const keys = await listKeys(server.sql, project.id)
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

  test('the new key has the scopes of the old one, and its own window', async () => {
    const project = await newProject(server, { limit: 1, scopes: ['events:read'] })
    expect((await project.get('/v1/me')).status).toBe(200)
    expect((await project.get('/v1/me')).status).toBe(429)
    const { token } = await rotateKey(server.sql, project.id, { id: project.keyId })
    const { status, body } = await createRequests(server.url, token).get('/v1/me')
    expect([status, body.data.key.scopes]).toEqual([200, ['events:read']])
  })
})
