import { expect, test } from 'bun:test'
import { WITHHELD_REASONS } from '../../../src/delivery/push/dispatch.ts'
import { ageEvents, makeDeliveriesDue } from '../../support/worlds/ageing.ts'
import { lockPushDispatch } from '../../support/database-lock.ts'
import type { Arrived } from '../../support/servers/push-service.ts'
import { openPushWorld } from '../../support/worlds/push.ts'
import { newMember } from '../../support/worlds/signed-in-account.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'
import { until } from '../../support/until.ts'
import { forProcess } from '../../support/for-file.ts'

const world = forProcess(openPushWorld)

const withheld = (reason: keyof typeof WITHHELD_REASONS) => `withheld: ${WITHHELD_REASONS[reason]}`

/** Returns what a browser does with the notification of the same tag. */
const toChange = ({ notification: { title, silent, renotify } }: Arrived) =>
  [title, silent ? 'silent' : renotify ? 'again' : 'new'].join(': ')

/** Sends an event of a thread, and resolves with the outcomes of its pushes: at least `count`. */
async function tell(tenant: TestTenant, event: object, count = 1): Promise<Record<string, string>> {
  const [outcomes] = await tellTogether(tenant, [{ thread: 'disk', ...event }], count)
  return outcomes!
}

/** Sends events that are dispatched together. Resolves with the outcomes of each. */
async function tellTogether(tenant: TestTenant, events: Record<string, unknown>[], count = 1) {
  const { sql } = world.server
  const { projectId } = tenant
  const lock = await lockPushDispatch(sql, projectId)
  const sent: { id: string; seq: number }[] = []
  for (const event of events) sent.push(await tenant.send(event))
  // As if it were 30 seconds later.
  await sql`update push_subscriptions set created_at = now() - interval '1 hour'`
  await ageEvents(sql, projectId, { seq: sent.at(-1)!.seq, interval: '30 seconds' })
  await lock.release()
  await until(async () =>
    (await Promise.all(sent.map(event => world.outcomes(event)))).every(
      one => Object.keys(one).length >= count,
    ),
  )
  return Promise.all(sent.map(event => world.outcomes(event)))
}

const fire = (count: number, more: (n: number) => object = () => ({})) =>
  Array.from({ length: count }, (_, n) => ({
    ...{ thread: `disk ${n}`, title: `Disk ${n}`, state: 'firing' },
    ...more(n),
  }))

test('attention §2 updates of a thread replace its notification, silently unless it became worse', async () => {
  const { tenant, browser } = await world.newPhone()
  const delivered = { [browser.id]: 'delivered' }
  const [start, end] = [-8, -1].map(minutes => new Date(Date.now() + minutes * 60_000))
  for (const event of [
    { title: '1', state: 'running', timestamp: start },
    { title: '2', state: 'running' },
    { title: '3', state: 'firing' },
    { title: '4', level: 'high' },
    { title: '5', state: 'resolved', timestamp: end },
  ]) {
    expect(await tell(tenant, event)).toEqual(delivered)
  }
  expect(await tell(tenant, { state: 'resolved' })).toEqual({ nobody: withheld('notOpen') })
  expect(await tell(tenant, { title: '7', state: 'firing', level: 'critical' })).toEqual(delivered)
  const pushes = world.service.of(browser)
  expect(pushes.map(toChange)).toEqual([
    ...['1: new', '2: silent', '3: again', '4: again', '5: silent', '7: new'],
  ])
  expect(pushes[4]!.notification.body).toStartWith('Resolved after 7 minutes · ops · ')
  const tags = pushes.map(({ notification }) => notification.tag)
  expect(new Set(tags.slice(0, 5)).size).toBe(1)
  expect(new Set(tags).size).toBe(2)
})

