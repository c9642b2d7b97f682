import { expect, test } from 'bun:test'
import { parseId } from '../../../src/base/ids.ts'
import { lockLog } from '../../../src/log/channels/channels.ts'
import { appendOwn } from '../../../src/log/events/append.ts'
import { stepRule } from '../../../src/delivery/rules/rule-step.ts'
import { listAuditEntries } from '../../support/audit.ts'
import { hold } from '../../support/database-lock.ts'
import { withSharedServer } from '../../support/servers/server.ts'
import { openSql } from '../../support/sql.ts'
import { until } from '../../support/until.ts'
import { newTenant } from '../../support/worlds/tenant.ts'

const server = withSharedServer()

const payments = {
  ...{ name: 'Payments fail', channel: 'ops', q: 'tag:payment' },
  ...{ moreThan: 2, withinSeconds: 600 },
}
const nothing = { ...payments, name: 'No payments', moreThan: null, withinSeconds: 3_600 }

/** A tenant with what tests do to its rules. */
async function openTenant() {
  const { sql } = server
  const tenant = await newTenant(server)
  const { projectId, path, account } = tenant
  await account.post(`${path}/channels`, { name: 'ops' })
  const get = async (below: string) => (await account.get(`${path}/${below}`)).body.data
  return {
    ...tenant,
    get,
    pay: (n: number, more: object = {}) =>
      tenant.send({ channelName: 'shop', title: `Payment ${n}`, tags: ['payment'], ...more }),
    async save(body: object, id?: string) {
      const answer = id
        ? await account.put(`${path}/rules/${id}`, body)
        : await account.post(`${path}/rules`, body)
      expect([answer.status, answer.text]).toEqual([id ? 200 : 201, answer.text])
      return answer.body.data
    },
    rule: async (id: string) => (await get('rules')).items.find((one: any) => one.id === id),
    /** The titles and states of the events of a rule, oldest first. */
    events: (id: string) =>
      sql<{ title: string; state: string }[]>`
        select e.title, state_name(e.state) as state
        from events e
        where e.project_id = ${projectId} and e.thread = ${`rule:${id}`}
        order by e.seq
      `.then(rows => rows.map(({ title, state }) => [title, state])),
    /** Moves what a rule has seen into the past, and makes its next step due. */
    async age(id: string, seconds: number) {
      const uuid = parseId('rul', id)!
      await sql`
        update rules r set
          state = jsonb_set(r.state, '{recent}', (
            select coalesce(jsonb_agg(a::float8 - ${seconds * 1000}), '[]')
            from jsonb_array_elements_text(r.state -> 'recent') a
          ))
        where r.project_id = ${projectId} and r.id = ${uuid}
      `
      await sql`
        update outbox set available_at = now(), token = null where project_id = ${projectId} and event_id = ${uuid}
      `
    },
    /** Resolves when a rule has evaluated the log to its end. */
    untilSeen: (id: string) =>
      until(async () => {
        const [row] = await sql<{ isAtEnd: boolean }[]>`
          select r.seq = l.last_seq as "isAtEnd" from rules r join event_logs l using (project_id)
          where r.id = ${parseId('rul', id)!}
        `
        return row!.isAtEnd
      }),
  }
}

