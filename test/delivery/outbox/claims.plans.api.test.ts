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
import { listAttempts } from '../../../src/delivery/webhooks/attempts.ts'
import { dispatchWebhooks } from '../../../src/delivery/webhooks/dispatch.ts'
import { recoverEvents } from '../../../src/delivery/webhooks/recovery.ts'
import { getProjectChannel, listChannels } from '../../../src/log/channels/channels.ts'
import { getUnread } from '../../../src/log/channels/unread.ts'
import { appendRows, number, type AppendJob } from '../../../src/log/events/append-statement.ts'
import { toNewEvent } from '../../../src/log/events/new-event.ts'
import { getUserJson, listReferences } from '../../../src/log/identities/users.ts'
import { COUNT, countRows, FILL_MANY, fillProject } from '../../support/row-counts.ts'
import { cloneDatabase, closeCluster } from '../../support/servers/postgres.ts'
import { openSql } from '../../support/sql.ts'

afterAll(closeCluster)

const PROJECT = '00000000-0000-7000-8000-000000000001'
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
/** The first part of the ids of a project's webhooks. */
const webhooksOf = (project: string) => `0000000${project.at(-1)}-0000-7000-8000-`
const webhookOf = (n: number) => webhooksOf(PROJECT) + String(n).padStart(12, '0')

/** The stored response of the nth event, as an SQL expression. */
const storedBody = `'{"success":true,"data":{"id":"evt_1","seq":1,"channelId":"chn_1","channelName":"c","userId":"user-'
  || n % 500 + 1 || '","timestamp":"2026-01-01T00:00:00Z","createdAt":"2026-01-01T00:00:00Z","source":"api",'
  || '"notify":true},"requestId":"r"}'`

/** A row of each event for the first webhook, and twenty webhooks. */
const fill = (project: string) => `
  ${fillProject(project)}
  insert into webhooks (project_id, id, name, url, host, preset, has_all_channels, secret)
    select '${project}', ('${webhooksOf(project)}' || lpad(n::text, 12, '0'))::uuid, 'w', 'u', 'h', 'standard', n > 1, 's'
    from generate_series(1, 20) as n;
  insert into idempotency_keys (project_id, key, fingerprint, status, user_id, other_names, seq, body, expires_at)
    select
      '${project}', 'old-' || n, '\\x01', 201, 'user-' || n % 500 + 1, '{a}', n,
      ${storedBody}, now() + n * interval '10 s'
    from generate_series(1, ${COUNT}) as n;
  insert into outbox (id, project_id, event_id, kind, target_id, available_at)
    select
      md5('${project}o' || e.seq)::uuid, '${project}', e.id, 'webhook', '${webhooksOf(project)}000000000001',
      now() + (e.seq - 100) * interval '1 minute'
    from events e where e.project_id = '${project}';
  insert into deliveries (project_id, event_id, kind, target_id, state)
    select '${project}', e.id, 'webhook', '${webhooksOf(project)}000000000002', 'delivered'
    from events e where e.project_id = '${project}';
  insert into dead_letters (id, project_id, event_id, kind, target_id, attempts, reason)
    select md5('${project}d' || e.seq)::uuid, '${project}', e.id, 'webhook', '${webhooksOf(project)}000000000003', 10, ''
    from events e where e.project_id = '${project}';
  insert into withheld_deliveries (project_id, event_id, kind, reason, target_ids)
    select '${project}', e.id, 'push', '', '{}' from events e where e.project_id = '${project}';
  insert into webhook_attempts (
    project_id, id, webhook_id, event_id, kind, number, outcome, status, reason, latency_ms, started_at, host, preset,
    body_hash
  )
    select
      '${project}', md5('${project}a' || e.seq)::uuid, '${webhooksOf(project)}000000000002', e.id, 'event.created', 1,
      'delivered', 200, '', 1, now(), 'h', 'standard', decode(repeat('01', 32), 'hex')
    from events e where e.project_id = '${project}';
  insert into delivery_cursors (project_id, kind, seq)
    values ('${project}', 'webhook', ${COUNT}), ('${project}', 'push', ${COUNT});
  insert into api_keys (id, organization_id, project_id, name, hash, last_four, scopes, rate_limit)
    select md5('${project}k' || n)::uuid, '${project}', '${project}', 'k', ${keyHash(`'${project}' || n`)}, '1234', '{}', 1000
    from generate_series(1, ${COUNT}) as n;
  insert into rate_windows (key_id, used, started_at) select id, 1, now() from api_keys where project_id = '${project}';
  insert into alias_changes (project_id, user_id, at, alias, change, other)
    select '${project}', 'user-' || n % 500 + 1, now(), '@former-' || n, 'moved to', 'user-' || n % 499 + 1
    from generate_series(1, ${COUNT}) as n;
  with begun as (
    insert into erasures (id, project_id, user_id, stage, last_seq, last_change)
      select md5('${project}r' || n)::uuid, '${project}', 'erased-' || n, 'names', 0, n from generate_series(1, ${COUNT}) as n
      returning id, user_id
  ), listed as (
    insert into erased_users (id, project_id, erased_at) select id, '${project}', now() from begun
  )
  insert into erasure_names (project_id, erasure_id, user_id, name) select '${project}', id, user_id, user_id from begun;
  ${fillDevices(project, COUNT)}
  insert into memberships (organization_id, account_id, role)
    select '${project}', id, 'member' from accounts where email like '${project}-%' order by id limit 10;
  update events set created_at = now() - interval '400 days'
    where project_id = '${project}' and channel_id = '${OLD_CHANNEL}' and seq < 400;
  update channels set keep_days = 365 where project_id = '${project}' and id = '${OLD_CHANNEL}';
`