test('attention §2 a thread that flaps is told again after five minutes, or when its level rose', async () => {
  const { sql } = world.server
  const { tenant, browser } = await world.newPhone()
  const to = (outcome: string) => ({ [browser.id]: outcome })
  const high = { thread: 'disk', state: 'firing', level: 'high', title: 'Full' }
  const end = { thread: 'disk', state: 'resolved', level: 'normal', title: 'Free' }
  expect(await tell(tenant, high)).toEqual(to('delivered'))
  expect(await tell(tenant, end)).toEqual(to('delivered'))
  for (let n = 0; n < 2; n++) {
    const outcomes = await tellTogether(tenant, [high, end])
    expect(outcomes).toEqual([to(withheld('replaced')), to(withheld('untold'))])
  }
  const worse = { ...high, level: 'critical', title: 'Worse' }
  expect(await tell(tenant, worse)).toEqual(to('delivered'))
  expect(await tell(tenant, end)).toEqual(to('delivered'))
  const last = await tenant.send({ ...high, title: 'Lasting' })
  await world.untilWaiting(tenant.projectId)
  await sql`
    update threads set told_at = told_at - interval '5 minutes' where project_id = ${tenant.projectId}
  `
  await makeDeliveriesDue(sql, tenant.projectId)
  await until(async () => Bun.deepEquals(await world.outcomes(last), to('delivered')))
  expect(world.service.of(browser).map(toChange)).toEqual([
    ...['Full: new', 'Free: silent', 'Worse: new', 'Free: silent', 'Lasting: new'],
  ])
  // The next one is told at once.
  expect(await tell(tenant, end)).toEqual(to('delivered'))
  expect(await tell(tenant, high)).toEqual(to('delivered'))
})

test('attention §2 threads that flap together are a storm again after five minutes', async () => {
  const { sql } = world.server
  const { tenant, browser } = await world.newPhone()
  const ends = fire(5).map(event => ({ ...event, state: 'resolved' }))
  await tellTogether(tenant, [...fire(5), ...ends.slice(0, 4)])
  await tell(tenant, ends[4]!)
  const lock = await lockPushDispatch(sql, tenant.projectId)
  const sent: { id: string }[] = []
  for (const event of fire(5)) sent.push(await tenant.send(event))
  await lock.release()
  const outcomes = () => Promise.all(sent.map(event => world.outcomes(event)))
  const storm = Array.from({ length: 4 }, () => ({ [browser.id]: withheld('storm') }))
  await until(async () => Bun.deepEquals((await outcomes()).slice(0, 4), storm))
  await world.untilWaiting(tenant.projectId)
  expect(await world.outcomes(sent[4]!)).toEqual({})
  await sql`
    update threads set told_at = told_at - interval '5 minutes' where project_id = ${tenant.projectId}
  `
  await makeDeliveriesDue(sql, tenant.projectId)
  await world.service.until(browser, 3)
  expect(world.service.of(browser).map(toChange)).toEqual([
    ...['1 firing in ops: again', 'All 5 resolved in ops: silent', '5 firing in ops: again'],
  ])
})

test('attention §2 devices that were not told of a thread hear of it when it becomes worse', async () => {
  const tenant = await newTenant(world.server)
  const first = await world.subscribe(tenant.account)
  await tell(tenant, { state: 'running' })
  const other = await world.subscribe(await newMember(world.server, tenant.organization, 'viewer'))
  expect(await tell(tenant, {}, 2)).toEqual({
    [first.id]: 'delivered',
    [other.id]: withheld('untold'),
  })
  const both = { [first.id]: 'delivered', [other.id]: 'delivered' }
  expect(await tell(tenant, { state: 'failed' }, 2)).toEqual(both)
  await tell(tenant, { state: 'firing', notify: false })
  expect(await tell(tenant, { state: 'resolved' }, 2)).toEqual({
    [first.id]: withheld('untold'),
    [other.id]: withheld('untold'),
  })
})