test('attention §7 a rule fires and recovers', async () => {
  const one = await openTenant()
  await one.pay(0)
  const { id } = await one.save(payments)
  expect(await one.rule(id)).toMatchObject({ level: 'high', isOn: true, firingSince: null })
  await one.pay(1)
  await one.pay(2)
  await one.send({ channelName: 'shop', title: 'A visit' })
  await one.untilSeen(id)
  expect(await one.events(id)).toEqual([])
  // Backfilled events count when they arrive.
  await one.pay(3, { timestamp: '2020-01-01T00:00:00Z' })
  await until(async () => (await one.events(id)).length === 1)
  const [fired] = (await one.get('events?q=state:firing')).items
  expect(fired).toMatchObject({
    ...{ channelName: 'ops', title: 'Payments fail: more than 2 in 10 minutes', level: 'high' },
    ...{ state: 'firing', thread: `rule:${id}`, source: 'rule' },
    // Titles of events would outlive their deletion.
    description: null,
    url: expect.stringMatching(/\?q=tag%3Apayment$/),
  })
  expect((await one.rule(id)).firingSince).toBeString()
  await one.pay(4)
  await one.untilSeen(id)
  await one.age(id, 600)
  await until(async () => (await one.events(id)).length === 2)
  const title = 'Payments fail: more than 2 in 10 minutes'
  expect(await one.events(id)).toEqual([
    [title, 'firing'],
    [title, 'resolved'],
  ])
  expect((await one.rule(id)).firingSince).toBeNull()
})

test('attention §7 a rule fires when nothing came, and sees no events of rules', async () => {
  const one = await openTenant()
  const { id } = await one.save({ ...nothing, q: 'payments OR tag:payment', level: 'critical' })
  // Threads of people have any name.
  const ours = await one.save({ ...payments, moreThan: 0, q: 'state:running' })
  await one.send({ title: 'A run', thread: 'rule:nightly', state: 'running' })
  await until(async () => (await one.events(ours.id)).length === 1)
  await one.age(id, 3_500)
  // Its title has the word that the rule looks for.
  const other = await one.save({ ...payments, moreThan: 0, name: 'Payments came', q: 'tag:other' })
  await one.send({ title: 'Other', tags: ['other'] })
  await until(async () => (await one.events(other.id)).length === 1)
  await one.untilSeen(id)
  await one.age(id, 200)
  await until(async () => (await one.events(id)).length === 1)
  await one.pay(1)
  await until(async () => (await one.events(id)).length === 2)
  expect(await one.events(id)).toEqual([
    ['No payments: nothing for 1 hour', 'firing'],
    ['No payments: nothing for 1 hour', 'resolved'],
  ])
})

test('attention §7 steps that crash, or are made at once, append one event', async () => {
  const one = await openTenant()
  const { projectId } = one
  const { id } = await one.save({ ...payments, moreThan: 0 })
  const uuid = parseId('rul', id)!
  // Its steps are made here alone.
  await one.untilSeen(id)
  await server.sql`delete from outbox where event_id = ${uuid}`
  await one.pay(1)
  const ids = { id: uuid, projectId, eventId: uuid, targetId: uuid }
  const attempt = { ...ids, attempt: 1, isLast: false, waitedMs: 0, begin: () => true }
  let appended = 0
  const step = (end?: () => never) =>
    server.sql.begin(async tx => {
      const noteAppended = () => void appended++
      await stepRule({ tx, attempt, siteUrl: 'http://x', noteAppended })
      end?.()
    })
  const crash = () => {
    throw new Error('killed')
  }
  expect((await Promise.allSettled([step(crash)])).map(({ status }) => status)).toEqual([
    'rejected',
  ])
  expect([appended, await one.events(id)]).toEqual([1, []])
  await Promise.all([step(), step(), step()])
  await step()
  expect(await one.events(id)).toEqual([['Payments fail: more than 0 in 10 minutes', 'firing']])
})

test('attention §7 events may interrupt the steps of a rule without end', async () => {
  const one = await openTenant()
  const { id } = await one.save({ ...payments, moreThan: 0 })
  await one.untilSeen(id)
  // Each interrupted step was claimed, and not settled.
  await server.sql`
    update outbox set claim_count = 32767, token = gen_random_uuid(), available_at = now() + interval '1 hour'
    where event_id = ${parseId('rul', id)!}
  `
  await one.pay(1)
  await one.untilSeen(id)
  expect((await one.events(id)).map(([, state]) => state)).toEqual(['firing'])
})

