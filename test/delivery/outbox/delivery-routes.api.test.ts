import { afterAll, beforeAll, expect, test } from 'bun:test'
import { makeDeliveriesDue } from '../../support/worlds/ageing.ts'
import { addTarget, createTargets, createTestKind } from '../../support/worlds/delivery-kind.ts'
import { cloneDatabase } from '../../support/servers/postgres.ts'
import { newMember, newOrganization } from '../../support/worlds/signed-in-account.ts'
import { createKey } from '../../support/worlds/keys.ts'
import { createRequests } from '../../support/worlds/project.ts'
import { boot, type Booted } from '../../support/servers/server.ts'
import { until } from '../../support/until.ts'
import { openSql } from '../../support/sql.ts'

/** The targets whose attempts fail: `gone` from the attempt with this number on. */
const goneFrom = new Map<string, number>()

let server: Booted
beforeAll(async () => {
  const databaseUrl = await cloneDatabase()
  const sql = openSql(databaseUrl)
  await createTargets(sql)
  await sql.end()
  const kind = createTestKind({
    async send({ targetId, attempt }) {
      const from = goneFrom.get(targetId)
      if (from === undefined) return { kind: 'done' }
      return attempt < from
        ? { kind: 'retry', reason: 'http_500' }
        : { kind: 'gone', reason: 'http_410' }
    },
  })
  server = await boot({ databaseUrl }, { kinds: [kind] })
})
afterAll(() => server[Symbol.asyncDispose]())

/** Returns a project with an admin and one target, and a function that posts its events. */
async function newTarget() {
  const organization = await newOrganization(server)
  const { uuid, id } = organization.project
  const targetId = await addTarget(server.sql, uuid, 'hooks.example.com')
  const { token } = await createKey(server.sql, { projectId: uuid, name: 'test', limit: 1_000 })
  const { post } = createRequests(server.url, token)
  return {
    ...{ uuid, targetId, path: `/api/projects/${id}` },
    admin: await newMember(server, organization, 'admin'),
    async send(): Promise<string> {
      const event = { channelName: 'payments', title: 'New payment' }
      return (await post('/v1/events', event)).body.data.id as string
    },
  }
}

test('delivery: pending deliveries and dead letters are listed page by page', async () => {
  const { path, uuid, targetId, send, admin } = await newTarget()
  goneFrom.set(targetId, 2)
  const ids = [await send(), await send(), await send()].reverse()
  const read = async (state: string) => {
    const items = []
    let cursor = ''
    do {
      const page = await admin.get(`${path}/deliveries?state=${state}&limit=2${cursor}`)
      expect(page.status).toBe(200)
      items.push(...page.body.data.items)
      cursor = page.body.data.nextCursor === null ? '' : `&cursor=${page.body.data.nextCursor}`
    } while (cursor !== '')
    return items
  }
  await until(async () => {
    const pending = await read('pending')
    return pending.length === 3 && pending.every(one => one.attempts === 1)
  })
  const pending = await read('pending')
  expect(pending.map(one => one.eventId)).toEqual(ids)
  expect(pending[0]).toMatchObject({ state: 'pending', reason: 'http_500', at: null })
  expect(Date.parse(pending[0].nextAttemptAt)).toBeGreaterThan(0)
  expect(await read('dead')).toEqual([])

  await makeDeliveriesDue(server.sql, uuid)
  await until(async () => (await read('dead')).length === 3)
  const dead = await read('dead')
  expect(dead.map(one => one.eventId).sort()).toEqual(ids.sort())
  expect(dead[0]).toMatchObject({ state: 'dead', attempts: 2, reason: 'http_410' })
  expect(await read('pending')).toEqual([])
})

test('delivery: a dead letter is replayed once, under its own id and with an audit entry', async () => {
  const { path, uuid, targetId, send, admin } = await newTarget()
  goneFrom.set(targetId, 1)
  const eventId = await send()
  const readDead = async () => (await admin.get(`${path}/deliveries?state=dead`)).body.data.items
  await until(async () => (await readDead()).length === 1)
  const [{ id }] = await readDead()
  goneFrom.delete(targetId)

  const { status, body } = await admin.post(`${path}/deliveries/${id}/replay`)
  expect(status).toBe(200)
  expect(body.data).toMatchObject({ id, eventId, state: 'pending', attempts: 0 })
  const readEvent = async () =>
    (await admin.get(`${path}/events/${eventId}/deliveries`)).body.data.items
  await until(async () => (await readEvent())[0]?.state === 'delivered')
  expect(await readEvent()).toMatchObject([{ id, state: 'delivered', attempts: 1 }])
  expect(await readDead()).toEqual([])
  expect((await admin.post(`${path}/deliveries/${id}/replay`)).status).toBe(404)
  const entries = await server.sql`
    select account_id, target, details::text as details
    from audit_log
    where project_id = ${uuid} and action = 'delivery.replayed'
  `
  expect([...entries]).toEqual([
    { account_id: admin.uuid, target: id, details: '{"kind":"webhook"}' },
  ])
})

test('delivery: the dead letter of a hidden event is kept, and cannot be replayed', async () => {
  const { path, uuid, targetId, send, admin } = await newTarget()
  goneFrom.set(targetId, 1)
  await send()
  const readDead = async () => (await admin.get(`${path}/deliveries?state=dead`)).body.data.items
  await until(async () => (await readDead()).length === 1)
  const [{ id }] = await readDead()
  await server.sql`update events set deleted_at = now() where project_id = ${uuid}`
  const { status, body } = await admin.post(`${path}/deliveries/${id}/replay`)
  expect([status, body.code]).toEqual([409, 'conflict'])
  expect(await readDead()).toHaveLength(1)
})

test('contract §12 a list refuses unknown filters', async () => {
  const { admin, ...project } = await newTarget()
  const path = `${project.path}/deliveries`
  const refused = async (query: string) => (await admin.get(`${path}${query}`)).body.details?.[0]
  expect((await admin.get(path)).body.data).toEqual({ items: [], nextCursor: null })
  expect(await refused('?state=delivered')).toMatchObject({ path: ['state'] })
  expect(await refused('?state=dead&limit=101')).toMatchObject({ path: ['limit'] })
  const cursor = Buffer.from(`${crypto.randomUUID()} x`).toString('base64url')
  expect(await refused(`?state=dead&cursor=${cursor}`)).toMatchObject({ path: ['cursor'] })
  expect(await refused(`?state=pending&cursor=${cursor}`)).toMatchObject({ path: ['cursor'] })
})
