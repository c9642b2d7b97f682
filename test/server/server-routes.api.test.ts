import { expect, test } from 'bun:test'
import manifest from '../../package.json' with { type: 'json' }
import { parseId } from '../../src/base/ids.ts'
import { newSignedInAccount } from '../support/worlds/signed-in-account.ts'
import { newProject } from '../support/worlds/project.ts'
import { boot } from '../support/servers/server.ts'

test('dashboard §11 the operator sees version, database, disk, deliveries and push', async () => {
  await using server = await boot({ dataDir: import.meta.dir })
  const project = await newProject(server)
  await project.post('/v1/events', { channelName: 'a', title: 't' })
  const operator = await newSignedInAccount(server, { isOperator: true })
  const { status, body } = await operator.get('/api/server')
  expect(status).toBe(200)
  expect(body.data).toEqual({
    version: manifest.version,
    runtime: expect.stringContaining('Bun'),
    url: `http://localhost:${server.server.port}`,
    isUrlSet: false,
    isHttps: false,
    startedAt: expect.any(String),
    database: {
      kind: 'external',
      version: expect.stringMatching(/^\d+/),
      bytes: expect.any(Number),
    },
    disk: {
      folder: import.meta.dir,
      freeBytes: expect.any(Number),
      totalBytes: expect.any(Number),
    },
    projects: 2,
    events: 1,
    sockets: 0,
    deliveries: { pending: { push: 0, webhook: 0 }, oldestMs: 0, running: 0 },
    push: {
      keyId: null,
      subject: `mailto:${operator.email}`,
      isSubjectSet: false,
      devices: 0,
    },
  })
  expect(body.data.database.bytes).toBeGreaterThan(1_000_000)
  expect(body.data.disk.totalBytes).toBeGreaterThanOrEqual(body.data.disk.freeBytes)
})

test('dashboard §11 the server page has pending deliveries, the push key and the configuration', async () => {
  await using server = await boot(
    {
      baseUrl: 'https://tidings.example.com',
      vapidSubject: 'mailto:push@example.com',
      dataDir: '/nowhere/at/all',
    },
    // Without delivery kinds nothing is sent, and deliveries stay pending.
    { kinds: [] },
  )
  const operator = await newSignedInAccount(server, { isOperator: true })
  const headers = {
    cookie: `__Host-${operator.cookie}`,
    host: 'tidings.example.com',
    origin: 'https://tidings.example.com',
  }
  const { id } = (await operator.request('/api/push/key', { headers })).body.data
  const project = await newProject(server)
  const event = (
    await project.request('/v1/events', {
      method: 'POST',
      json: { channelName: 'a', title: 't' },
      headers: { host: 'tidings.example.com' },
    })
  ).body.data
  await server.sql`
    insert into outbox (project_id, event_id, kind, target_id)
    select p.id, ${parseId('evt', event.id) ?? ''}, 'webhook', gen_random_uuid()
    from projects p
    where p.id = ${project.id}
  `
  const { body } = await operator.request('/api/server', { headers })
  expect(body.data).toMatchObject({
    url: 'https://tidings.example.com',
    isUrlSet: true,
    isHttps: true,
    disk: null,
    deliveries: { pending: { push: 0, webhook: 1 } },
    push: { keyId: id, subject: 'mailto:push@example.com', isSubjectSet: true },
  })
})