test('attention §2 of updates that wait, the newest is sent', async () => {
  const { tenant, browser } = await world.newPhone()
  const states = ['running', 'running', 'running', 'succeeded']
  const events = states.map(state => ({ thread: 'deploy', state, title: state }))
  expect(await tellTogether(tenant, events)).toEqual(
    ['delivered', withheld('replaced'), withheld('replaced'), 'delivered'].map(outcome => ({
      [browser.id]: outcome,
    })),
  )
})

test('attention §2 an update that nobody is told of replaces none, and waits while a newer one can come', async () => {
  const { tenant, browser } = await world.newPhone()
  const states = [{ state: 'running' }, {}, { notify: false }]
  expect(
    await tellTogether(
      tenant,
      states.map(state => ({ thread: 'deploy', ...state })),
    ),
  ).toEqual([
    { [browser.id]: 'delivered' },
    { [browser.id]: 'delivered' },
    { nobody: withheld('notifyFalse') },
  ])
  const waiting = await tenant.send({ thread: 'deploy' })
  await world.untilWaiting(tenant.projectId)
  await tell(tenant, { thread: 'deploy', state: 'failed' })
  await makeDeliveriesDue(world.server.sql, tenant.projectId)
  await until(async () =>
    Bun.deepEquals(await world.outcomes(waiting), { [browser.id]: withheld('replaced') }),
  )
})

test('attention §2 a device that was told of an update hears of the end, also if the first event is deleted', async () => {
  const { tenant, browser } = await world.newPhone()
  const opening = await tenant.send({ thread: 'disk', state: 'firing' })
  await world.service.until(browser, 1)
  await tell(tenant, {})
  await tenant.account.delete(`${tenant.path}/events/${opening.id}`)
  expect(await tell(tenant, { state: 'resolved' })).toEqual({ [browser.id]: 'delivered' })
})

test('attention §2 the first threads of a storm are told by themselves if its speaker is deleted', async () => {
  const { sql } = world.server
  const { tenant, browser } = await world.newPhone()
  const lock = await lockPushDispatch(sql, tenant.projectId)
  const sent: { id: string; seq: number }[] = []
  for (const event of fire(5)) sent.push(await tenant.send(event))
  await tenant.account.delete(`${tenant.path}/events/${sent[4]!.id}`)
  await lock.release()
  const titles = (await world.service.until(browser, 4)).map(toChange)
  expect(titles.toSorted()).toEqual(['Disk 0: new', 'Disk 1: new', 'Disk 2: new', 'Disk 3: new'])
})

test('attention §2 a thread that waits for no storm is the summary of a burst all the same', async () => {
  const { tenant, browser } = await world.newPhone()
  const plain = Array.from({ length: 11 }, (_, n) => ({ title: `Plain ${n}` }))
  await tellTogether(tenant, [...plain, ...fire(5)])
  await makeDeliveriesDue(world.server.sql, tenant.projectId)
  const pushes = await world.service.until(browser, 12)
  expect(pushes.map(toChange)).toContain('5 more in ops: new')
})

test('attention §2 a device that missed the beginning of a storm hears the next count, and of its end', async () => {
  const { sql } = world.server
  const { tenant, browser } = await world.newPhone()
  await tenant.account.put(`${tenant.path}/notifications`, { state: 'mute' })
  await tellTogether(tenant, fire(5))
  await tenant.account.put(`${tenant.path}/notifications`, { state: 'on' })
  await tell(tenant, fire(6)[5]!)
  await sql`update storms set speaks_at = last_at where project_id = ${tenant.projectId}`
  await tell(tenant, fire(7)[6]!)
  await tellTogether(
    tenant,
    fire(7).map(event => ({ ...event, state: 'resolved' })),
  )
  expect(world.service.of(browser).map(toChange)).toEqual([
    ...['6 firing in ops: again', '7 firing in ops: silent', 'All 7 resolved in ops: silent'],
  ])
})

