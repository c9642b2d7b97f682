import { expect, test } from 'bun:test'
import manifest from '../../package.json' with { type: 'json' }
import { parseId } from '../../src/base/ids.ts'
import { newSignedInAccount } from '../support/worlds/signed-in-account.ts'
import { newProject } from '../support/worlds/project.ts'
import { boot } from '../support/servers/server.ts'

test('dashboard §11 the operator sees version, database, disk, pending deliveries and push', async () => {
  const baseUrl = 'https://tidings.example.com'
  await using server = await boot(
    { baseUrl, vapidSubject: 'mailto:push@example.com', dataDir: import.meta.dir },
    // Without delivery kinds nothing is sent, and deliveries stay pending.
    { kinds: [] },
  )
  const operator = await newSignedInAccount(server, { isOperator: true })
  const { host } = new URL(baseUrl)
  const headers = { cookie: `__Host-${operator.cookie}`, host, origin: baseUrl }
  const { id: keyId } = (await operator.request('/api/push/key', { headers })).body.data
  const project = await newProject(server)
  const json = { channelName: 'a', title: 't' }
  const sent = await project.request('/v1/events', { method: 'POST', json, headers: { host } })
  await server.sql`
    insert into outbox (project_id, event_id, kind, target_id)
    values (${project.id}, ${parseId('evt', sent.body.data.id)!}, 'webhook', gen_random_uuid())
  `
  const { status, body } = await operator.request('/api/server', { headers })
  expect(status).toBe(200)
  expect(body.data).toMatchObject({
    version: manifest.version,
    runtime: expect.stringContaining('Bun'),
    ...{ url: baseUrl, isUrlSet: true, isHttps: true },
    database: { kind: 'external', version: expect.stringMatching(/^\d+/) },
    disk: { folder: import.meta.dir },
    ...{ projects: 2, events: 1, sockets: 0 },
    deliveries: { pending: { push: 0, webhook: 1 }, running: 0 },
    push: { keyId, subject: 'mailto:push@example.com', isSubjectSet: true, devices: 0 },
  })
  expect(body.data.database.bytes).toBeGreaterThan(1_000_000)
  expect(body.data.disk.totalBytes).toBeGreaterThanOrEqual(body.data.disk.freeBytes)
})

test('dashboard §11 without settings the server page has the address of an operator, and no disk', async () => {
  await using server = await boot({ dataDir: '/nowhere/at/all' })
  const operator = await newSignedInAccount(server, { isOperator: true })
  expect((await operator.get('/api/server')).body.data).toMatchObject({
    ...{ url: `http://localhost:${server.server.port}`, isUrlSet: false, isHttps: false },
    disk: null,
    push: { keyId: null, subject: `mailto:${operator.email}`, isSubjectSet: false },
  })
})