/** The statement of a key's hash, of an SQL expression. */
const keyHash = (token: string) => `sha256((${token})::text::bytea)`

/** Accounts with a device each, which are in no organization yet. */
const fillDevices = (name: string, count: number) => `
  insert into accounts (id, name, email)
    select md5('${name}p' || n)::uuid, 'a', '${name}-' || n from generate_series(1, ${count}) as n;
  insert into sessions (id, hash, account_id, is_installed, method, address, user_agent)
    select id, sha256(id::text::bytea), id, false, 'password', '', '' from accounts where email like '${name}-%';
  insert into push_subscriptions (id, account_id, session_id, endpoint_hash, address, host, label)
    select id, id, id, sha256(id::text::bytea), '', 'h', '' from accounts where email like '${name}-%';
`

/** Many projects with one row in each table. */
const FILL_ALL_OF_MANY = `
  ${FILL_MANY}
  insert into identities (project_id, user_id, id, public_id, properties, created_at, updated_at)
    select id, 'user', id, 'idn_' || id, '{}', now(), now() from projects;
  insert into aliases (project_id, alias, user_id, created_at) select id, '@user', 'user', now() from projects;
  insert into webhooks (project_id, id, name, url, host, preset, has_all_channels, secret)
    select id, id, 'w', 'u', 'h', 'standard', true, 's' from projects;
  insert into idempotency_keys (project_id, key, fingerprint, status, user_id, other_names, seq, body, expires_at)
    select id, 'key', '\\x01', 201, 'user', '{a}', 1, '{}', now() + interval '1 hour' from projects;
  insert into outbox (id, project_id, event_id, kind, target_id) select id, id, id, 'webhook', id from projects;
  insert into deliveries (project_id, event_id, kind, target_id, state)
    select id, id, 'webhook', id, 'delivered' from projects;
  insert into dead_letters (id, project_id, event_id, kind, target_id, attempts, reason)
    select id, id, id, 'webhook', id, 10, '' from projects;
  insert into withheld_deliveries (project_id, event_id, kind, reason, target_ids)
    select id, id, 'push', '', '{}' from projects;
  insert into webhook_attempts (
    project_id, id, webhook_id, event_id, kind, number, outcome, status, reason, latency_ms, started_at, host, preset,
    body_hash
  )
    select
      id, id, id, id, 'event.created', 1, 'delivered', 200, '', 1, now(), 'h', 'standard',
      decode(repeat('01', 32), 'hex')
    from projects;
  insert into api_keys (id, organization_id, project_id, name, hash, last_four, scopes, rate_limit)
    select id, id, id, 'k', ${keyHash('id')}, '1234', '{}', 1000 from projects;
  insert into rate_windows (key_id, used, started_at) select id, 1, now() from projects;
  insert into alias_changes (project_id, user_id, at, alias, change, other)
    select id, 'user', now(), '@former', 'moved to', 'other' from projects;
  insert into erasures (id, project_id, user_id, stage, last_seq, last_change) select id, id, 'erased', 'names', 0, 1 from projects;
  insert into erased_users (id, project_id, erased_at) select id, id, now() from projects;
  insert into erasure_names (project_id, erasure_id, user_id, name) select id, id, 'erased', 'erased' from projects;
  ${fillDevices('many', 1500)}
  insert into memberships (organization_id, account_id, role)
    select p.id, a.id, 'member'
    from (select id, row_number() over () as n from projects) p
      join (select id, row_number() over () as n from accounts) a using (n);
`

