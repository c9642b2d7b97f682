import { expect, test } from 'bun:test'
import { createValidator } from '../../../src/http/validation.ts'
import { EventInput } from '../../../src/log/events/schema.ts'
import { HOUR_MS } from '../../../src/log/events/time-buckets.ts'
import {
  listShopEvents,
  listShopStory,
  SHOP_CARDS,
  SHOP_QUESTION,
  SHOP_VIEW,
} from '../../../src/log/demo/shop.ts'
import { newId, parseId } from '../../../src/base/ids.ts'
import { expectFailure } from '../../support/answers.ts'
import { listAuditActions } from '../../support/audit.ts'
import { newMember, newOrganization } from '../../support/worlds/signed-in-account.ts'
import { withSharedServer } from '../../support/servers/server.ts'
import { until } from '../../support/until.ts'
import { insertWebhook } from '../../support/worlds/webhooks.ts'

const server = withSharedServer()

async function newAdmin() {
  const organization = await newOrganization(server)
  const path = `/api/organizations/${organization.id}/sample-project`
  return { organization, path, admin: await newMember(server, organization, 'admin') }
}

test('the invented shop has the same valid events for the same hours, in order', () => {
  const startMs = Date.UTC(2026, 10, 2, 0, 30)
  const week = listShopEvents(startMs, startMs + 7 * 24 * HOUR_MS)
  const validator = createValidator(EventInput)
  const events = [...week, ...listShopStory(startMs)].map(({ event }) => event)
  for (const event of events) expect(validator.parse(event)).toEqual(event)
  expect(week.map(({ atMs }) => atMs)).toEqual(
    week.map(({ atMs }) => atMs).toSorted((a, b) => a - b),
  )
  expect(week.every(({ atMs }) => atMs >= startMs)).toBe(true)
  expect(listShopEvents(startMs, startMs + 7 * 24 * HOUR_MS)).toEqual(week)
  const firstDay = listShopEvents(startMs, startMs + 24 * HOUR_MS)
  expect(week.slice(0, firstDay.length)).toEqual(firstDay)
  expect(firstDay.length).toBeGreaterThan(40)
  expect(firstDay.length).toBeLessThan(150)
})

test('a project with sample data has four weeks of events and users, and is removed at once', async () => {
  const { organization, admin, path } = await newAdmin()
  expectFailure(await admin.delete(path), 404, 'not_found')

  const { status, body } = await admin.post(path)
  expect(status).toBe(201)
  const { id, head } = body.data
  expect(head).toBeGreaterThan(1_000)
  const listed = (await admin.get('/api/me')).body.data.organizations.flatMap(
    ({ projects }: { projects: object[] }) => projects,
  )
  expect(listed).toContainEqual({ id, name: 'Sample shop', isSample: true })
  const { items } = (await admin.get(`/api/projects/${id}/events?limit=100`)).body.data
  expect(items[0].notify).toBe(false)
  expect(items.some(({ userId }: { userId: string | null }) => userId !== null)).toBe(true)
  // A question waits, an outage is open, and a job that failed is acknowledged and resolved.
  const asked = (await admin.get(`/api/projects/${id}/events/${items[0].id}`)).body.data
  const { title, actions } = SHOP_QUESTION
  expect(asked).toMatchObject({ title, actions, state: 'running' })
  const [job] = (await admin.get(`/api/projects/${id}/events?q=tag:invoices`)).body.data.items
  expect(job).toMatchObject({ state: 'resolved', notify: false })
  const acknowledged = await admin.get(`/api/projects/${id}/events/${job.id}/acknowledgement`)
  expect(acknowledged.body.data.acknowledgement).toMatchObject({ by: 'Test person' })
  const overview = (await admin.get('/api/overview')).body.data.projects
  const sample = overview.find((project: { id: string }) => project.id === id)
  expect(sample.unusual).toMatchObject([{ kind: 'loud' }])
  const users = (await admin.get(`/api/projects/${id}/users?limit=100`)).body.data.items
  expect(users).toHaveLength(12)
  const { cards } = (await admin.get(`/api/projects/${id}/insights`)).body.data
  expect(cards.map(({ kind }: { kind: string }) => kind)).toEqual(
    SHOP_CARDS.map(({ kind }) => kind),
  )
  for (const { id: cardId, title } of cards) {
    const { body } = await admin.get(`/api/projects/${id}/insights/${cardId}/result`)
    const { total } = body.data.histogram ?? body.data
    expect([title, total > 0]).toEqual([title, true])
  }
  const views = (await admin.get(`/api/projects/${id}/views`)).body.data
  expect(views).toMatchObject({ items: [SHOP_VIEW] })
  const [row] = await server.sql<[{ days: number }]>`
    select count(distinct date_trunc('day', hour))::int as days
    from event_counts c join projects p on p.id = c.project_id
    where p.is_sample and p.organization_id = ${organization.uuid}
  `
  expect(row.days).toBeGreaterThanOrEqual(28)

  expectFailure(await admin.post(path), 409, 'conflict')
  expect((await admin.delete(path)).body.data).toEqual({ id })
  expectFailure(await admin.get(`/api/projects/${id}`), 404, 'not_found')
  expect(await listAuditActions(server.sql, organization.uuid)).toEqual(
    expect.arrayContaining(['project.created', 'project.deleted']),
  )
})

test('a project with sample data that has or had a key or a webhook is not removed without a confirmation', async () => {
  for (const use of ['key', 'webhook']) {
    const { admin, path } = await newAdmin()
    const { id } = (await admin.post(path)).body.data
    const uuid = parseId('prj', id)!
    if (use === 'webhook')
      await insertWebhook(server, uuid, { eventId: newId('evt').id, mark: 'x' })
    else {
      const made = (await admin.post(`/api/projects/${id}/keys`, { name: 'k' })).body.data
      expect((await admin.delete(`/api/projects/${id}/keys/${made.id}`)).status).toBe(200)
    }
    expectFailure(await admin.delete(path), 409, 'conflict')
    expect((await admin.get(`/api/projects/${id}`)).status).toBe(200)
  }
})

test('a project that could not be filled with sample data is deleted, and can be created again', async () => {
  const { admin, path } = await newAdmin()
  await server.sql.unsafe(`
    create function refuse_events() returns trigger language plpgsql as $$
    begin
      raise exception using errcode = 'disk_full';
    end
    $$;
    create trigger refuse_events before insert on events for each row execute function refuse_events()
  `)
  try {
    expectFailure(await admin.post(path), 503, 'unavailable')
  } finally {
    await server.sql`drop trigger refuse_events on events`
  }
  expect((await admin.post(path)).status).toBe(201)
})

test('a project that is deleted while it is filled with sample data is not found', async () => {
  const { admin, path } = await newAdmin()
  const creation = admin.post(path)
  await until(async () => (await admin.delete(path)).status === 200)
  expectFailure(await creation, 404, 'not_found')
})
