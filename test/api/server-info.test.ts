import { expect, test } from 'bun:test'
import { newPerson } from '../support/person.ts'
import { newProject } from '../support/project.ts'
import { boot } from '../support/server.ts'

test('dashboard 11 the operator sees version, database and what is stored', async () => {
  await using server = await boot()
  const project = await newProject(server)
  await project.post('/v1/events', { channelName: 'a', title: 't' })
  const operator = await newPerson(server, { isOperator: true })
  const { status, body } = await operator.get('/api/server')
  expect(status).toBe(200)
  expect(body.data).toEqual({
    version: '0.1.0',
    runtime: expect.stringContaining('Bun'),
    url: `http://localhost:${server.server.port}`,
    isHttps: false,
    startedAt: expect.any(String),
    database: {
      kind: 'external',
      version: expect.stringMatching(/^\d+/),
      bytes: expect.any(Number),
    },
    projects: 2,
    events: 1,
  })
  expect(body.data.database.bytes).toBeGreaterThan(1_000_000)
})