test('attention §2 nothing waits for a time that was set back', async () => {
  const { sql } = world.server
  const { tenant, browser } = await world.newPhone()
  const [first, second] = fire(2)
  await tell(tenant, first!)
  const lock = await lockPushDispatch(sql, tenant.projectId)
  const sent = await tenant.send(second)
  await ageEvents(sql, tenant.projectId, { seq: sent.seq, interval: '-9 minutes' })
  await lock.release()
  expect((await world.service.until(browser, 2)).map(toChange)).toContain('Disk 1: new')
})

test('attention §2 five threads that begin to fire are one notification, and one when all are resolved', async () => {
  const { sql } = world.server
  const { tenant, browser } = await world.newPhone()
  const to = (outcome: string) => ({ [browser.id]: outcome })
  const nobody = { nobody: withheld('storm') }
  const first = Array.from({ length: 4 }, () => to(withheld('storm')))
  expect(await tellTogether(tenant, fire(12))).toEqual([
    ...first,
    ...[to('delivered'), to('delivered')],
    ...Array.from({ length: 6 }, () => nobody),
  ])
  // A worse update is its own, and so is what follows.
  const worse = { thread: 'disk 9', title: 'Worse' }
  expect(await tell(tenant, { ...worse, level: 'high' })).toEqual(to('delivered'))
  expect(await tell(tenant, { ...worse, title: 'Same' })).toEqual(to('delivered'))
  const failing = { thread: 'disk 10', title: 'Failed' }
  expect(await tell(tenant, { ...failing, state: 'running' })).toEqual(to(withheld('untold')))
  expect(await tell(tenant, { ...failing, state: 'failed' })).toEqual(to('delivered'))
  // This one has only spoken for the storm.
  expect(await tell(tenant, { thread: 'disk 4' })).toEqual(to(withheld('untold')))
  const resolved = await tellTogether(
    tenant,
    fire(12).map(event => ({ ...event, state: 'resolved' })),
  )
  expect(resolved).toEqual([
    ...Array.from({ length: 4 }, () => to(withheld('untold'))),
    ...Array.from({ length: 5 }, () => nobody),
    ...[to('delivered'), { nobody: withheld('notOpen') }, to('delivered')],
  ])
  const pushes = world.service.of(browser)
  expect(pushes.map(toChange).toSorted()).toEqual([
    ...['12 firing in ops: again', '12 firing in ops: silent', 'All 12 resolved in ops: silent'],
    ...['Disk 9: silent', 'Failed: again', 'Same: silent', 'Worse: again'],
  ])
  expect(new Set(pushes.map(({ notification }) => notification.tag)).size).toBe(3)
  // Counts that are late do not replace it.
  const all = pushes.find(push => toChange(push) === 'All 12 resolved in ops: silent')!
  const [log] = await sql<{ last_seq: string }[]>`
    select last_seq from event_logs where project_id = ${tenant.projectId}
  `
  expect(all.notification.data?.seq).toBe(Number(log!.last_seq))
})

test('attention §2 the second thread that begins to fire waits for a storm, which the first one could not', async () => {
  const { sql } = world.server
  const tenant = await newTenant(world.server)
  const { projectId } = tenant
  const browser = await world.subscribe(tenant.account)
  const [first, second, ...others] = fire(5)
  expect(await tell(tenant, first!)).toEqual({ [browser.id]: 'delivered' })
  const lock = await lockPushDispatch(sql, projectId)
  const waiting = await tenant.send(second)
  // It waits for as long as the test takes.
  await sql`
    update events set created_at = created_at + interval '50 seconds'
    where project_id = ${projectId} and seq = ${waiting.seq}
  `
  await lock.release()
  await world.untilWaiting(projectId)
  const told = await tellTogether(tenant, others)
  await makeDeliveriesDue(sql, projectId)
  const storm = { [browser.id]: withheld('storm') }
  await until(async () => Bun.deepEquals(await world.outcomes(waiting), storm))
  expect(told).toEqual([storm, storm, { [browser.id]: 'delivered' }])
  expect(world.service.of(browser).map(toChange)).toEqual(['Disk 0: new', '5 firing in ops: again'])
})

