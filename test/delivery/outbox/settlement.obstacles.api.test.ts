import { afterAll, beforeAll, expect, test } from 'bun:test'
import { newId, parseId } from '../../../src/base/ids.ts'
import { toArray } from '../../../src/database/arrays.ts'
import { WORKER_SETTINGS } from '../../../src/database/session.ts'
import { createPool, type Pool } from '../../../src/database/pool.ts'
import { sqlState } from '../../../src/database/sql.ts'
import { startOutbox } from '../../../src/delivery/outbox/outbox.ts'
import { createSettler } from '../../../src/delivery/outbox/settler.ts'
import { createPushKind } from '../../../src/delivery/push/sender.ts'
import { createPushClient } from '../../../src/delivery/push/encrypt-and-send.ts'
import { createWebhookKind } from '../../../src/delivery/webhooks/sender.ts'
import { newSigningSecret } from '../../../src/delivery/webhooks/signing.ts'
import { createEgress } from '../../../src/http/egress/egress.ts'
import { toSite } from '../../../src/http/site.ts'
import { insertReceivingWebhook } from '../../faults/webhook-receiver.ts'
import { hold, type DatabaseLock } from '../../support/database-lock.ts'
import { startReceiver, type Receiver } from '../../support/servers/receiver.ts'
import { startPushService } from '../../support/servers/push-service.ts'
import { boot, type Booted } from '../../support/servers/server.ts'
import { testSecrets } from '../../support/secret.ts'
import { until } from '../../support/until.ts'
import { appendEvents, openDeliveries, type Deliveries } from '../../support/worlds/deliveries.ts'
import { createTestKind } from '../../support/worlds/delivery-kind.ts'
import { insertSubscription } from '../../support/worlds/push.ts'
import { newMember } from '../../support/worlds/signed-in-account.ts'
import { newTenant } from '../../support/worlds/tenant.ts'
import { createWebhooks } from '../../support/worlds/webhooks.ts'

let server: Booted
let webhooks: ReturnType<typeof createWebhooks>
let receiver: Receiver
beforeAll(async () => {
  server = await boot({ egressAllowCidrs: ['127.0.0.0/8'] }, { kinds: [] })
  webhooks = createWebhooks(server)
  receiver = await startReceiver()
})
afterAll(async () => {
  await receiver.close()
  await webhooks.close()
  await server[Symbol.asyncDispose]()
})

/** Returns a pool that notes why its work has failed. */
function watch(pool: Pool, states: Set<string | undefined>): Pool {
  return Object.create(pool, {
    run: {
      value: (work: Parameters<Pool['run']>[0]) =>
        pool.run(work).catch((error: unknown) => {
          states.add(sqlState(error))
          throw error
        }),
    },
  }) as Pool
}

/** Marks the events of a project as dispatched, so that no delivery is made again after its end. */
async function skipDispatch(kind: string, projectId: string): Promise<void> {
  await server.sql`
    insert into delivery_cursors (project_id, kind, seq)
    select project_id, ${kind}, last_seq from event_logs where project_id = ${projectId}
    on conflict (project_id, kind) do update set seq = excluded.seq
  `
}

/** Obstacles of this server, with the lock that each needs before or during the requests. */
const OBSTACLES = {
  'webhooks that cannot be read': { lock: 'webhooks in access exclusive mode' },
  'devices that cannot be read': { lock: 'push_subscriptions in access exclusive mode' },
  'an outbox that stores no outcome': { lock: 'outbox in exclusive mode' },
  'locked webhooks': { lock: 'webhooks in row exclusive mode; select from webhooks for update' },
  'few connections': { lock: undefined },
  'a pause of the process': { lock: undefined },
}

test.each(Object.keys(OBSTACLES) as (keyof typeof OBSTACLES)[])(
  'delivery: %s spend no attempt, and neither end nor double one of many deliveries',
  obstacle => meet(obstacle, 300, 16),
)

