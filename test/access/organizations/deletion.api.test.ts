import { expect, test } from 'bun:test'
import { listProjects } from '../../../src/access/organizations/projects.ts'
import { COMMAND_LINE } from '../../../src/access/audit/audit.ts'
import * as keys from '../../../src/access/keys/keys.ts'
import { expectFailure } from '../../support/answers.ts'
import { listAuditEntries } from '../../support/audit.ts'
import { hold, lockLog } from '../../support/database-lock.ts'
import { createKey } from '../../support/worlds/keys.ts'
import { newManagementToken } from '../../support/worlds/management-token.ts'
import {
  newMember,
  newSignedInAccount,
  newTeam,
  type TestOrganization,
} from '../../support/worlds/signed-in-account.ts'
import { createRequests } from '../../support/worlds/project.ts'
import { boot, withServer } from '../../support/servers/server.ts'
import { forFile } from '../../support/for-file.ts'

const server = withServer({}, { lockWaitMs: 60_000 })
const second = forFile(() => boot({ databaseUrl: server.databaseUrl }))

const EVENT = { channelName: 'a', title: 't' }

async function newTenant() {
  const [organization, owner] = await newTeam(server, 'owner')
  const { token } = await createKey(server.sql, {
    projectId: organization.project.uuid,
    name: 'k',
    limit: 1_000_000,
  })
  return { organization, owner, key: token, path: `/api/projects/${organization.project.id}` }
}

/** Writes and reads with `key` on the first and the second server; returns the four statuses. */
async function ask(key: string): Promise<number[]> {
  const answers = [server, second].map(async ({ url }) => {
    const { post, get } = createRequests(url, key)
    return [(await post('/v1/events', EVENT)).status, (await get('/v1/me')).status]
  })
  return (await Promise.all(answers)).flat()
}

async function countEvents({ project }: TestOrganization): Promise<number> {
  const [row] = await server.sql`
    select count(*)::int as n from events where project_id = ${project.uuid}
  `
  return row?.['n']
}

test('contract §11 a deleted project is gone at once, on every server', async () => {
  const { organization, owner, key, path } = await newTenant()
  expect(await ask(key)).toEqual([201, 200, 201, 200])
  const { status, body } = await owner.delete(path)
  expect([status, body.data]).toEqual([200, { id: organization.project.id }])
  expect(await ask(key)).toEqual([401, 401, 401, 401])
  for (const url of [server.url, second.url]) {
    const answer = await fetch(url + path, { headers: { cookie: owner.cookie } })
    expect(answer.status).toBe(404)
  }
  for (const act of [
    () => owner.delete(path),
    () => owner.patch(path, { name: 'n' }),
    () => owner.get(`${path}/keys`),
    () => owner.post(`${path}/keys`, { name: 'n' }),
  ]) {
    expectFailure(await act(), 404, 'not_found')
  }
  expect((await owner.get('/api/me')).body.data.organizations[0].projects).toEqual([])
  const { data } = (await owner.get(`/api/organizations/${organization.id}`)).body
  expect(data.projects).toEqual([])
  const listed = await listProjects(server.sql)
  expect(listed.map(({ uuid }) => uuid)).not.toContain(organization.project.uuid)
  expect(
    createKey(server.sql, { projectId: organization.project.uuid, name: 'k' }),
  ).rejects.toThrow('No project has this id')
  expect(await listAuditEntries(server.sql, organization.uuid)).toMatchObject([
    { action: 'key.created', accountId: null },
    { action: 'project.deleted', accountId: owner.uuid, details: { name: 'Test project' } },
  ])
})

test('contract §11 an append that waits for a deletion is 401 and stores nothing', async () => {
  const { organization, owner, key, path } = await newTenant()
  const { post } = createRequests(server.url, key)
  const hold = await lockLog(server.sql, organization.project.uuid)
  const deleted = owner.delete(path)
  await hold.untilBlocked()
  const sent = [post('/v1/events', EVENT), post('/v1/events', EVENT, { 'idempotency-key': 'k' })]
  await hold.untilBlocked(2)
  await hold.release()
  expect((await deleted).status).toBe(200)
  for (const answer of sent) expect((await answer).status).toBe(401)
  const { status } = await createRequests(server.url, key).post('/v1/identify', { user_id: 'ada' })
  expect(status).toBe(401)
  expect(await countEvents(organization)).toBe(0)
})

test('contract §11 a key created by the command line during the deletion of its project is invalid', async () => {
  const { organization, owner, path } = await newTenant()
  const made = Promise.withResolvers<{ token: string }>()
  await using lock = await hold(server.sql, async tx => {
    const key = { projectId: organization.project.uuid, name: 'k' }
    made.resolve(await keys.createKey(tx, COMMAND_LINE, key))
  })
  const deletion = owner.delete(path)
  await lock.untilBlocked()
  await lock.release()
  expect((await deletion).status).toBe(200)
  const { token } = await made.promise
  expect(await ask(token)).toEqual([401, 401, 401, 401])
})

test('contract §11 deleting an organization deletes its projects, memberships and invites', async () => {
  const { organization, owner, key, path } = await newTenant()
  const member = await newMember(server, organization, 'admin')
  const place = `/api/organizations/${organization.id}`
  const other = (await member.post(`${place}/projects`, { name: 'Second' })).body.data
  const { key: otherKey } = (await member.post(`/api/projects/${other.id}/keys`, { name: 'k' }))
    .body.data
  await member.post(`${place}/invites`, { role: 'viewer' })
  const options = { accountId: owner.uuid, organizationId: organization.uuid }
  const token = await newManagementToken(server, options)
  expect((await token.get('/api/token')).status).toBe(200)
  expectFailure(await member.delete(place), 403, 'forbidden')

  expect((await owner.delete(place)).body.data).toEqual({ id: organization.id })
  expect(await ask(key)).toEqual([401, 401, 401, 401])
  expect(await ask(otherKey)).toEqual([401, 401, 401, 401])
  expect((await token.get('/api/token')).status).toBe(401)
  for (const account of [owner, member]) {
    expect((await account.get('/api/me')).body.data.organizations).toEqual([])
    for (const gone of [place, path, `${place}/members`, `/api/projects/${other.id}`]) {
      expectFailure(await account.get(gone), 404, 'not_found')
    }
  }
  expectFailure(await owner.post(`${place}/projects`, { name: 'n' }), 404, 'not_found')
  const left = await server.sql`
    select from memberships where organization_id = ${organization.uuid}
    union all
    select from invites where organization_id = ${organization.uuid}
  `
  expect(left).toHaveLength(0)
  // Only the operator can read the log: the organization has no member left.
  const operator = await newSignedInAccount(server, { isOperator: true })
  const { items } = (await operator.get('/api/server/audit?action=organization.deleted')).body.data
  expect(items[0]).toMatchObject({
    target: organization.id,
    person: { id: owner.id, name: 'Test person' },
    details: { name: 'Test organization', projects: 2 },
  })
})

test('contract §11 projects that are created while their organization is deleted do not survive it', async () => {
  const { organization, owner } = await newTenant()
  const admin = await newMember(server, organization, 'admin')
  const place = `/api/organizations/${organization.id}`
  const [, ...made] = await Promise.all([
    owner.delete(place),
    ...Array.from({ length: 10 }, () => admin.post(`${place}/projects`, { name: 'p' })),
  ])
  for (const { status } of made) expect([201, 404]).toContain(status)
  const live = await server.sql`
    select from projects where organization_id = ${organization.uuid} and deleted_at is null
  `
  expect(live).toHaveLength(0)
})
