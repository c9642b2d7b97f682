import { expect, test } from 'bun:test'
import { ageVerification } from '../../support/worlds/ageing.ts'
import { expectFailure } from '../../support/answers.ts'
import { listAuditActions, listAuditEntries } from '../../support/audit.ts'
import { newSignedInAccount, newTeam } from '../../support/worlds/signed-in-account.ts'
import { createRequests } from '../../support/worlds/project.ts'
import { withSharedServer } from '../../support/servers/server.ts'

const server = withSharedServer()

test('design §6 the operator creates an organization and is its owner', async () => {
  const operator = await newSignedInAccount(server, { isOperator: true })
  const { status, body } = await operator.post('/api/organizations', { name: '  Ada & Co  ' })
  expect(status).toBe(201)
  expect(body.data).toMatchObject({
    ...{ name: 'Ada & Co', role: 'owner', members: 1, projects: [] },
    ...{ requiresSecondFactor: false, membersWithoutSecondFactor: 1 },
  })
  const { id } = body.data
  const me = (await operator.get('/api/me')).body.data
  expect(me.organizations).toMatchObject([{ id, name: 'Ada & Co', role: 'owner', projects: [] }])
  expect((await operator.get(`/api/organizations/${id}`)).body.data).toEqual(body.data)
})

test('design §6 a new project has an empty log, and accepts events with its own key', async () => {
  const [organization, admin] = await newTeam(server, 'admin')
  const path = `/api/organizations/${organization.id}/projects`
  const { status, body } = await admin.post(path, { name: 'Shop' })
  expect(status).toBe(201)
  const { id, ...project } = body.data
  expect(project).toMatchObject({ name: 'Shop', role: 'admin', keepDays: null, head: 0 })
  const { key } = (await admin.post(`/api/projects/${id}/keys`, { name: 'k' })).body.data
  const event = { channelName: 'a', title: 't' }
  expect((await createRequests(server.url, key).post('/v1/events', event)).status).toBe(201)
  expect((await admin.get(`/api/projects/${id}`)).body.data.head).toBe(1)
  const { projects } = (await admin.get(`/api/organizations/${organization.id}`)).body.data
  expect(projects).toMatchObject([{ id: organization.project.id }, { id, name: 'Shop' }])
})

test('contract §12 an owner renames the organization; the audit log has each change', async () => {
  const [organization, owner] = await newTeam(server, 'owner')
  const { status, body } = await owner.patch(`/api/organizations/${organization.id}`, { name: 'B' })
  expect([status, body.data.name]).toEqual([200, 'B'])
  await owner.post(`/api/organizations/${organization.id}/projects`, { name: 'P' })
  await owner.patch(`/api/projects/${organization.project.id}`, { name: 'Q', keepDays: 30 })
  const deeds = await listAuditEntries(server.sql, organization.uuid)
  expect(deeds).toMatchObject([
    { action: 'organization.renamed', accountId: owner.uuid, details: { name: 'B' } },
    { action: 'project.created', accountId: owner.uuid, details: { name: 'P' } },
    { action: 'project.edited', accountId: owner.uuid, details: { name: 'Q', keepDays: 30 } },
  ])
})

test('contract §11 retention is 1 to 36,500 days, or unlimited', async () => {
  const [organization, admin] = await newTeam(server, 'admin')
  const path = `/api/projects/${organization.project.id}`
  for (const keepDays of [36_500, 1, null]) {
    expect((await admin.patch(path, { keepDays })).body.data.keepDays).toBe(keepDays)
  }
  for (const keepDays of [0, -1, 36_501, 1.5, '7']) {
    const { status, body } = await admin.patch(path, { keepDays })
    expect([status, body.details?.[0].path]).toEqual([400, ['keepDays']])
  }
  const named = await admin.patch(path, { name: 'Only the name' })
  expect(named.body.data).toMatchObject({ name: 'Only the name', keepDays: null })
})

test('reliability §6 a shorter retention destroys events, and takes the password', async () => {
  const [organization, admin] = await newTeam(server, 'admin')
  const path = `/api/projects/${organization.project.id}`
  await admin.patch(path, { keepDays: 30 })
  await ageVerification(server.sql, admin.sessionId)
  expectFailure(await admin.patch(path, { keepDays: 29 }), 403, 'verification_needed')
  for (const keepDays of [30, 31, null]) {
    expect((await admin.patch(path, { keepDays })).status).toBe(200)
  }
  expectFailure(await admin.patch(path, { keepDays: 36_500 }), 403, 'verification_needed')
  expect((await admin.get(path)).body.data.keepDays).toBe(null)
})

test('contract §12 an organization has at most 100 projects, also under concurrent requests', async () => {
  const [organization, admin] = await newTeam(server, 'admin')
  const path = `/api/organizations/${organization.id}/projects`
  await server.sql`
    insert into projects (id, organization_id, name)
    select gen_random_uuid(), ${organization.uuid}, 'p' from generate_series(1, 97)
  `
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => admin.post(path, { name: 'More' })),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, ...Array(8).fill(409)])
  const refused = answers.find(({ status }) => status === 409)
  expect(refused?.body.error).toContain('at most 100 projects')
  expect(await listAuditActions(server.sql, organization.uuid)).toHaveLength(2)
})
