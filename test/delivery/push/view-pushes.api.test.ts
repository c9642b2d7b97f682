import { afterAll, beforeAll, expect, test } from 'bun:test'
import { toArray } from '../../../src/database/arrays.ts'
import { ensureCursors } from '../../../src/delivery/outbox/cursors.ts'
import { dispatchPushes } from '../../../src/delivery/push/dispatch.ts'
import { toId } from '../../../src/base/ids.ts'
import { insertSubscription } from '../../support/worlds/push.ts'
import { boot, type Booted } from '../../support/servers/server.ts'
import { newMember, type SignedInAccount } from '../../support/worlds/signed-in-account.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'

let server: Booted
beforeAll(async () => {
  server = await boot({}, { kinds: [] })
  // This test dispatches by itself.
  await server.sql`insert into delivery_kinds (kind, since) values ('push', now())`
  // Matching the words of some events takes too long, and so does looking up a user.
  await server.sql.unsafe(`
    alter function fold_text(text) rename to fast_fold_text;
    create function fold_text(content text) returns text
    language plpgsql as $$
    begin
      if content in ('slow ', 'slow user') then
        perform pg_sleep(10);
        raise exception 'Nothing cancelled it';
      end if;
      return fast_fold_text(content);
    end
    $$
  `)
})
afterAll(() => server[Symbol.asyncDispose]())

/** A tenant whose member has a device, and has muted the project. */
async function newMutedTenant(): Promise<TestTenant> {
  const tenant = await newTenant(server)
  await mute(tenant, tenant.account)
  return tenant
}

async function mute({ path }: TestTenant, account: SignedInAccount): Promise<void> {
  await insertSubscription(server, account)
  expect((await account.put(`${path}/notifications`, { state: 'mute' })).status).toBe(200)
}

/** Saves a search with a bell. Returns the id of the view. */
async function ring({ account, path }: TestTenant, q: string, isShared = false): Promise<string> {
  const { id } = (await account.post(`${path}/views`, { name: q, q, isShared })).body.data
  expect((await account.put(`${path}/views/${id}/bell`, { isOn: true })).status).toBe(200)
  return id
}

async function insertBelledViews(
  { projectId }: TestTenant,
  { uuid }: SignedInAccount,
  count: number,
  search = 'word',
): Promise<void> {
  await server.sql`
    with v as (
      insert into views (project_id, id, account_id, name, search, created_seq)
      select ${projectId}::uuid, gen_random_uuid(), ${uuid}::uuid, 'x', ${search}, 0
      from generate_series(1, ${count}::int)
      returning project_id, id, account_id
    )
    insert into view_bells (project_id, view_id, account_id)
    select project_id, id, account_id from v
  `
}

/** Dispatches all events of some projects at once. Returns the ids of those that are pushed. */
async function dispatch(...tenants: TestTenant[]): Promise<string[]> {
  const { sql } = server
  const projectIds = tenants.map(({ projectId }) => projectId)
  await ensureCursors(sql, { kind: 'push', projectIds })
  await dispatchPushes(sql, { projectIds, maxEvents: 500, lease: undefined })
  const pushed = await sql<{ event_id: string }[]>`
    select event_id from outbox where project_id = any(${toArray(projectIds)}::uuid[]) order by event_id
  `
  return pushed.map(({ event_id }) => toId('evt', event_id))
}

test('views of one organization that take too long do not keep another one from its pushes', async () => {
  const slow = await newMutedTenant()
  await insertBelledViews(slow, slow.account, 100)
  await slow.send({ title: 'slow' })
  const other = await newMutedTenant()
  await ring(other, 'refund')
  const { id } = await other.send({ title: 'A refund' })
  expect(await dispatch(slow, other)).toEqual([id])
})

test('a view whose search takes too long to read does not keep another one from its pushes', async () => {
  const slow = await newMutedTenant()
  await insertBelledViews(slow, slow.account, 1, 'user:"slow user"')
  await slow.send()
  const other = await newMutedTenant()
  await ring(other, 'refund')
  const { id } = await other.send({ title: 'A refund' })
  expect(await dispatch(slow, other)).toEqual([id])
})

test('a view of the beginning of a name notifies of events of all users who begin so', async () => {
  const tenant = await newMutedTenant()
  await tenant.identify('u1', [], { name: 'Ada' })
  await ring(tenant, 'user:ada')
  const found = [await tenant.send({ userId: 'u1' }), await tenant.send({ userId: 'adam' })]
  await tenant.send({ userId: 'bob' })
  expect(await dispatch(tenant)).toEqual(found.map(({ id }) => id))
})

test('an event that takes too long to match does not keep a view from the other events', async () => {
  const tenant = await newMutedTenant()
  await ring(tenant, 'refund')
  await tenant.send({ title: 'slow' })
  const { id } = await tenant.send({ title: 'A refund' })
  expect(await dispatch(tenant)).toEqual([id])
})

test('a view that is not shared any more keeps only the bell of its owner', async () => {
  const tenant = await newMutedTenant()
  const other = await newMember(server, tenant.organization, 'viewer')
  await mute(tenant, other)
  const id = await ring(tenant, 'refund', true)
  const bell = `${tenant.path}/views/${id}/bell`
  expect((await other.put(bell, { isOn: true })).status).toBe(200)
  expect((await other.put(`${tenant.path}/views/${id}/read`, { seq: 0 })).status).toBe(200)
  const unshared = await tenant.account.patch(`${tenant.path}/views/${id}`, { isShared: false })
  expect(unshared.body.data.hasBell).toBe(true)
  await tenant.send({ title: 'A refund' })
  expect(await dispatch(tenant)).toHaveLength(1)
  await tenant.account.patch(`${tenant.path}/views/${id}`, { isShared: true })
  const [shown] = (await other.get(`${tenant.path}/views`)).body.data.items
  expect([shown.hasBell, shown.newEvents]).toEqual([false, 1])
})

test('bells of former members neither count nor match', async () => {
  const tenant = await newMutedTenant()
  const { account, path, organization } = tenant
  const gone = await newMember(server, organization, 'member')
  await insertBelledViews(tenant, gone, 100)
  const { id } = (await account.post(`${path}/views`, { name: 'x', q: 'refund' })).body.data
  const bell = `${path}/views/${id}/bell`
  expect((await account.put(bell, { isOn: true })).status).toBe(409)
  await server.sql`delete from memberships where account_id = ${gone.uuid}`
  expect((await account.put(bell, { isOn: true })).status).toBe(200)
  // Each of their views would take too long.
  await tenant.send({ title: 'slow' })
  const refund = await tenant.send({ title: 'A refund' })
  expect(await dispatch(tenant)).toEqual([refund.id])
})