test('attention §7 a step knows a channel that was made while it waited for the log', async () => {
  const one = await openTenant()
  const { projectId } = one
  const { id } = await one.save({ ...nothing, q: '(channel:ops OR channel:late)' })
  await one.untilSeen(id)
  const uuid = parseId('rul', id)!
  await server.sql`delete from outbox where event_id = ${uuid}`
  await one.age(id, 3_600)
  const ids = { id: uuid, projectId, eventId: uuid, targetId: uuid }
  const attempt = { ...ids, attempt: 1, isLast: false, waitedMs: 0, begin: () => true }
  const lock = await hold(
    server.sql,
    tx => lockLog(tx, projectId),
    async tx => {
      const [channel] = await tx<[{ id: string }]>`
        insert into channels (project_id, id, public_id, slug, name, created_at)
        values (${projectId}, gen_random_uuid(), 'chn_late', 'late', 'late', now())
        returning id
      `
      await appendOwn(tx, { projectId, channelId: channel.id }, { title: 'At last', source: 'x' })
    },
  )
  await using other = openSql(server.databaseUrl)
  const stepping = other.begin(tx =>
    stepRule({ tx, attempt, siteUrl: 'http://x', noteAppended() {} }),
  )
  await Promise.race([lock.untilBlocked(), stepping])
  await lock.release()
  await stepping
  expect((await one.events(id)).map(([, state]) => state)).toEqual(['firing', 'resolved'])
})

test('attention §7 a changed or deleted rule resolves its thread, and counts anew', async () => {
  const one = await openTenant()
  const { id } = await one.save({ ...payments, moreThan: 0 })
  await one.pay(1)
  await until(async () => (await one.events(id)).length === 1)
  expect(await one.save({ ...payments, moreThan: 0, name: 'Paid', isOn: false }, id)).toMatchObject(
    {
      ...{ id, name: 'Paid', isOn: false, firingSince: null },
    },
  )
  await one.pay(2)
  await one.save({ ...payments, moreThan: 0 }, id)
  await one.untilSeen(id)
  await one.pay(3)
  await until(async () => (await one.events(id)).length === 3)
  expect((await one.account.delete(`${one.path}/rules/${id}`)).status).toBe(200)
  const fires = ['Payments fail: more than 0 in 10 minutes', 'firing']
  expect(await one.events(id)).toEqual([
    fires,
    ['Payments fail: the rule was changed', 'resolved'],
    fires,
    ['Payments fail: the rule was deleted', 'resolved'],
  ])
  expect(await one.get('rules')).toEqual({ items: [] })
  expect((await one.account.delete(`${one.path}/rules/${id}`)).status).toBe(404)
  const entries = await listAuditEntries(server.sql, one.organization.uuid)
  expect(entries.filter(({ target }) => target === id).map(({ action }) => action)).toEqual([
    'rule.created',
    'rule.edited',
    'rule.edited',
    'rule.deleted',
  ])
})

test('attention §7 a rule has a search without times, and a project 20 rules', async () => {
  const one = await openTenant()
  const post = (body: object) => one.account.post(`${one.path}/rules`, { ...payments, ...body })
  for (const body of [{ q: ' ' }, { q: '(a OR after:2h)' }, { q: 'level:loud' }, { channel: 'x' }])
    expect([body, (await post(body)).status]).toEqual([body, 400])
  const { status } = await one.account.post(`${one.path}/rules/preview`, {
    ...{ q: 'after:2h', moreThan: null, withinSeconds: 60 },
  })
  expect(status).toBe(400)
  for (let n = 0; n < 20; n++) expect((await post({ isOn: false })).status).toBe(201)
  expect((await post({})).status).toBe(409)
})

