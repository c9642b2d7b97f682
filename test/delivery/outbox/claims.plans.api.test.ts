import { afterAll, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { SERVER } from '../../../src/access/audit/audit.ts'
import { toId } from '../../../src/base/ids.ts'
import { toArray } from '../../../src/database/arrays.ts'
import { WORKER_SETTINGS } from '../../../src/database/session.ts'
import type { Sql } from '../../../src/database/sql.ts'
import {
  claimDeliveries,
  extendLeases,
  findWaitingTargets,
} from '../../../src/delivery/outbox/claims.ts'
import {
  listDeadLetters,
  listEventDeliveries,
  listPendingDeliveries,
} from '../../../src/delivery/outbox/deliveries.ts'
import { enqueueDeliveries, replayDeadLetter } from '../../../src/delivery/outbox/enqueue.ts'
import type { Settlement } from '../../../src/delivery/outbox/settlement.ts'
import { settleDeliveries } from '../../../src/delivery/outbox/settler.ts'
import { forgetTargets, pauseTarget, resumeTarget } from '../../../src/delivery/outbox/targets.ts'
import { dispatchPushes } from '../../../src/delivery/push/dispatch.ts'
import { countWithheld } from '../../../src/delivery/push/quiet-summary.ts'
import { listAttempts } from '../../../src/delivery/webhooks/attempts.ts'
import { dispatchWebhooks } from '../../../src/delivery/webhooks/dispatch.ts'
import { recoverEvents } from '../../../src/delivery/webhooks/recovery.ts'
import { getProjectChannel, listChannels } from '../../../src/log/channels/channels.ts'
import { getUnread } from '../../../src/log/channels/unread.ts'
import { appendRows, number } from '../../../src/log/events/append-statement.ts'
import { toNewEvent } from '../../../src/log/events/new-event.ts'
import { getUserJson, listReferences } from '../../../src/log/identities/users.ts'
import {
  COUNT,
  countRows,
  FILL_MANY,
  fillProject,
  stopAutovacuum,
} from '../../support/row-counts.ts'
import { cloneDatabase, closeCluster } from '../../support/servers/postgres.ts'
import { openSql } from '../../support/sql.ts'

afterAll(closeCluster)

const PROJECT = '00000000-0000-7000-8000-000000000001'
const EMPTY = '00000000-0000-7000-8000-000000000009'
const OTHER = '00000000-0000-7000-8000-000000000002'
const NIL = '00000000-0000-0000-0000-000000000000'
/** The most rows that a statement may read of a table. Each works on about ten. */
const MOST = 150
/** For one page of a small project, all of its rows may be read and sorted. */
const SMALL_PROJECT = COUNT + 200

const eventOf = (n: number) => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`

const CHANNEL = '00000000-0000-7000-8001-000000000003'
/** A channel whose first events have expired. */
const OLD_CHANNEL = '00000000-0000-7000-8001-000000000005'
const webhookOf = (n: number) => String(n).padStart(8, '0') + PROJECT.slice(8)

/** A stored response, as an SQL expression. */
const BODY = `'{"success":true,"data":{"id":"evt_1","seq":1,"channelId":"chn_1","channelName":"c","userId":"user-'
  || n % 500 + 1 || '","timestamp":"2026-01-01T00:00:00Z","createdAt":"2026-01-01T00:00:00Z","source":"api",'
  || '"notify":true},"requestId":"r"}'`

/** Statements that fill a project with `COUNT` rows in each table. */
const fill = (project: string) => `
  ${fillProject(project)}
  ${fillTables(`= '${project}'`, COUNT)}
  update events set created_at = now() - interval '400 days'
    where project_id = '${project}' and channel_id = '${OLD_CHANNEL}' and seq < 400;
  update channels set keep_days = 365 where project_id = '${project}' and id = '${OLD_CHANNEL}';
`

/** Statements that make many projects with one row in each table. */
const FILL_ALL_OF_MANY = `
  ${FILL_MANY}
  insert into identities (project_id, user_id, id, public_id, properties, created_at, updated_at)
    select id, 'user', id, 'idn_' || id, '{}', now(), now() from projects;
  insert into aliases (project_id, alias, user_id, created_at) select id, '@user', 'user', now() from projects;
  ${fillTables('is not null', 1)}
`

/** Fills the tables beside the log: `count` rows for each project, of at most 20 webhooks. */
function fillTables(which: string, count: number): string {
  const rows = (most: number) =>
    `from projects p cross join generate_series(1, ${Math.min(count, most)}) as n where p.id ${which}`
  const events = `from events e where e.project_id ${which}`
  const id = (kind: string) => `md5(e.project_id || '${kind}' || e.seq)::uuid`
  const own = (kind: string) => `md5(p.id || '${kind}' || n)::uuid`
  /** The id of a webhook, as `webhookOf` returns it. */
  const toWebhook = (project: string, n: string | number) =>
    `(lpad('' || ${n}, 8, '0') || substr(${project}::text, 9))::uuid`
  const webhook = (n: number) => toWebhook('e.project_id', Math.min(n, count))
  return `
    insert into webhooks (project_id, id, name, url, host, preset, has_all_channels, secret)
      select p.id, ${toWebhook('p.id', 'n')}, 'w', 'u', 'h', 'standard', n > 1 or ${count} = 1, 's' ${rows(20)};
    insert into idempotency_keys (project_id, key, fingerprint, status, user_id, other_names, seq, body, expires_at)
      select p.id, 'old-' || n, '\\x01', 201, 'user-' || n % 500 + 1, '{a}', n, ${BODY}, now() + n * interval '10 s'
      ${rows(COUNT)};
    insert into outbox (id, project_id, event_id, kind, target_id, available_at)
      select ${id('o')}, e.project_id, e.id, 'webhook', ${webhook(1)}, now() + (e.seq - 100) * interval '1 minute' ${events};
    insert into deliveries (project_id, event_id, kind, target_id, state)
      select e.project_id, e.id, 'webhook', ${webhook(2)}, 'delivered' ${events};
    insert into dead_letters (id, project_id, event_id, kind, target_id, attempts, reason)
      select ${id('d')}, e.project_id, e.id, 'webhook', ${webhook(3)}, 10, '' ${events};
    insert into withheld_deliveries (project_id, event_id, kind, reason, target_ids)
      select e.project_id, e.id, 'push', '', '{}' ${events};
    insert into threads (
      project_id, thread_seq, channel_id, key, last_seq, state, severity, count, opened_at, updated_at, loud_seq, storm_seq
    )
      select e.project_id, e.seq, e.channel_id, e.seq, e.seq, 3, 3, 1, now(), now(), e.seq, e.seq % 2 ${events};
    insert into silences (project_id, id, reason, created_at, starts_at, ends_at)
      select p.id, ${own('s')}, 'over', now() - interval '2 days', now() - interval '2 days', now() - interval '1 day' ${rows(20)};
    insert into webhook_attempts (
      project_id, id, webhook_id, event_id, kind, number, outcome, status, reason, latency_ms, started_at, host,
      preset, body_hash
    )
      select
        e.project_id, ${id('a')}, ${webhook(2)}, e.id, 'event.created', 1, 'delivered', 200, '', 1, now(), 'h',
        'standard', decode(repeat('01', 32), 'hex') ${events};
    insert into delivery_cursors (project_id, kind, seq)
      select p.id, k, ${count} from projects p cross join unnest('{webhook,push}'::text[]) as k where p.id ${which};
    insert into api_keys (id, organization_id, project_id, name, hash, last_four, scopes, rate_limit)
      select ${own('k')}, p.id, p.id, 'k', ${keyHash('p.id::text || n')}, '1234', '{}', 1000 ${rows(COUNT)};
    insert into rate_windows (key_id, used, started_at) select id, 1, now() from api_keys where project_id ${which};
    insert into alias_changes (project_id, user_id, at, alias, change, other)
      select p.id, 'user-' || n % 500 + 1, now(), '@former-' || n, 'moved to', 'user-' || n % 499 + 1 ${rows(COUNT)};
    with begun as (
      insert into erasures (id, project_id, user_id, stage, last_seq, last_change)
        select ${own('r')}, p.id, 'erased-' || n, 'names', 0, n ${rows(COUNT)}
        returning id, user_id, project_id
    ), listed as (
      insert into erased_users (id, project_id, erased_at) select id, project_id, now() from begun
    )
    insert into erasure_names (project_id, erasure_id, user_id, name)
      select project_id, id, user_id, user_id from begun;
    insert into accounts (id, name, email) select ${own('p')}, 'a', p.id || '-' || n ${rows(COUNT)};
    insert into sessions (id, hash, account_id, is_installed, method, address, user_agent)
      select ${own('p')}, sha256(${own('p')}::text::bytea), ${own('p')}, false, 'password', '', '' ${rows(COUNT)};
    insert into push_subscriptions (id, account_id, session_id, endpoint_hash, address, host, label)
      select ${own('p')}, ${own('p')}, ${own('p')}, sha256(${own('p')}::text::bytea), '', 'h', '' ${rows(COUNT)};
    insert into memberships (organization_id, account_id, role) select p.id, ${own('p')}, 'member' ${rows(10)};
    insert into quiet_pushes (project_id, event_id, target_id, is_summary)
      select e.project_id, e.id, d.id, false
      from events e join push_subscriptions d on d.id = md5(e.project_id || 'p' || 1 + e.seq % 100)::uuid
      where e.project_id ${which};
  `
}

/** The statement of a key's hash, of an SQL expression. */
function keyHash(token: string): string {
  return `sha256((${token})::bytea)`
}

interface World {
  /** A connection with the settings of the API, and one with those of the worker. */
  api: Sql
  worker: Sql
  /** The number of the round, from 0. */
  round: number
}

interface Work {
  name: string
  run(world: World): PromiseLike<unknown>
  /** The most rows of each table that it may read. */
  most: number
  /** The same before the first analysis of the tables. */
  unanalyzed: number
}

const work = (name: string, run: Work['run'], most = MOST, unanalyzed = most): Work => ({
  ...{ name, run, most, unanalyzed },
})

async function identify(sql: Sql, names: readonly string[], keys: readonly (string | null)[]) {
  await sql`
    select ord, outcome
    from write_identities(
      ${toArray(names.map(() => PROJECT))}::uuid[], ${toArray(names)}::text[],
      ${toArray(names.map(() => randomUUID()))}::uuid[], ${toArray(names.map(name => `idn_${name}`))}::text[],
      ${toArray(names.map(() => '{"a":1}'))}::json[],
      ${toArray(names.map(name => JSON.stringify([`new-${name}`, '@user-9', 'user-8'])))}::json[],
      ${toArray(keys)}::text[], ${toArray(names.map(() => '\\x01'))}::bytea[], ${toArray(names.map(() => '}'))}::text[]
    )
  `
}

const ENDED: Settlement = {
  ...{ state: 'delivered', attempts: 1, delayMs: null, reason: null, latencyMs: 1 },
}
const WAITING: Settlement = { ...ENDED, state: null, attempts: 0, delayMs: 60_000 }

/** Claims five deliveries of the first webhook, and settles them. */
async function deliver({ worker: sql }: World, settlement: Settlement): Promise<void> {
  const requests = [{ targetId: webhookOf(1), room: 5, dueAt: '-infinity' }]
  const leases = await claimDeliveries(sql, {
    ...{ kind: 'webhook', requests, maxDeliveries: 5, leaseMs: 30_000 },
  })
  await extendLeases(sql, { leases, leaseMs: 30_000 })
  await settleDeliveries(
    sql,
    leases.map(lease => ({ ...lease, ...settlement })),
  )
}

const view = { projectId: PROJECT, kinds: [] }
const reader = { projectId: PROJECT, accountId: NIL }
const editor = { actor: SERVER, organizationId: PROJECT, projectId: PROJECT }
const target = (targetId: string) => ({ kind: 'webhook', projectId: PROJECT, targetId }) as const
const ignore = () => {}

const WORK: Work[] = [
  work('an event in a known channel', ({ api }) => {
    const event = toNewEvent({ channelName: 'Channel 3', title: 'one', userId: '@user-1' })
    const unset = { claim: undefined, admission: undefined }
    return appendRows(api, {
      jobs: [{ projectId: PROJECT, event, requestId: 'r', ...unset }],
      channels: [{ uuid: CHANNEL, id: 'chn_3', name: 'c' }],
      ...{ projects: number([PROJECT]), keys: number([]) },
    })
  }),
  work('an identify of known and new users', ({ api, round }) =>
    identify(api, ['user-3', `other-${round}`], [null, `user-${round}`]),
  ),
  work('a repeated identify', ({ api }) => identify(api, ['user-3'], ['old-9'])),
  work('the deletion of expired keys', ({ worker }) => worker`select delete_expired_keys(10)`),
  work('channels', ({ api }) => listChannels(api, PROJECT, { limit: 10 }), SMALL_PROJECT),
  work('a channel', ({ api }) => getProjectChannel(api, reader, toId('chn', CHANNEL))),
  work('unread counts', ({ api }) => getUnread(api, reader, [CHANNEL]), 400),
  work('a user by an alias', ({ api }) => getUserJson(api, PROJECT, '@user-7')),
  work('the names of a user', ({ api }) => listReferences(api, PROJECT, '@user-7')),
  work(
    'pending deliveries',
    ({ api }) => listPendingDeliveries(api, { ...view, query: { limit: 10 } }),
    SMALL_PROJECT,
  ),
  work(
    'dead letters',
    ({ api }) => listDeadLetters(api, { ...view, query: { limit: 10 } }),
    SMALL_PROJECT,
  ),
  work('the deliveries of an event', ({ api }) =>
    listEventDeliveries(api, { ...view, eventId: eventOf(7), query: {} }),
  ),
  work(
    'the attempts of a webhook',
    ({ api }) =>
      listAttempts(api, { projectId: PROJECT, id: toId('whk', webhookOf(2)) }, { limit: 10 }),
    SMALL_PROJECT,
  ),
  work(
    'a scan for targets',
    ({ worker }) => findWaitingTargets(worker, { kind: 'webhook', after: NIL, floor: null }),
    // Each of many projects has one.
    1_700,
  ),
  work('deliveries that end', world => deliver(world, ENDED)),
  work('deliveries that are given up', world => deliver(world, { ...ENDED, state: 'dead' })),
  work('deliveries that wait', world => deliver(world, WAITING)),
  work('a pause and a resumption', async world => {
    const { api, worker } = world
    await api.begin(tx => pauseTarget(tx, target(webhookOf(1)), 'infinity'))
    await deliver(world, WAITING)
    await api.begin(tx => resumeTarget(tx, target(webhookOf(1))))
    await deliver(world, WAITING)
    await forgetTargets(worker)
    await worker`delete from delivery_targets`
  }),
  work('events that are sent again', async ({ api, round }) => {
    const ids = [1, 2, 3].map(n => eventOf(20 * round + n))
    for (const n of [1, 3, 4]) {
      await api.begin(tx => enqueueDeliveries(tx, target(webhookOf(n)), ids))
    }
  }),
  work('a replay', ({ api }) =>
    api.begin(async tx => {
      const [row] = await tx<{ id: string }[]>`
          select id from dead_letters where project_id = ${PROJECT} order by project_id, id limit 1
        `
      await replayDeadLetter(tx, { projectId: PROJECT, id: row?.id })
    }),
  ),
  work(
    'a dispatch',
    async ({ worker }) => {
      await worker`update delivery_cursors set seq = ${COUNT - 5} where project_id = ${PROJECT}`
      await dispatchWebhooks(worker, { projectIds: [PROJECT], maxEvents: 5, lease: undefined })
    }, // Five events for each of twenty webhooks.
    250,
  ),
  work(
    'a read for attempts',
    ({ worker }) =>
      worker`
        select id from read_webhooks(
          ${toArray([PROJECT, PROJECT])}::uuid[], ${toArray([webhookOf(1), webhookOf(2)])}::uuid[],
          ${toArray([eventOf(30), eventOf(31)])}::uuid[]
        )
      `,
  ),
  work(
    'records of attempts',
    ({ worker }) => worker`
      select insert_webhook_attempts(
        ${toArray([PROJECT])}::uuid[], ${toArray([randomUUID()])}::uuid[], ${toArray([webhookOf(1)])}::uuid[],
        ${toArray([eventOf(30)])}::uuid[], '{event.created}', '{1}', '{delivered}', '{200}', '{null}', '{ok}', '{null}',
        '{1}', array[now()], '{h}', '{standard}', ${toArray([`\\x${'01'.repeat(32)}`])}::bytea[], '{false}', true
      )
    `,
  ),
  work(
    'the erasure of what webhooks answered',
    ({ worker }) =>
      worker`select erase_webhook_attempts(${PROJECT}, ${toArray([1, 2, 3].map(eventOf))}::uuid[])`,
  ),
  work(
    'deleted events',
    ({ worker, round }) =>
      worker`
        delete from events where project_id = ${PROJECT} and seq between ${1_000 + 10 * round} and ${1_004 + 10 * round}
      `,
  ),
  work(
    'events that are hidden, restored and purged',
    async ({ api, round }) => {
      const seqs = toArray([0, 1, 2, 3, 4].map(n => String(1_500 + 10 * round + n)))
      const hide = () => api`select from hide_events(${PROJECT}, ${seqs}::bigint[])`
      await hide()
      await api`select from restore_events(${PROJECT}, ${seqs}::bigint[])`
      await hide()
      const [row] = await api`select purge_events(${PROJECT}, now() + interval '1 hour', 10) as n`
      expect(row).toEqual({ n: 5 })
    },
    300, // Each of its four statements may read a project whose tables were never analyzed.
    4 * SMALL_PROJECT,
  ),
  work(
    'a recovery of events that were delivered',
    ({ api }) =>
      api.begin(tx =>
        recoverEvents(tx, editor, {
          id: toId('whk', webhookOf(2)),
          since: new Date(Date.now() - 7_200_000).toISOString(),
        }),
      ), // A recovery reads each event of its time, and the attempts of each.
    2.5 * COUNT,
  ),
  work(
    'requests of known and unknown keys',
    ({ api }) => api`
      select used from count_requests(
        array(select ${api.unsafe(keyHash(`'${PROJECT}' || n`))} from generate_series(1997, 2003) as n),
        array_fill(1, array[7])
      )
    `,
  ),
  work(
    'a dispatch of pushes',
    async ({ worker }) => {
      await worker`
        update delivery_cursors set seq = ${COUNT - 5} where project_id = ${PROJECT} and kind = 'push'
      `
      await dispatchPushes(worker, { projectIds: [PROJECT], maxEvents: 5, lease: undefined })
    }, // Five channels for each of ten members.
    250,
  ),
  work('pushes of threads, and the end of one in a storm', ({ api, worker }) =>
    Promise.all([
      worker`
        select push_thread(
          project => e.project_id, event_id => e.id, event_seq => e.seq + 1, event_thread_seq => e.seq, event_state => 0::smallint,
          event_level => null, event_telling => 1::smallint, event_at => now(), created => now(), device => e.id, account => e.id
        )
        from events e where e.project_id = ${PROJECT} and e.seq = 7
      `,
      api`
        select storm_telling(
          project => ${PROJECT}, channel => ${CHANNEL}, event_thread_seq => 7, event_level => null, is_opening => false,
          telling => 1::smallint, at => now()
        )
      `,
    ]),
  ),
  work(
    'a push of a storm',
    ({ worker }) => worker`
      select push_thread(
        project => e.project_id, event_id => e.id, event_seq => e.seq, event_thread_seq => e.seq, event_state => 3::smallint,
        event_level => null, event_telling => 4::smallint, event_at => now(), created => now(), device => e.id, account => e.id
      )
      from events e where e.project_id = ${PROJECT} and e.seq = 7
    `, // It counts up to 1,001 threads.
    1_001 + MOST,
  ),
  work('a summary of quiet hours', async ({ worker }) => {
    const [row] = await worker<[{ id: string }]>`select md5(${`${PROJECT}p1`})::uuid as id`
    expect(await countWithheld(worker, row.id)).not.toBeEmpty()
  }),
  work(
    'the oldest event of a channel',
    ({ api }) => api`select oldest_event_at(${PROJECT}, ${CHANNEL})`,
  ),
  work(
    'expired events',
    async ({ api }) => {
      const rows = await api`select from expire_events(${PROJECT}, ${OLD_CHANNEL}, 0, 10)`
      expect(rows).toHaveLength(1)
    }, // Each round passes the events of the ones before.
    200,
  ),
  work(
    'the erasure of nobody',
    ({ api }) =>
      api`
        select begin_erasure(${PROJECT}, n, null) from unnest('{nobody,@user-7,erased-7}'::text[]) as n
      `,
  ),
  work(
    'the erasure of a user',
    async ({ api, round }) => {
      const name = `user-${300 + round}`
      await api`select begin_erasure(${PROJECT}, ${name}, null)`
      await api`select from continue_erasure(${PROJECT}, ${name}, 60000)`
      const [{ id }] = await api<[{ id: string }]>`
        select id from erasures where project_id = ${PROJECT} and user_id = ${name}
      `
      const { count } = await api`
        update erasure_names set is_listed = true where project_id = ${PROJECT} and erasure_id = ${id}
      `
      expect(count).toBeGreaterThan(1)
      const [row] = await api`select is_done from continue_erasure(${PROJECT}, ${name}, 60000)`
      expect(row).toEqual({ is_done: true })
    }, // Its custom plans may read a small table in each step, but not for each name or response.
    15 * COUNT,
  ),
]

async function openWorld(): Promise<World & AsyncDisposable> {
  const url = await cloneDatabase()
  // On a busy machine, the tables need longer to fill than a request may take.
  const api = openSql(url, { settings: { statement_timeout: 0 } })
  const worker = openSql(url, { settings: WORKER_SETTINGS })
  await stopAutovacuum(api)
  // While a transaction of any database runs, indexes keep the former versions of rows.
  const other = openSql(await cloneDatabase())
  await other.unsafe('begin; select pg_current_xact_id()')
  return {
    ...{ api, worker, round: 0 },
    async [Symbol.asyncDispose]() {
      await Promise.all([api.end(), worker.end(), other.end()])
    },
  }
}

async function readRows({ api, worker }: World): Promise<Map<string, number>> {
  await worker`select pg_stat_force_next_flush()`
  return countRows(api)
}

/** Returns the works that read too much, with the table and the number of rows. */
async function findCostly(world: World, { isAnalyzed = true } = {}): Promise<string[]> {
  const costly: string[] = []
  for (const { run } of WORK) await run({ ...world, round: 0 })
  let before = await readRows(world)
  // The third round has what the first ones plan and read once.
  for (const round of [1, 2]) {
    for (const { name, most, unanalyzed, run } of WORK) {
      const limit = isAnalyzed ? most : unanalyzed
      await run({ ...world, round })
      const after = await readRows(world)
      for (const [table, rows] of after) {
        const counted = rows - (before.get(table) ?? 0)
        if (counted > limit) costly.push(`${round}: ${name}: ${counted} of ${table}`)
      }
      before = after
    }
  }
  return costly
}

test('work that was planned on empty tables reads no more rows than it needs', async () => {
  await using world = await openWorld()
  for (let n = 0; n < 6; n++)
    for (const { run } of WORK) await Promise.resolve(run(world)).catch(ignore)
  await world.api.unsafe(fill(PROJECT) + fill(OTHER))
  expect(await findCostly(world, { isAnalyzed: false })).toEqual([])
})

test.each([
  ['statistics of another project only', fill(OTHER), fill(PROJECT)],
  ['statistics of many small projects', FILL_ALL_OF_MANY, fill(PROJECT)],
])('work with %s reads no more rows than it needs', async (_, known, added) => {
  await using world = await openWorld()
  await world.api.unsafe(known)
  await world.api.unsafe('vacuum analyze')
  await world.api.unsafe(added)
  expect(await findCostly(world)).toEqual([])
})

test('ten thousand timers that are not due cost a scan no rows', async () => {
  const sql = openSql(await cloneDatabase(), { settings: WORKER_SETTINGS })
  await sql.unsafe(`
    insert into organizations (id, name) values ('${EMPTY}', 'o');
    insert into projects (id, organization_id, name) values ('${EMPTY}', '${EMPTY}', 'p');
    insert into outbox (project_id, event_id, kind, target_id, available_at)
    select '${EMPTY}', id, 'timer', id, now() + interval '1 hour'
    from (select gen_random_uuid() as id from generate_series(1, 10000) offset 0) t;
  `)
  const scan = async () => {
    const before = (await countRows(sql)).get('outbox')!
    const found = await findWaitingTargets(sql, { kind: 'timer', after: NIL, floor: null })
    return [found.length, (await countRows(sql)).get('outbox')! - before]
  }
  expect(await scan()).toEqual([0, 0])
  await sql`
    update outbox set available_at = now() where id in (select id from outbox limit 100)
  `
  const [found, read] = await scan()
  expect(found).toBe(100)
  expect(read).toBeLessThan(400)
  await sql.end()
})

test('the times of a user cost two look-ups for a name, and one more in each segment of backfilled events', async () => {
  const [names, segments] = [40, 60]
  await using world = await openWorld()
  const { api } = world
  await api.unsafe(`
    insert into organizations (id, name) values ('${PROJECT}', 'o');
    insert into projects (id, organization_id, name) values ('${PROJECT}', '${PROJECT}', 'p');
    insert into events (
      project_id, id, channel_id, seq, occurred_at, created_at, title, tags, metadata, user_ref, source, notify
    )
    select
      '${PROJECT}', gen_random_uuid(), '${CHANNEL}', 4096 * s + n, timestamptz '2026-01-01' + s * interval '1 day',
      now(), 't', '{}', '{}', 'name-' || n, 'api', true
    from unnest('{0,${segments - 1}}'::int[]) as s
      cross join generate_series(1, ${names}) as n;
    insert into event_segments (project_id, segment, first_at, last_at)
    select '${PROJECT}', s, timestamptz '2026-01-01' + s * interval '1 day', timestamptz '2026-01-01 01:00' + s * interval '1 day'
    from generate_series(0, ${segments - 1}) as s;
  `)
  const countScans = async () => {
    await api`select pg_stat_force_next_flush()`
    const [row] = await api<[{ n: number }]>`
      select sum(idx_scan)::int as n from pg_stat_user_indexes where relname = 'events'
    `
    return row.n
  }
  const read = async () => {
    const before = await countScans()
    await api`
      select * from user_seen_times(${PROJECT}, array(select 'name-' || n from generate_series(1, ${names}::int) as n))
    `
    return (await countScans()) - before
  }
  // The hour of the last event can have a later one.
  expect(await read()).toBeLessThanOrEqual(3 * names)
  await api`
    update event_segments set first_at = '2025-01-01' where project_id = ${PROJECT} and segment between 11 and 13
  `
  expect(await read()).toBeLessThanOrEqual(6 * names)
})

/** With a nested loop, a burst compares each of its events with each group of devices. */
test.each(['enqueue_pushes', 'record_withheld_pushes'])(
  'the generic plan of %s has no nested loop over events and devices',
  async name => {
    const sql = openSql(await cloneDatabase())
    const [{ body }] = await sql<[{ body: string }]>`
      select prosrc as body from pg_proc where proname = ${name}
    `
    await sql`
      select set_config(split_part(s, '=', 1), substr(s, strpos(s, '=') + 1), false)
      from pg_proc, unnest(proconfig) as s
      where proname = ${name}
    `
    const statement = body
      .replaceAll('unnest(events)', 'unnest($1)')
      .replaceAll('unnest(device_groups)', 'unnest($2)')
      .replaceAll('sentences ', '$3 ')
    await sql.unsafe(`prepare pushes (push_event[], push_device_group[], jsonb) as ${statement}`)
    const rows = await sql.unsafe('explain execute pushes (null, null, null)')
    const plan = rows.map(row => row['QUERY PLAN']).join('\n')
    await sql.end()
    expect(plan).toMatch(/(Hash|Merge) (Anti )?Join/)
  },
)
