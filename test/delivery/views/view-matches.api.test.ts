import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { createPool, type Pool } from '../../../src/database/pool.ts'
import { WORKER_SETTINGS } from '../../../src/database/session.ts'
import { toArray } from '../../../src/database/arrays.ts'
import { createViewMatcher } from '../../../src/delivery/views/view-matches.ts'
import { dispatchPushes } from '../../../src/delivery/push/dispatch.ts'
import { BACKLOG_FULL, dispatchWebhooks } from '../../../src/delivery/webhooks/dispatch.ts'
import { parseId, toId } from '../../../src/base/ids.ts'
import { insertSubscription } from '../../support/worlds/push.ts'
import { boot, type Booted } from '../../support/servers/server.ts'
import {
  newMember,
  newSession,
  type SignedInAccount,
} from '../../support/worlds/signed-in-account.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'
import { until } from '../../support/until.ts'

let server: Booted
let pool: Pool
let matcher: ReturnType<typeof createViewMatcher>
beforeAll(async () => {
  server = await boot({ egressAllowCidrs: ['127.0.0.0/8'] }, { kinds: [] })
  pool = createPool(server.databaseUrl, { name: 'deliver', max: 2, settings: WORKER_SETTINGS })
  matcher = createViewMatcher(pool)
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
afterAll(async () => {
  await pool.end()
  await server[Symbol.asyncDispose]()
})

// The events of one test would take the time of the next.
afterEach(async () => void (await server.sql`delete from bell_ranges`))

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
  await dispatchOnce(...tenants)
  while ((await matcher.run()).ranges > 0) continue
  return findPushed(...tenants)
}

async function dispatchOnce(...tenants: TestTenant[]): Promise<void> {
  const projectIds = tenants.map(({ projectId }) => projectId)
  await dispatchPushes(server.sql, { projectIds, maxEvents: 500, lease: undefined })
}

/** Matches events until `count` of a project are pushed. */
async function untilPushed(count: number, tenant: TestTenant): Promise<void> {
  await until(async () => {
    await matcher.run()
    return (await findPushed(tenant)).length >= count
  })
}

async function findPushed(...tenants: TestTenant[]): Promise<string[]> {
  const projectIds = tenants.map(({ projectId }) => projectId)
  const pushed = await server.sql<{ event_id: string }[]>`
    select event_id
    from outbox
    where project_id = any(${toArray(projectIds)}::uuid[]) and kind = 'push'
    order by event_id
  `
  return pushed.map(({ event_id }) => toId('evt', event_id))
}

test('views of organizations that take too long to match or to read keep no other from its pushes', async () => {
  const [slow, unread] = [await newMutedTenant(), await newMutedTenant()]
  await insertBelledViews(slow, slow.account, 100)
  await slow.send({ title: 'slow' })
  await insertBelledViews(unread, unread.account, 1, 'user:"slow user"')
  await unread.send()
  const other = await newMutedTenant()
  await ring(other, 'refund')
  const { id } = await other.send({ title: 'A refund' })
  await dispatchOnce(slow, unread, other)
  // Each organization has its turn.
  for (let turn = 0; turn < 3; turn++) await matcher.run()
  expect(await findPushed(slow, unread, other)).toEqual([id])
})

test('pushes of one organization that cannot be stored do not keep others from theirs', async () => {
  const refused = await newMutedTenant()
  const tenants = [refused, await newMutedTenant(), await newMutedTenant()]
  const sent: string[] = []
  for (const tenant of tenants) {
    await ring(tenant, 'refund')
    sent.push((await tenant.send({ title: 'A refund' })).id)
  }
  await server.sql.unsafe(`
    alter table view_pushes add constraint refused check (project_id <> '${refused.projectId}')
  `)
  await dispatchOnce(...tenants)
  await matcher.run()
  expect(await findPushed(...tenants)).toEqual(sent.slice(1))
  await server.sql`alter table view_pushes drop constraint refused`
  await untilPushed(1, refused)
})

test('a view of the beginning of a name notifies of events of all users who begin so', async () => {
  const tenant = await newMutedTenant()
  await tenant.identify('u1', [], { name: 'Ada' })
  await ring(tenant, 'user:ada')
  const found = [await tenant.send({ userId: 'u1' }), await tenant.send({ userId: 'adam' })]
  await tenant.send({ userId: 'bob' })
  expect(await dispatch(tenant)).toEqual(found.map(({ id }) => id))
})

test('a view whose search is not valid any more notifies of nothing', async () => {
  const tenant = await newMutedTenant()
  await insertBelledViews(tenant, tenant.account, 1, 'alike:"Paid #1"')
  await tenant.send({ title: 'Paid #1' })
  expect(await dispatch(tenant)).toEqual([])
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

test('no match is lost when matching fails or takes long, for many views and events', async () => {
  const tenant = await newMutedTenant()
  await ring(tenant, 'refund')
  await insertBelledViews(tenant, tenant.account, 2)
  const sent = []
  for (let n = 0; n < 3; n++) {
    await tenant.send({ title: n === 0 ? 'slow' : 'other' })
    sent.push(await tenant.send({ title: 'A refund' }))
    await dispatchOnce(tenant)
  }
  await untilPushed(sent.length, tenant)
  expect(await findPushed(tenant)).toEqual(sent.map(({ id }) => id))
  // The cause has gone. The events that could not be matched are matched after all.
  await server.sql`
    update events set title = 'word' where project_id = ${tenant.projectId} and title = 'slow'
  `
  await untilPushed(sent.length + 1, tenant)
})

test('only pushes that the dispatch has withheld are enqueued, whatever is muted since', async () => {
  const tenant = await newMutedTenant()
  const { account, path } = tenant
  const view = await ring(tenant, 'refund')
  const muted = await tenant.send({ title: 'A refund', level: 'critical' })
  await dispatchOnce(tenant)
  expect((await account.put(`${path}/notifications`, { state: 'on' })).status).toBe(200)
  await server.sql`
    update push_subscriptions set lets_critical_through = true where account_id = ${account.uuid}
  `
  expect(await dispatch(tenant)).toEqual([muted.id])
  const unmuted = await tenant.send({ title: 'A refund' })
  await dispatchOnce(tenant)
  // It is sent, and then the project is muted.
  await server.sql`delete from outbox where project_id = ${tenant.projectId}`
  expect((await account.put(`${path}/notifications`, { state: 'mute' })).status).toBe(200)
  expect(await dispatch(tenant)).not.toContain(unmuted.id)
  await tenant.send({ title: 'A refund', notify: false })
  expect(await dispatch(tenant)).toEqual([])
  expect((await account.put(`${path}/views/${view}/bell`, { isOn: false })).status).toBe(200)
  await tenant.send({ title: 'A refund' })
  expect(await dispatch(tenant)).toEqual([])
})

test('one process matches the ranges of an organization, and joins those that follow each other', async () => {
  const tenant = await newMutedTenant()
  await ring(tenant, 'refund')
  const sent: string[] = []
  for (let n = 0; n < 3; n++) {
    sent.push((await tenant.send({ title: 'A refund' })).id)
    await dispatchOnce(tenant)
  }
  // The first range to be taken is random.
  await server.sql`
    update bell_ranges set failures = 1 where from_seq > (select min(from_seq) from bell_ranges)
  `
  const others = [1, 2].map(() => createViewMatcher(pool))
  const handled = await Promise.all([matcher, ...others].map(one => one.run()))
  expect(handled.reduce((sum, { ranges }) => sum + ranges, 0)).toBe(1)
  expect(await findPushed(tenant)).toEqual(sent)
})

test('a dispatch and the bells of the same project never deadlock', async () => {
  const tenant = await newMutedTenant()
  await ring(tenant, 'refund')
  for (let n = 0; n < 12; n++) await tenant.send({ title: 'A refund' })
  // The account has a burst now, which both lock.
  await dispatch(tenant)
  let isOver = false
  const matching = (async () => {
    while (!isOver) await matcher.run()
  })()
  try {
    for (let n = 0; n < 40; n++) {
      await tenant.send({ title: 'A refund' })
      await dispatchOnce(tenant)
    }
  } finally {
    isOver = true
    await matching
  }
})

test('a burst counts an event once for an account whose devices subscribed at different times', async () => {
  const tenant = await newMutedTenant()
  await ring(tenant, 'refund')
  const send = async () => {
    for (let n = 0; n < 6; n++) await tenant.send({ title: 'A refund' })
  }
  await send()
  await insertSubscription(server, await newSession(server, tenant.account))
  await send()
  // The last one is the summary.
  expect(new Set(await dispatch(tenant)).size).toBe(11)
  const [burst] = await server.sql`
    select cardinality(recent) as recent, collapsed
    from push_bursts
    where project_id = ${tenant.projectId}
  `
  expect(burst).toEqual({ recent: 10, collapsed: 2 })
})

/** Creates a webhook with a shared view. Returns its uuid. */
async function hook(
  { account, path }: TestTenant,
  q: string,
  fields: object = {},
): Promise<{ id: string; uuid: string; viewId: string }> {
  const { id: viewId } = (await account.post(`${path}/views`, { name: q, q, isShared: true })).body
    .data
  const url = 'http://127.0.0.1:9001'
  const { id } = (await account.post(`${path}/webhooks`, { url, viewId, ...fields })).body.data
  return { id, uuid: parseId('whk', id) ?? '', viewId }
}

async function dispatchHooks({ projectId }: TestTenant): Promise<boolean> {
  let hasViews = false
  const request = { projectIds: [projectId], maxEvents: 500, lease: undefined }
  await dispatchWebhooks(server.sql, request, () => (hasViews = true))
  return hasViews
}

/** Returns the events that each webhook of a project gets. */
async function listHooked({ projectId }: TestTenant): Promise<[string, string][]> {
  const rows = await server.sql<{ event_id: string; target_id: string }[]>`
    select event_id, target_id from outbox where project_id = ${projectId} and kind = 'webhook' order by event_id, target_id
  `
  return rows.map(one => [toId('evt', one.event_id), one.target_id])
}

test('a webhook with a view gets the events of its channels that the view finds, without records of others', async () => {
  const tenant = await newTenant(server)
  await tenant.send({ title: 'A refund' })
  await tenant.send({ title: 'A refund', channelName: 'other' })
  const [channel] = (await tenant.account.get(`${tenant.path}/channels`)).body.data.items.filter(
    ({ slug }: { slug: string }) => slug === 'other',
  )
  const some = await hook(tenant, 'refund', { channels: [channel.id] })
  const full = await hook(tenant, 'refund #1')
  await server.sql`update webhooks set backlog_full_at = now() where id = ${full.uuid}`
  const disabled = await hook(tenant, 'refund #2')
  await tenant.account.post(`${tenant.path}/webhooks/${disabled.id}/disable`)
  const { uuid: plain } = await hook(tenant, 'word', { viewId: null })
  await tenant.send({ title: 'other' })
  await tenant.send({ title: 'A refund' })
  const found = await tenant.send({ title: 'A refund #1 #2', channelName: 'other' })
  expect(await dispatchHooks(tenant)).toBe(true)
  expect((await listHooked(tenant)).map(([, target]) => target)).toEqual([plain, plain, plain])
  await matcher.run()
  const hooked = (await listHooked(tenant)).filter(([, target]) => target !== plain)
  expect(hooked).toEqual([[found.id, some.uuid]])
  const records = await server.sql`
    select event_id, target_id, reason from deliveries where project_id = ${tenant.projectId}
  `
  expect([...records]).toEqual([
    { event_id: parseId('evt', found.id), target_id: full.uuid, reason: BACKLOG_FULL },
  ])
})

test('only projects with a view of a webhook have ranges of their own', async () => {
  const tenant = await newMutedTenant()
  await ring(tenant, 'refund')
  await hook(tenant, 'refund', { viewId: null })
  await tenant.send({ title: 'A refund' })
  expect(await dispatchHooks(tenant)).toBe(false)
  const ranges = await server.sql`select from bell_ranges where project_id = ${tenant.projectId}`
  expect(ranges.count).toBe(0)
})

test('no event is lost to a webhook when the view of another one fails', async () => {
  const tenant = await newTenant(server)
  const { uuid } = await hook(tenant, 'refund')
  const slow = await hook(tenant, 'word')
  const sent: [string, string][] = []
  for (const title of ['slow', 'A refund', 'other', 'A refund']) {
    const { id } = await tenant.send({ title })
    if (title === 'A refund') sent.push([id, uuid])
  }
  await dispatchHooks(tenant)
  await until(async () => {
    await matcher.run()
    return (await listHooked(tenant)).length >= sent.length
  })
  expect(await listHooked(tenant)).toEqual(sent)
  await server.sql`
    update events set title = 'word' where project_id = ${tenant.projectId} and title = 'slow'
  `
  await until(async () => {
    await matcher.run()
    return (await listHooked(tenant)).some(([, target]) => target === slow.uuid)
  })
})

test('an event that a webhook had before its view finds it is not sent again', async () => {
  const tenant = await newTenant(server)
  const { uuid } = await hook(tenant, 'refund')
  const { id } = await tenant.send({ title: 'A refund' })
  await dispatchHooks(tenant)
  // A recovery was faster.
  await server.sql`
    insert into deliveries (project_id, event_id, kind, target_id, state)
    values (${tenant.projectId}, ${parseId('evt', id) ?? ''}, 'webhook', ${uuid}, 'delivered')
  `
  await matcher.run()
  expect(await listHooked(tenant)).toEqual([])
})

test('a recovery of a webhook with a view sends only what the view finds', async () => {
  const tenant = await newTenant(server)
  const { id, uuid } = await hook(tenant, 'refund')
  await tenant.send({ title: 'other' })
  const found = await tenant.send({ title: 'A refund' })
  const since = new Date(Date.now() - 60_000).toISOString()
  const recover = () => tenant.account.post(`${tenant.path}/webhooks/${id}/recover`, { since })
  expect((await recover()).body.data).toEqual({ events: 1, nextCursor: null })
  expect(await listHooked(tenant)).toEqual([[found.id, uuid]])
  // A search of a former version that nobody can evaluate.
  await server.sql`update views set search = 'alike:x' where project_id = ${tenant.projectId}`
  expect((await recover()).body.data).toEqual({ events: 0, nextCursor: null })
  // Servers of 0.3.0 do not know that a webhook uses it.
  await server.sql`delete from views where project_id = ${tenant.projectId}`
  expect((await recover()).body.data).toEqual({ events: 0, nextCursor: null })
})