async function meet(obstacle: keyof typeof OBSTACLES, count: number, targets: number) {
  const { sql } = server
  const isPush = obstacle === 'devices that cannot be read'
  const name = isPush ? 'push' : 'webhook'
  const tenant = await newTenant(server)
  const { projectId } = tenant
  await using service = await startPushService()
  const first = Promise.withResolvers<void>()
  const path = `/${crypto.randomUUID()}`
  receiver.script(path, async () => {
    first.resolve()
    await released.promise
    return { status: 200 }
  })
  const released = Promise.withResolvers<void>()
  const uuids: string[] = []
  const browsers: ReturnType<typeof service.subscribe>[] = []
  for (let made = 0; made < (isPush ? Math.min(targets, 4) : targets); made++) {
    const { uuid } = newId('whk')
    const browser = service.subscribe()
    browsers.push(browser)
    const ids = { projectId, uuid, url: `${receiver.url}${path}`, secret: newSigningSecret() }
    if (!isPush) await insertReceivingWebhook(sql, testSecrets(), ids)
    const member = isPush && (await newMember(server, tenant.organization, 'viewer'))
    const device = member && (await insertSubscription(server, member, browser))
    uuids.push(device ? (parseId('psh', device) ?? '') : uuid)
  }
  const events = await appendEvents(sql, projectId, Math.ceil(count / uuids.length))
  const pairs = events.flatMap(id => uuids.map(uuid => [id, uuid])).slice(0, count)
  // Another failed attempt would be the last.
  await sql`
    insert into outbox (project_id, event_id, kind, target_id, attempts)
    select ${projectId}, p.event_id, ${name}, p.target_id, 9
    from unnest(
        ${toArray(pairs.map(([id]) => id!))}::uuid[], ${toArray(pairs.map(([, uuid]) => uuid!))}::uuid[]
      ) as p (event_id, target_id)
  `
  await skipDispatch(name, projectId)

  const states = new Set<string | undefined>()
  const settings = { ...WORKER_SETTINGS, lock_timeout: 3_000 }
  const own = createPool(server.databaseUrl, { name: 'worker', max: 4, settings })
  const pool = watch(own, states)
  const perHost = obstacle === 'few connections' ? 1 : 32
  const egress = createEgress({ allowCidrs: ['127.0.0.0/8'], ca: service.ca, perHost })
  const parts = { pool, egress, secrets: testSecrets(), vapidSubject: 'mailto:ops@example.com' }
  const push = { ...parts, pushHosts: [service.host] }
  const kind = isPush
    ? createPushKind({ ...push, pushClient: createPushClient(push), site: toSite(server.url) })
    : createWebhookKind(parts)
  const { lock } = OBSTACLES[obstacle]
  const lockNow = () => hold(sql, tx => tx.unsafe(`lock table ${lock}`).simple())
  const isLate = obstacle === 'an outbox that stores no outcome' || obstacle === 'locked webhooks'
  if (!isLate) released.resolve()
  let held = lock && !isLate ? await lockNow() : undefined
  let begun = 0
  const send: typeof kind.send = (attempt, signal) => {
    if (begun++ === 0 && obstacle === 'a pause of the process')
      setImmediate(() => Bun.sleepSync(3_000))
    return kind.send(attempt, signal)
  }
  // A clock that began with the claim would end attempts that wait.
  const outbox = await startOutbox({ pool, kinds: [{ ...kind, send, timeoutMs: 300 }] })
  if (lock && isLate) {
    await first.promise
    held = await lockNow()
    released.resolve()
  }
  if (held) await until(() => states.has('55P03'))
  await held?.release()
  const countEnds = () => sql<{ state: string; attempts: number; n: number }[]>`
    select state, attempts, count(*)::int as n from deliveries
    where project_id = ${projectId} and target_id is not null group by 1, 2
  `
  await until(async () => (await countEnds()).reduce((sum, { n }) => sum + n, 0) === count)
  expect([...(await countEnds())]).toEqual([{ state: 'delivered', attempts: 10, n: count }])
  const sent = isPush
    ? browsers.flatMap(service.of).length
    : receiver.received.filter(one => one.path === path).length
  expect(sent).toBe(count)
  await outbox.stop()
  egress.close()
  await own.end()
}