test('attention §2 a storm speaks again for a higher level, and never for those that are over', async () => {
  const { tenant, browser } = await world.newPhone()
  const levels = ['critical', 'normal', 'high', 'normal', 'high', 'normal', 'critical', 'critical']
  const events = fire(8, n => ({ level: levels[n] }))
  const outcomes = await tellTogether(tenant, events)
  // The storm does not stand in for what is more urgent.
  expect(outcomes.map(outcome => outcome[browser.id] ?? outcome['nobody'])).toEqual([
    ...['delivered', withheld('storm'), withheld('storm'), withheld('storm'), 'delivered'],
    ...['delivered', 'delivered', 'delivered'],
  ])
  expect(world.service.of(browser).map(toChange).toSorted()).toEqual([
    ...['8 firing in ops: again', '8 firing in ops: again'],
    ...['8 firing in ops: silent', '8 firing in ops: silent', 'Disk 0: new'],
  ])
  // The last one fails, and is told by itself.
  await tell(tenant, { ...events[7], state: 'running' })
  const resolved = events.slice(0, 7).map(event => ({ ...event, state: 'resolved' }))
  await tellTogether(tenant, resolved)
  await tell(tenant, { ...events[7], state: 'failed' })
  expect(toChange(world.service.of(browser).at(-1)!)).toBe('Disk 7: again')

  const over = await newTenant(world.server)
  const other = await world.subscribe(over.account)
  const ends = fire(6).map(event => ({ ...event, state: 'resolved' }))
  await tellTogether(over, [...fire(6), ...ends])
  expect(world.service.of(other)).toEqual([])
})

test('attention §2 the bell of a view tells of each match in a storm, also if the speaker does not match', async () => {
  const { tenant, browser } = await world.newPhone()
  const view = await tenant.account.post(`${tenant.path}/views`, { name: 'x', q: 'mine' })
  await tenant.account.put(`${tenant.path}/views/${view.body.data.id}/bell`, { isOn: true })
  await tenant.account.put(`${tenant.path}/notifications`, { state: 'mute' })
  const events = fire(9, n => ({ title: n % 7 === 0 ? `Mine ${n}` : `Disk ${n}` }))
  await tellTogether(tenant, [...events, ...events.map(event => ({ ...event, state: 'resolved' }))])
  // Of this thread, the update alone matches.
  await tell(tenant, { state: 'running' })
  const updates = ['Mine, too', 'Another'].map(title => ({ thread: 'disk', title }))
  await tellTogether(tenant, updates)
  const titles = [
    'Mine 0: new',
    'Mine 0: silent',
    'Mine 7: new',
    'Mine 7: silent',
    'Mine, too: again',
  ]
  await until(() => world.service.of(browser).length >= titles.length)
  expect(world.service.of(browser).map(toChange).toSorted()).toEqual(titles)
})

interface Change {
  seq: number
  atMs: number
  key: number
  /** Null if the thread of the key is resolved, and not opened. */
  rank: number | null
}