test('attention §7 a preview tells when a rule would have fired', async () => {
  const one = await openTenant()
  const preview = async (body: object) =>
    (await one.account.post(`${one.path}/rules/preview`, { ...payments, ...body })).body.data
  expect(await preview({})).toEqual({
    count: 0,
    firings: [],
    since: null,
    until: null,
    nextCursor: null,
  })
  for (let n = 0; n < 6; n++) await one.pay(n)
  // In days before now. The first one is older than a preview looks.
  const days = [31, 20, 20, 20, 10, 0]
  for (const [n, ago] of days.entries()) {
    await server.sql`
      update events set created_at = date_trunc('day', now()) - ${ago} * interval '1 day'
      where project_id = ${one.projectId} and seq = ${n + 1}
    `
  }
  const at = (ago: number, minutes = 0) =>
    new Date(
      Math.floor(Date.now() / 86_400_000 - ago) * 86_400_000 + minutes * 60_000,
    ).toISOString()
  expect(await preview({})).toEqual({
    count: 1,
    firings: [{ from: at(20), to: at(20, 10) }],
    ...{ since: expect.any(String), until: expect.any(String), nextCursor: null },
  })
  const silent = { moreThan: null, withinSeconds: 5 * 86_400 }
  // The first event is 31 days old.
  const { since, until: _, ...found } = await preview(silent)
  expect(found).toEqual({
    count: 3,
    firings: [
      { from: at(5), to: at(0) },
      { from: at(15), to: at(10) },
      { from: at(26), to: at(20) },
    ],
    nextCursor: null,
  })
  expect(Math.round((Date.now() - Date.parse(since)) / 86_400_000)).toBe(30)
  // The 20 days before the window decide how it begins.
  expect(await preview({ days: 15 })).toMatchObject({ count: 0 })
  // The log has no event in the days.
  await server.sql`
    update events set created_at = now() - interval '31 days' where project_id = ${one.projectId}
  `
  const always = await preview({ ...silent, withinSeconds: 3_600 })
  expect(always).toMatchObject({ count: 1, firings: [{ from: always.since, to: null }] })
})

test('attention §7 a preview looks at so many events, and a cursor looks further', async () => {
  const one = await openTenant()
  await one.pay(0, { metadata: { by: 'card' } })
  await server.sql`
    insert into events (project_id, id, channel_id, seq, occurred_at, created_at, title, metadata, tags, notify, source)
    select e.project_id, gen_random_uuid(), e.channel_id, n, at, at, e.title, e.metadata, e.tags, true, e.source
    from events e
      cross join generate_series(2, 6300) n
      -- Six in a minute, every ten minutes.
      cross join lateral (
        select now() - interval '9 days' + n / 6 * interval '10 minutes' + n % 6 * interval '10 s' as at
      ) t
    where e.project_id = ${one.projectId}
  `
  await server.sql`
    update events set created_at = now() - interval '9 days' where project_id = ${one.projectId} and seq = 1
  `
  await server.sql`update event_logs set last_seq = 6300 where project_id = ${one.projectId}`
  const preview = async (body: object) =>
    (await one.account.post(`${one.path}/rules/preview`, { ...payments, ...body })).body.data
  const condition = { moreThan: 4, withinSeconds: 60 }
  /** Looks further until the end. The last part comes first. */
  const look = async (body: object) => {
    const parts = [await preview(body)]
    for (let [{ nextCursor: cursor }] = parts; cursor; cursor = parts[0].nextCursor)
      parts.unshift(await preview({ ...body, cursor }))
    return parts
  }
  const all = await look(condition)
  // It parses metadata, so it looks at fewer.
  const parts = await look({ ...condition, q: 'meta:by=card' })
  for (const each of [all, parts])
    expect(each.reduce((sum, { count }) => sum + count, 0)).toBe(1_050)
  expect(parts.length).toBeGreaterThan(1)
  expect(parts.at(-1).count).toBeLessThanOrEqual(1_041)
  expect(parts[0].firings[0]).toEqual(all[0].firings[0])
  const [last, before] = parts
  expect(last.since > before.until).toBeTrue()
  const wrong = { ...condition, q: 'meta:by=card', cursor: `${before.nextCursor}x` }
  expect((await one.account.post(`${one.path}/rules/preview`, wrong)).status).toBe(400)
})