/**
 * Returns `count` deliveries in flight, and a settler for them. `onError` is called before the pool
 * reports an error.
 */
async function newSettler(count: number, onError?: () => Promise<void>) {
  const { organization } = await webhooks.create(receiver.url)
  const projectId = organization.project.uuid
  const token = crypto.randomUUID()
  const rows = await server.sql<{ id: string }[]>`
    insert into outbox (project_id, event_id, kind, target_id, token, available_at)
    select ${projectId}, gen_random_uuid(), 'webhook', gen_random_uuid(), ${token}, now() + interval '10 minutes'
    from generate_series(1, ${count}::int)
    returning id
  `
  const settings = { ...WORKER_SETTINGS, lock_timeout: 300 }
  const own = createPool(server.databaseUrl, { name: 'worker', max: 1, settings })
  const codes = new Set<string | undefined>()
  const [stored, lost] = [[] as string[], [] as string[]]
  let statements = 0
  const run = (work: Parameters<Pool['run']>[0]) => {
    statements++
    return own.run(work).catch(async (error: { code?: string }) => {
      codes.add(error.code)
      await onError?.()
      throw error
    })
  }
  const settler = createSettler({
    pool: Object.create(own, { run: { value: run } }) as Pool,
    onSettled(batch, gone) {
      for (const { id } of batch) (gone.has(id) ? lost : stored).push(id)
    },
  })
  return {
    ...{ projectId, codes, stored, lost },
    ids: rows.map(({ id }) => id),
    /** Adds the outcome of an attempt. */
    end: (id: string, state: 'delivered' | 'failed' = 'delivered') =>
      settler.add({ id, token }, { state, attempts: 1, delayMs: null, reason: null, latencyMs: 1 }),
    drain: (ms: number) => settler.drain(performance.now() + ms),
    countStatements: () => statements,
    [Symbol.asyncDispose]: () => own.end(),
  }
}

test('delivery: a lock that meets the outcomes of a refused batch loses none of them', async () => {
  let held: DatabaseLock | undefined
  await using one = await newSettler(2, async () => {
    held ??= await hold(
      server.sql,
      tx => tx`select from outbox where id = ${one.ids[1]!} for update`,
    )
  })
  const [refused = '', locked = ''] = one.ids
  // A state that the table does not have.
  one.end(refused, 'unknown' as 'failed')
  one.end(locked)
  await until(() => one.lost.length > 0)
  expect([...one.codes]).toEqual(['23514'])
  await held?.release()
  await until(() => one.stored.length > 0)
  expect([one.stored, one.lost]).toEqual([[locked], [refused]])
  await one.drain(1_000)
})

test.each(['40P01', '40001', '40003'])(
  'delivery: outcomes whose transaction ends with %s are stored again',
  async code => {
    await server.sql.unsafe(`
      create or replace function fail_settlement() returns trigger language plpgsql as $$
      begin raise exception 'A conflict' using errcode = '${code}'; end $$;
      create trigger fail_settlement before delete on outbox for each row execute function fail_settlement();
    `)
    await using one = await newSettler(2)
    for (const id of one.ids) one.end(id)
    await until(() => one.codes.has(code))
    await server.sql`drop trigger fail_settlement on outbox`
    await until(() => one.stored.length + one.lost.length === 2)
    expect([[...one.codes], one.lost]).toEqual([[code], []])
    await one.drain(1_000)
  },
)

test('delivery: many locked outcomes are held back together, and a drain ends', async () => {
  await using one = await newSettler(201)
  const [free = ''] = one.ids
  await using _ = await hold(
    server.sql,
    tx => tx`select from outbox where project_id = ${one.projectId} and id <> ${free} for update`,
  )
  for (const id of one.ids) one.end(id)
  await until(() => one.stored.length === 1)
  await one.drain(1_000)
  expect(one.stored).toEqual([free])
  expect(one.countStatements()).toBeLessThan(20)
})