/** Returns `telling` and the thread of each event that opens or resolves one in a channel. */
function foresee(changes: Change[]) {
  const threads = new Map<number, { seq: number; storm: number | null; isOpen: boolean }>()
  const loud = new Set<number>()
  let storm = { seq: 0, lastMs: -Infinity, rank: 0, speaksMs: 0, speaksRank: 0 }
  let alone: { thread: { storm: number | null }; key: number; atMs: number }[] = []
  const tell = ({ seq, atMs, key, rank }: Change): number | null => {
    if (rank === null) {
      const thread = threads.get(key)!
      thread.isOpen = false
      if (thread.storm === null) return 1
      const isLast = ![...threads.values()].some(one => one.isOpen && one.storm === thread.storm)
      if (isLast && storm.seq === thread.storm) storm.lastMs = -Infinity
      return isLast ? 4 : loud.has(thread.seq) ? 1 : 3
    }
    const thread = { seq, storm: null as number | null, isOpen: true }
    threads.set(key, thread)
    if (rank === 0) return null
    if (atMs - storm.lastMs <= 30_000) {
      thread.storm = storm.seq
      storm.lastMs = atMs
      if (rank > storm.rank) {
        storm.rank = rank
        return 4
      }
      const isDue = atMs >= storm.speaksMs
      if (!isDue && rank <= storm.speaksRank) return 3
      storm.speaksRank = rank
      if (isDue) storm.speaksMs = atMs + 30_000
      return 5
    }
    alone = alone.filter(one => atMs - one.atMs <= 30_000 && one.key !== key)
    alone.push({ thread, key, atMs })
    if (alone.length < 5) {
      loud.add(seq)
      storm.seq = 0
      return null
    }
    for (const one of alone) one.thread.storm = seq
    storm = { seq, lastMs: atMs, rank, speaksMs: atMs, speaksRank: rank }
    alone = []
    return 4
  }
  return changes.map(change => ({
    seq: change.seq,
    telling: tell(change),
    thread: threads.get(change.key)!,
  }))
}

test('attention §2 storms begin, speak and end as a plain model says, for random threads', async () => {
  const { sql } = world.server
  const { projectId, send } = await newTenant(world.server)
  await send()
  const [{ id: channel }] = await sql<[{ id: string }]>`
    select id from channels where project_id = ${projectId}
  `
  const pick = <T>(all: readonly T[]) => all[Math.floor(Math.random() * all.length)]!
  let atMs = Date.now()
  const open = new Set<number>()
  const keys = Array.from({ length: 25 }, (_, n) => n)
  const changes = Array.from({ length: 3_000 }, (_, n): Change => {
    atMs += pick([0, 0, 0, 500, 1_000, 3_000, 7_000, 15_000, 30_000, 30_001])
    // Now and then, all threads end.
    const key = pick(n % 60 < 25 && open.size > 0 ? [...open] : keys)
    const isOpening = !open.delete(key)
    if (isOpening) open.add(key)
    return { seq: n + 2, atMs, key, rank: isOpening ? pick([0, 1, 1, 1, 1, 1, 2, 3]) : null }
  })
  const told = await sql<{ seq: number; telling: number | null }[]>`
    select u.seq, a.tellings[1] as telling
    from json_to_recordset(${JSON.stringify(changes)}::text::json) as u (seq int, "atMs" float8, key int, rank smallint)
      cross join lateral append_threads(
        project_ids => array[${projectId}]::uuid[], numbers => array[1], seqs => array[u.seq]::bigint[],
        channel_ids => array[${channel}]::uuid[], occurred_ats => null, at => to_timestamp(u."atMs" / 1000),
        keys => array[u.key]::text[], notifies => null, levels => array[u.rank],
        states => array[case when u.rank is null then 0 else 3 end]::smallint[]
      ) a
  `
  const stored = await sql<{ seq: number; storm: number | null }[]>`
    select e.seq::int as seq, t.storm_seq::int as storm
    from threads t
      join thread_events e on e.project_id = t.project_id and e.thread_seq = t.thread_seq
    where t.project_id = ${projectId}
  `
  const storms = new Map(stored.map(({ seq, storm }) => [seq, storm]))
  const found = told.map(one => ({ ...one, storm: storms.get(one.seq) ?? null }))
  const foreseen = foresee(changes)
  expect(found).toEqual(
    foreseen.map(({ seq, telling, thread }) => ({ seq, telling, storm: thread.storm })),
  )
  expect(new Set(found.map(({ telling }) => telling)).size).toBe(5)
})