interface World {
  /** A connection with the settings of the API, and one with those of the worker. */
  api: Sql
  worker: Sql
  /** The number of the round, from 0. */
  round: number
}

interface Work {
  name: string
  /** The most rows of each table that it may read; by default MOST. */
  most?: number
  /** The same before the first analysis of the tables. */
  unanalyzed?: number
  /** The same for a table of which it reads more than of others. */
  mostOf?: Readonly<Record<string, number>>
  run(world: World): PromiseLike<unknown>
}

async function append(sql: Sql, keys: readonly string[]): Promise<void> {
  const jobs = keys.map((key): AppendJob => {
    const event = toNewEvent({ channelName: 'Channel 3', title: key, userId: '@user-1' })
    const claim = { key, fingerprint: Buffer.from('01', 'hex') }
    return { projectId: PROJECT, event, requestId: randomUUID(), claim, admission: undefined }
  })
  const projects = number(jobs.map(({ projectId }) => projectId))
  await appendRows(sql, { jobs, channels: jobs.map(() => undefined), projects, keys: number([]) })
}

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
  {
    name: 'an event in a known channel',
    async run({ api }) {
      const channel = { uuid: CHANNEL, id: 'chn_3', name: 'c' }
      const event = toNewEvent({ channelName: 'Channel 3', title: 'one', userId: '@user-1' })
      const jobs = [
        { projectId: PROJECT, event, requestId: 'r', claim: undefined, admission: undefined },
      ]
      const batch = { jobs, channels: [channel], projects: number([PROJECT]), keys: number([]) }
      await appendRows(api, batch)
    },
  },
  {
    name: 'new Idempotency-Keys',
    run: ({ api, round }) => append(api, [`new-${round}-1`, `new-${round}-2`]),
  },
  { name: 'repeated Idempotency-Keys', run: ({ api }) => append(api, ['old-5', 'old-6', 'old-7']) },
  {
    name: 'an identify of known and new users',
    run: ({ api, round }) => identify(api, ['user-3', `other-${round}`], [null, `user-${round}`]),
  },
  { name: 'a repeated identify', run: ({ api }) => identify(api, ['user-3'], ['old-9']) },
  {
    name: 'the deletion of expired keys',
    run: ({ worker }) => worker`select delete_expired_keys(10)`,
  },
  {
    name: 'a list of channels',
    most: SMALL_PROJECT,
    run: ({ api }) => listChannels(api, PROJECT, { limit: 10 }),
  },
  {
    name: 'a channel',
    run: ({ api }) => getProjectChannel(api, reader, toId('chn', CHANNEL)),
  },
  { name: 'unread counts', most: 400, run: ({ api }) => getUnread(api, reader, [CHANNEL]) },
  {
    name: 'a user by an alias',
    run: ({ api }) => getUserJson(api, PROJECT, '@user-7'),
  },
  { name: 'the names of a user', run: ({ api }) => listReferences(api, PROJECT, '@user-7') },
  {
    name: 'pending deliveries',
    most: SMALL_PROJECT,
    run: ({ api }) => listPendingDeliveries(api, { ...view, query: { limit: 10 } }),
  },
  {
    name: 'dead letters',
    most: SMALL_PROJECT,
    run: ({ api }) => listDeadLetters(api, { ...view, query: { limit: 10 } }),
  },
  {
    name: 'the deliveries of an event',
    run: ({ api }) => listEventDeliveries(api, { ...view, eventId: eventOf(7), query: {} }),
  },
  {
    name: 'the attempts of a webhook',
    most: SMALL_PROJECT,
    run: ({ api }) =>
      listAttempts(api, { projectId: PROJECT, id: toId('whk', webhookOf(2)) }, { limit: 10 }),
  },
  {
    name: 'a scan for targets',
    // Each of many projects has one.
    most: 1_700,
    run: ({ worker }) => findWaitingTargets(worker, { kind: 'webhook', after: NIL, floor: null }),
  },
  { name: 'deliveries that end', run: world => deliver(world, ENDED) },
  {
    name: 'deliveries that are given up',
    run: world => deliver(world, { ...ENDED, state: 'dead' }),
  },
  { name: 'deliveries that wait', run: world => deliver(world, WAITING) },
  {
    name: 'a pause and a resumption',
    async run(world) {
      const { api, worker } = world
      await api.begin(tx => pauseTarget(tx, target(webhookOf(1)), 'infinity'))
      await deliver(world, WAITING)
      await api.begin(tx => resumeTarget(tx, target(webhookOf(1))))
      await deliver(world, WAITING)
      await forgetTargets(worker)
      await worker`delete from delivery_targets`
    },
  },
  {
    name: 'events that are sent again',
    async run({ api, round }) {
      const ids = [1, 2, 3].map(n => eventOf(20 * round + n))
      for (const n of [1, 3, 4]) {
        await api.begin(tx => enqueueDeliveries(tx, target(webhookOf(n)), ids))
      }
    },
  },
  {
    name: 'a replay',
    run: ({ api }) =>
      api.begin(async tx => {
        const [row] = await tx<{ id: string }[]>`
          select id from dead_letters where project_id = ${PROJECT} order by project_id, id limit 1
        `
        await replayDeadLetter(tx, { projectId: PROJECT, id: row?.id })
      }),
  },
  {
    name: 'a dispatch',
    async run({ worker }) {
      await worker`update delivery_cursors set seq = ${COUNT - 5} where project_id = ${PROJECT}`
      await dispatchWebhooks(worker, { projectIds: [PROJECT], maxEvents: 5, lease: undefined })
    },
    // Five events for each of twenty webhooks.
    most: 250,
  },
  {
    name: 'a read for attempts',
    run: ({ worker }) =>
      worker`
        select id from read_webhooks(
          ${toArray([PROJECT, PROJECT])}::uuid[], ${toArray([webhookOf(1), webhookOf(2)])}::uuid[],
          ${toArray([eventOf(30), eventOf(31)])}::uuid[]
        )
      `,
  },
  {
    name: 'records of attempts',
    run: ({ worker }) => worker`
      select insert_webhook_attempts(
        ${toArray([PROJECT])}::uuid[], ${toArray([randomUUID()])}::uuid[], ${toArray([webhookOf(1)])}::uuid[],
        ${toArray([eventOf(30)])}::uuid[], '{event.created}', '{1}', '{delivered}', '{200}', '{null}', '{ok}', '{null}',
        '{1}', array[now()], '{h}', '{standard}', ${toArray([`\\x${'01'.repeat(32)}`])}::bytea[], '{false}', true
      )
    `,
  },
  {
    name: 'the erasure of what webhooks answered',
    run: ({ worker }) =>
      worker`select erase_webhook_attempts(${PROJECT}, ${toArray([1, 2, 3].map(eventOf))}::uuid[])`,
  },
  {
    name: 'deleted events',
    run: ({ worker, round }) =>
      worker`
        delete from events where project_id = ${PROJECT} and seq between ${1_000 + 10 * round} and ${1_004 + 10 * round}
      `,
  },
  {
    name: 'events that are hidden, restored and purged',
    async run({ api, round }) {
      const seqs = toArray([0, 1, 2, 3, 4].map(n => String(1_500 + 10 * round + n)))
      const hide = () => api`select from hide_events(${PROJECT}, ${seqs}::bigint[])`
      await hide()
      await api`select from restore_events(${PROJECT}, ${seqs}::bigint[])`
      await hide()
      const [row] = await api`select purge_events(${PROJECT}, now() + interval '1 hour', 10) as n`
      expect(row).toEqual({ n: 5 })
    },
    most: 300,
    // Each of its four statements may read a project whose tables were never analyzed.
    unanalyzed: 4 * SMALL_PROJECT,
  },
  {
    name: 'a recovery of events that were delivered',
    // A recovery reads each event of its time, and the attempts of each.
    most: 2.5 * COUNT,
    run: ({ api }) =>
      api.begin(tx =>
        recoverEvents(tx, editor, {
          id: toId('whk', webhookOf(2)),
          since: new Date(Date.now() - 7_200_000).toISOString(),
        }),
      ),
  },
  {
    name: 'requests of known and unknown keys',
    run: ({ api }) => api`
      select used from count_requests(
        array(select ${api.unsafe(keyHash(`'${PROJECT}' || n`))} from generate_series(1997, 2003) as n),
        array_fill(1, array[7])
      )
    `,
  },
  {
    name: 'a dispatch of pushes',
    async run({ worker }) {
      await worker`
        update delivery_cursors set seq = ${COUNT - 5} where project_id = ${PROJECT} and kind = 'push'
      `
      await dispatchPushes(worker, { projectIds: [PROJECT], maxEvents: 5, lease: undefined })
    },
    // Five channels for each of ten members.
    most: 250,
  },
  {
    name: 'the oldest event of a channel',
    run: ({ api }) => api`select oldest_event_at(${PROJECT}, ${CHANNEL})`,
  },
  {
    name: 'expired events',
    async run({ api }) {
      const rows = await api`select from expire_events(${PROJECT}, ${OLD_CHANNEL}, 0, 10)`
      expect(rows).toHaveLength(1)
    },
    // Each round passes the events of the ones before.
    mostOf: { events: 200 },
  },
  {
    name: 'the erasure of nobody',
    run: ({ api }) =>
      api`
        select begin_erasure(${PROJECT}, n, null) from unnest('{nobody,@user-7,erased-7}'::text[]) as n
      `,
  },
  {
    name: 'the erasure of a user',
    async run({ api, round }) {
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
    },
    // Its custom plans may read a small table in each step, but not for each name or response.
    most: 15 * COUNT,
  },
]