test('delivery: a slow database stores outcomes, also one that was locked', async () => {
  await using one = await newSettler(2)
  await server.sql.unsafe(`
    create function slow_settlement() returns trigger language plpgsql as $$
    begin perform pg_sleep(1.1); return null; end $$;
    create trigger slow_settlement before delete on outbox execute function slow_settlement();
  `)
  const held = await hold(
    server.sql,
    tx => tx`select from outbox where id = ${one.ids[0]!} for update`,
  )
  for (const id of one.ids) one.end(id)
  await until(() => one.stored.length === 1)
  await held.release()
  await until(() => one.stored.length === 2)
  expect([...one.codes]).toEqual([])
  await server.sql`drop trigger slow_settlement on outbox`
})

/** Starts an outbox whose attempts wait for the test, with `count` deliveries in flight. */
async function startHeld(
  own: Deliveries,
  count: number,
  { timeoutMs, leaseMs }: { timeoutMs: number; leaseMs: number },
) {
  const sent = new Map<string, { signal: AbortSignal; answer(): void }>()
  let attempts = 0
  const outbox = await own.start(
    createTestKind({
      timeoutMs,
      leaseMs,
      send: ({ eventId }, signal) =>
        new Promise(resolve => {
          attempts++
          sent.set(eventId, { signal, answer: () => resolve({ kind: 'done' }) })
        }),
    }),
  )
  const { projectId } = await own.newTarget()
  const append = async (of: number) => {
    const before = sent.size
    const eventIds = await own.append(projectId, of)
    outbox.wake([projectId])
    await until(() => sent.size === before + of)
    return eventIds
  }
  const [first = '', ...others] = await append(count)
  return {
    first,
    others,
    append,
    isAborted: (eventId: string) => sent.get(eventId)?.signal.aborted,
    answer: (eventIds: string[]) => eventIds.forEach(id => sent.get(id)?.answer()),
    attempts: () => attempts,
    ended: async () => (await own.ended(projectId)).map(({ event_id }) => event_id).toSorted(),
    lockFirst: () =>
      hold(own.sql, tx => tx`select from outbox where event_id = ${first} for update`),
  }
}

test('delivery: a row that another transaction locks lets no other lease end', async () => {
  await using own = await openDeliveries()
  const held = await startHeld(own, 2, { timeoutMs: 10_000, leaseMs: 15_001 })
  const [other = ''] = held.others
  await using lock = await held.lockFirst()
  const readEnd = async () => {
    const [row] = await own.sql<[{ at: string }]>`
      select available_at::text as at from outbox where event_id = ${other}
    `
    return row.at
  }
  const before = await readEnd()
  await until(async () => (await readEnd()) > before)
  expect([held.first, other].map(held.isAborted)).toEqual([false, false])
  await lock.release()
  held.answer([held.first, other])
  await until(async () => (await held.ended()).length === 2)
  expect(held.attempts()).toBe(2)
})

test('delivery: a row that another transaction locks holds up no outcome of the others', async () => {
  await using own = await openDeliveries()
  const held = await startHeld(own, 3, { timeoutMs: 60_000, leaseMs: 90_000 })
  await using lock = await held.lockFirst()
  held.answer([held.first, ...held.others])
  await until(async () => (await held.ended()).length === 2)
  expect(await held.ended()).toEqual(held.others.toSorted())
  // Those that end later do not wait for it, either.
  const later = await held.append(2)
  held.answer(later)
  await until(async () => (await held.ended()).length === 4)
  expect(await held.ended()).toEqual([...held.others, ...later].toSorted())
  await lock.release()
  await until(async () => (await held.ended()).length === 5)
  expect(held.attempts()).toBe(5)
})