async function openWorld(): Promise<World & AsyncDisposable> {
  const url = await cloneDatabase()
  // On a busy machine, the tables need longer to fill than a request may take.
  const api = openSql(url, { settings: { statement_timeout: 0 } })
  const worker = openSql(url, { settings: WORKER_SETTINGS })
  const tables = await api<{ name: string }[]>`select relname as name from pg_stat_user_tables`
  for (const { name } of tables) await api`alter table ${api(name)} set (autovacuum_enabled = off)`
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

/** Returns the works that read too much, with the table and the number of rows. */
async function findCostly(world: World, { isAnalyzed = true } = {}): Promise<string[]> {
  const costly: string[] = []
  // The third round has what the first ones plan and read once.
  for (const round of [0, 1, 2]) {
    for (const { name, most = MOST, unanalyzed = most, mostOf = {}, run } of WORK) {
      const limit = isAnalyzed ? most : unanalyzed
      const before = await countRows(world.api)
      await run({ ...world, round })
      await countRows(world.worker)
      const after = await countRows(world.api)
      for (const [table, rows] of after) {
        const counted = rows - (before.get(table) ?? 0)
        if (round > 0 && counted > (mostOf[table] ?? limit))
          costly.push(`${round}: ${name}: ${counted} of ${table}`)
      }
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
  ['full tables', `${fill(PROJECT)} ${fill(OTHER)}`, ''],
  ['tables whose statistics know another project only', fill(OTHER), fill(PROJECT)],
  ['tables whose statistics know many small projects', FILL_ALL_OF_MANY, fill(PROJECT)],
])('work on %s reads no more rows than it needs', async (_, known, added) => {
  await using world = await openWorld()
  await world.api.unsafe(known)
  await world.api.unsafe('vacuum analyze')
  await world.api.unsafe(added)
  expect(await findCostly(world)).toEqual([])
})

test('work on tables without statistics reads no more rows than it needs', async () => {
  await using world = await openWorld()
  await world.api.unsafe(fill(PROJECT) + fill(OTHER))
  expect(await findCostly(world, { isAnalyzed: false })).toEqual([])
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
