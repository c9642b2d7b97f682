import { expect, test } from 'bun:test'
import { NIL_UUID, parseId } from '../../../src/base/ids.ts'
import { WITHHELD_REASONS } from '../../../src/delivery/push/dispatch.ts'
import { listAuditEntries } from '../../support/audit.ts'
import { listBlocked, lockPushDispatch } from '../../support/database-lock.ts'
import { newManagementToken } from '../../support/worlds/management-token.ts'
import { openPushWorld, toDailyHours } from '../../support/worlds/push.ts'
import { newMember } from '../../support/worlds/signed-in-account.ts'
import { until } from '../../support/until.ts'
import { forProcess } from '../../support/for-file.ts'

const world = forProcess(openPushWorld)

const { silenced, wasSilenced } = WITHHELD_REASONS
const SILENCED = { nobody: `withheld: ${silenced}` }
const reason = 'Moving the database'

const fire = (n: number, more: object = {}) => ({
  ...{ thread: `disk ${n}`, title: `Disk ${n}`, state: 'firing', level: 'high' },
  ...more,
})

/** A tenant with a device, and what is told on it. */
async function openTenant() {
  const { sql } = world.server
  const { tenant, browser } = await world.newPhone()
  const { projectId, path, account } = tenant
  for (const name of ['ops', 'others']) await account.post(`${path}/channels`, { name })
  /** Makes the next step of each silence due, and resolves when it was made. */
  async function step(): Promise<void> {
    const steps = await sql<{ id: string; claimed_at: Date | null }[]>`
      update outbox o set available_at = now()
      from (select id, claimed_at from outbox where project_id = ${projectId} and kind = 'timer' and token is null for update) b
      where o.id = b.id
      returning b.id, b.claimed_at
    `
    for (const { id, claimed_at } of steps) {
      await until(async () => {
        const [row] = await sql`select token, claimed_at from outbox where id = ${id}`
        return !row || (row['token'] === null && Number(row['claimed_at']) > Number(claimed_at))
      })
    }
  }
  return {
    ...tenant,
    browser,
    delivered: { [browser.id]: 'delivered' },
    titles: () => world.service.of(browser).map(({ notification }) => notification.title),
    /** Sends an event, and resolves with the outcomes of its pushes. */
    async tell(event: Record<string, unknown> = {}) {
      const sent = await tenant.send(event)
      await until(async () => Object.keys(await world.outcomes(sent)).length > 0)
      return world.outcomes(sent)
    },
    async silence(body: object) {
      const answer = await account.post(`${path}/silences`, { reason, ...body })
      expect([answer.status, answer.text]).toEqual([201, answer.text])
      return answer.body.data
    },
    end: ({ id }: { id: string }) => account.delete(`${path}/silences/${id}`),
    list: async () => (await account.get(`${path}/silences`)).body.data.items,
    step,
    /** Moves the silences, so that they end after an interval from now, and makes a step. */
    async moveTo(end: string): Promise<void> {
      await sql`
        update silences set
          starts_at = starts_at - (ends_at - now() - ${end}::interval), ends_at = now() + ${end}::interval
        where project_id = ${projectId}
      `
      await step()
    },
    untilEnded: () =>
      until(
        async () => (await sql`select from silences where project_id = ${projectId}`).count === 0,
      ),
  }
}

test('attention §3 a silence keeps quiet also what is critical, and its end tells once what still fires', async () => {
  const one = await openTenant()
  await one.tell(fire(0))
  const silence = await one.silence({ channel: 'OPS', minutes: 60 })
  expect(await one.tell({ channelName: 'others' })).toEqual(one.delivered)
  expect(await one.tell({ level: 'critical' })).toEqual(SILENCED)
  // The first one was told before, the second recovers, and the third becomes worse.
  for (const event of [fire(1), fire(2), { thread: 'disk 1', state: 'resolved' }])
    expect(await one.tell(event)).toEqual(SILENCED)
  const worse = await one.send(fire(2, { title: 'Worse', level: 'critical' }))
  await world.untilDispatched(one.projectId)
  expect(await world.outcomes(worse)).toEqual(SILENCED)
  const before = one.titles()
  const uuid = parseId('sil', silence.id) ?? ''
  expect(before).toEqual(['Disk 0', 'Hello'])
  expect((await one.end(silence)).status).toBe(200)
  await one.untilEnded()
  await until(async () => one.browser.id in (await world.outcomes(worse)))
  expect(await world.outcomes(worse)).toEqual({
    ...one.delivered,
    nobody: `withheld: ${wasSilenced}`,
  })
  // Its step is repeated, as after a crash before it was settled.
  await until(
    async () => (await world.server.sql`select from outbox where event_id = ${uuid}`).count === 0,
  )
  await world.server.sql`
    insert into outbox (project_id, event_id, kind, target_id)
    values (${one.projectId}, ${uuid}, 'timer', ${uuid})
  `
  await one.step()
  expect(one.titles()).toEqual([...before, 'Worse'])
  expect((await one.end(silence)).status).toBe(404)
  const entries = await listAuditEntries(world.server.sql, one.organization.uuid)
  const { id: target } = silence
  expect(entries.filter(entry => entry.target === target)).toEqual([
    { action: 'silence.created', target, accountId: one.account.uuid, details: {} },
    { action: 'silence.ended', target, accountId: one.account.uuid, details: {} },
  ])
})

test('attention §3 a thread that was silenced is told at the end, also if it was told before', async () => {
  const one = await openTenant()
  await one.tell(fire(1))
  const silence = await one.silence({ channel: 'ops', thread: 'disk 1', minutes: 60 })
  expect(await one.tell(fire(1, { level: 'critical' }))).toEqual(SILENCED)
  expect(await one.tell(fire(2))).toEqual(one.delivered)
  await one.end(silence)
  expect((await world.service.until(one.browser, 3)).length).toBe(3)
  await one.untilEnded()
})

test('attention §3 a silence also holds back what was already to be sent', async () => {
  const one = await openTenant()
  world.service.script(one.browser, { status: 503 }, { status: 201 })
  const sent = await one.send(fire(1, { level: 'critical' }))
  await world.service.until(one.browser, 1)
  const silence = await one.silence({ minutes: 60 })
  await world.untilWaiting(one.projectId)
  const { sql } = world.server
  // The server was killed in its first attempt.
  await sql`
    update outbox set available_at = now(), claim_count = 1 where project_id = ${one.projectId} and kind = 'push'
  `
  await until(async () => one.browser.id in (await world.outcomes(sent)))
  const [withheld] = Object.values(await world.outcomes(sent))
  expect(withheld).toStartWith(`withheld: ${silenced}`)
  await one.end(silence)
  await until(async () => (await world.outcomes(sent))[one.browser.id] === 'delivered')
  expect(one.titles()).toEqual(['Disk 1', 'Disk 1'])
})

test('attention §3 what its end would not tell is sent in a silence, if it was before it', async () => {
  const one = await openTenant()
  world.service.script(one.browser, { status: 503 }, { status: 201 })
  const sent = await one.send()
  await world.service.until(one.browser, 1)
  await one.silence({ minutes: 60 })
  await world.untilWaiting(one.projectId)
  const { sql } = world.server
  await sql`update outbox set available_at = now() where project_id = ${one.projectId} and kind = 'push'`
  await until(async () => (await world.outcomes(sent))[one.browser.id] === 'delivered')
})

test('attention §3 at the end of a silence of a thread, stages tell those again who were told', async () => {
  const one = await openTenant()
  await one.tell({ channelName: 'ops', notify: false })
  const { body } = await one.account.get(`${one.path}/channels`)
  const { id } = body.data.items.find(({ name }: { name: string }) => name === 'ops')
  const stages = [{ afterMinutes: 0, to: { members: [one.account.id] } }]
  await one.account.patch(`${one.path}/channels/${id}`, { escalation: { level: 'high', stages } })
  await one.send(fire(1))
  await world.service.until(one.browser, 1)
  const silence = await one.silence({ channel: 'ops', thread: 'disk 1', minutes: 60 })
  await one.end(silence)
  await world.service.until(one.browser, 2)
  await one.untilEnded()
  await one.step()
  expect(one.titles()).toEqual(['Disk 1', 'Disk 1'])
})

test('attention §3 a thread is told at the end by what is left of it', async () => {
  const one = await openTenant()
  const silence = await one.silence({ minutes: 60 })
  expect(await one.tell(fire(1))).toEqual(SILENCED)
  const worse = await one.send(fire(1, { title: 'Worse', level: 'critical' }))
  await world.untilDispatched(one.projectId)
  expect((await one.account.delete(`${one.path}/events/${worse.id}`)).status).toBe(200)
  await one.end(silence)
  await one.untilEnded()
  await world.service.until(one.browser, 1)
  expect(one.titles()).toEqual(['Disk 1'])
})

test('attention §3 the bell of a view tells at the end of a silence, too', async () => {
  const one = await openTenant()
  const view = await one.account.post(`${one.path}/views`, { name: 'Disks', q: 'disk' })
  await one.account.put(`${one.path}/views/${view.body.data.id}/bell`, { isOn: true })
  await one.account.put(`${one.path}/notifications`, { state: 'mute' })
  const silence = await one.silence({ minutes: 60 })
  expect(await one.tell(fire(1))).toEqual(SILENCED)
  await one.end(silence)
  await world.service.until(one.browser, 1)
  expect(one.titles()).toEqual(['Disk 1'])
})

test('attention §2 a thread that fires again was not told of in a silence', async () => {
  const one = await openTenant()
  const silence = await one.silence({ minutes: 60 })
  expect(await one.tell(fire(1))).toEqual(SILENCED)
  await one.tell({ thread: 'disk 1', state: 'resolved' })
  await one.end(silence)
  await one.untilEnded()
  expect(await one.tell(fire(1, { title: 'Again' }))).toEqual(one.delivered)
})

test('attention §3 a silence ends also after the server stopped often during its step', async () => {
  const one = await openTenant()
  await one.silence({ minutes: 60 })
  await one.step()
  const { sql } = world.server
  await sql`update outbox set claim_count = 20 where project_id = ${one.projectId} and kind = 'timer'`
  const pending = await one.account.get(`${one.path}/deliveries`)
  expect(pending.body.data.items).toMatchObject([{ target: { name: 'End of a silence' } }])
  await one.moveTo('0')
  await one.untilEnded()
})

test('attention §3 a silence that has ended and still tells does not count', async () => {
  const one = await openTenant()
  const { sql } = world.server
  await sql`
    insert into silences (project_id, id, reason, created_at, starts_at, ends_at)
    select ${one.projectId}, gen_random_uuid(), 'Over', now(), now(), now() from generate_series(1, 100)
  `
  await one.silence({ minutes: 60 })
})

test('attention §3 another silence that has the thread keeps it quiet until it ends, too', async () => {
  const one = await openTenant()
  const all = await one.silence({ minutes: 60 })
  const part = await one.silence({ channel: 'ops', minutes: 30 })
  const sent = await one.send(fire(1))
  await world.untilDispatched(one.projectId)
  await one.end(all)
  await until(async () => (await one.list()).length === 1)
  await one.step()
  expect(await world.outcomes(sent)).toEqual(SILENCED)
  await one.end(part)
  expect(await world.service.until(one.browser, 1)).toHaveLength(1)
  await one.untilEnded()
})

test('attention §3 a storm that was silenced is told as one, and a silence of its speaker does not keep it quiet', async () => {
  const one = await openTenant()
  const silence = await one.silence({ channel: 'ops', minutes: 60 })
  for (let n = 0; n < 5; n++) expect(await one.tell(fire(n))).toEqual(SILENCED)
  // The worst speaks for all, so that it is repeated, also if another one joins after it.
  const worst = await one.send(fire(5, { level: 'critical' }))
  expect(await one.tell(fire(6))).toEqual(SILENCED)
  await one.end(silence)
  await one.untilEnded()
  const timers = await world.server.sql<{ event_id: string }[]>`
    select event_id from outbox where project_id = ${one.projectId} and kind = 'timer' and event_id <> target_id
  `
  expect(timers.map(row => row.event_id)).toEqual([parseId('evt', worst.id) ?? ''])
  await one.silence({ channel: 'others', thread: 'disk 4', minutes: 60 })
  const lock = await lockPushDispatch(world.server.sql, one.projectId)
  for (let n = 0; n < 5; n++) await one.send(fire(n, { channelName: 'others' }))
  await lock.release()
  await until(() => one.titles().includes('5 firing in others'))
  expect(one.titles()).toEqual(['7 firing in ops', '5 firing in others'])
})

test('attention §3 a silence until it is resolved ends then, and that of a thread keeps one generation quiet', async () => {
  const one = await openTenant()
  await one.tell(fire(1))
  await one.silence({ channel: 'ops', thread: 'disk 1', untilResolved: true })
  await one.silence({ untilResolved: true, channel: 'ops' })
  await one.step()
  expect(await one.list()).toMatchObject([
    { thread: null, untilResolved: true, endsAt: null, isActive: true },
    { thread: 'disk 1', untilResolved: true, endsAt: null, isActive: true },
  ])
  expect(await one.tell({ thread: 'disk 1', state: 'resolved' })).toEqual(SILENCED)
  await world.server.sql`
    delete from silences where project_id = ${one.projectId} and thread is null
  `
  expect(await one.tell(fire(1, { title: 'Next generation', level: 'critical' }))).toEqual(
    one.delivered,
  )
  await one.step()
  expect(await one.list()).toEqual([])
  expect(one.titles()).toEqual(['Disk 1', 'Next generation'])
  const none = await one.account.post(`${one.path}/silences`, {
    ...{ reason, channel: 'ops', thread: 'never', untilResolved: true },
  })
  expect(none.status).toBe(409)
})

test.each(['its sentences', 'the words of 0.3.0'])(
  'attention §3 what a dispatch with %s still silences while the silence ends is told',
  async sentences => {
    const one = await openTenant()
    await one.tell(fire(1))
    await one.silence({ channel: 'ops', untilResolved: true })
    await one.step()
    await one.tell({ thread: 'disk 1', state: 'resolved' })
    const { sql } = world.server
    await sql.begin(async tx => {
      await tx`select from delivery_cursors where project_id = ${one.projectId} and kind = 'push' for update`
      await sql`update outbox set available_at = now() where project_id = ${one.projectId} and kind = 'timer'`
      await until(async () => (await listBlocked(sql)).length > 0)
      await one.send(fire(2, { level: 'critical' }))
      const given = sentences === 'its sentences' ? WITHHELD_REASONS : {}
      await tx`
        select from dispatch_push_ranges(array[${one.projectId}]::uuid[], 100, ${JSON.stringify(given)}::text::jsonb)
      `
    })
    await world.service.until(one.browser, 2)
    expect(one.titles()).toEqual(['Disk 1', 'Disk 2'])
    await one.untilEnded()
  },
)

test('attention §3 weekly hours come again, and tell each time', async () => {
  const one = await openTenant()
  const hours = toDailyHours(-60, 60)
  const silence = await one.silence({ hours })
  expect(silence).toMatchObject({ hours, isActive: true, untilResolved: false })
  expect(await one.tell(fire(1))).toEqual(SILENCED)
  // As if its hours were over.
  const over = toDailyHours(30, 60)
  await world.server.sql`
    update silences set hours = ${JSON.stringify(over)}::text::jsonb where project_id = ${one.projectId}
  `
  await one.moveTo('0')
  await world.service.until(one.browser, 1)
  const [next] = await one.list()
  expect(next).toMatchObject({ id: silence.id, hours: over, isActive: false })
  expect(next.startsAt.slice(11, 16)).toBe(over[0]!.from)
  expect(await one.tell(fire(1, { title: 'Worse', level: 'critical' }))).toEqual(one.delivered)
  expect((await one.end(silence)).status).toBe(200)
  expect(await one.list()).toEqual([])
})

test('attention §3 the author is warned ten minutes before the end, once, if anything still fires', async () => {
  const one = await openTenant()
  const other = await newMember(world.server, one.organization, 'member')
  const others = await world.subscribe(other)
  await one.silence({ channel: 'ops', minutes: 120 })
  await one.silence({ channel: 'ops', thread: 'never', minutes: 60 })
  for (const n of [1, 2]) await one.tell(fire(n))
  await one.moveTo('11 minutes')
  await one.moveTo('9 minutes 50 seconds')
  await one.step()
  await world.service.until(one.browser, 1)
  expect(one.titles()).toEqual(['Silence of ops ends in 10 minutes: 2 still firing'])
  const { sql } = world.server
  expect(world.service.of(others)).toEqual([])
  await until(
    async () => (await sql`select from outbox where project_id = ${NIL_UUID}`).count === 0,
  )
  const [record] = await sql`
    select count(*)::int as n from deliveries where project_id = ${NIL_UUID} and target_id = ${parseId('psh', one.browser.id) ?? ''}
  `
  expect(record).toEqual({ n: 1 })
})

test('a silence ends with its channel, and its step finds nothing', async () => {
  const one = await openTenant()
  await one.silence({ channel: 'others', minutes: 60 })
  const { sql } = world.server
  await sql`delete from channels where project_id = ${one.projectId}`
  expect(await one.list()).toEqual([])
  await one.step()
  const rows =
    await sql`select state from deliveries where project_id = ${one.projectId} and kind = 'timer'`
  expect(rows.map(({ state }) => state)).toEqual(['cancelled'])
})

test('an API key silences and ends, once for an Idempotency-Key, and is named as the author', async () => {
  const one = await openTenant()
  await one.tell()
  const body = { channel: 'ops', minutes: 5, reason }
  const post = (json: object, key = 'deploy 7') =>
    one.v1.post('/v1/silences', json, { 'Idempotency-Key': key })
  const [first, again] = [await post(body), await post(body)]
  expect(first.status).toBe(201)
  expect(first.body.data).toMatchObject({ channelName: 'ops', by: 'test', reason, thread: null })
  expect([again.status, again.text]).toEqual([201, first.text])
  expect(again.headers.get('x-idempotent-replay')).toBe('true')
  const reused = await post({ ...body, minutes: 6 })
  expect(reused.status).toBe(422)
  // The name of a member stays out of what an organization's token has done.
  const token = await newManagementToken(world.server, {
    ...{ accountId: one.account.uuid, organizationId: one.organization.uuid, name: 'Terraform' },
  })
  await token.post(`${one.path}/silences`, body)
  await one.silence({ minutes: 5 })
  const listed = (await one.list()) as { by: string }[]
  expect(listed.map(({ by }) => by)).toEqual(['Test person', 'Terraform', 'test'])
  const path = `/v1/silences/${first.body.data.id}`
  expect((await one.v1.request(path, { method: 'DELETE' })).status).toBe(200)
  expect(await one.list()).toHaveLength(2)
  for (const [json, field] of [
    [{ reason, minutes: 5, thread: 'disk' }, 'channel'],
    [{ reason, minutes: 5, channel: 'nowhere' }, 'channel'],
    [{ reason }, 'minutes'],
    [{ reason, minutes: 5, untilResolved: true }, 'minutes'],
    [{ reason, hours: [] }, 'hours'],
    [{ minutes: 40_321, reason }, 'minutes'],
    [{ minutes: 5, reason: ' ' }, 'reason'],
  ] as const) {
    const refused = await post(json, 'another')
    expect([refused.status, refused.body.details[0].path]).toEqual([400, [field]])
  }
})

test('attention §3 the end of a silence tells ten threads a minute, the worst first', async () => {
  const one = await openTenant()
  await one.silence({ minutes: 60 })
  for (let n = 0; n < 12; n++) {
    // A channel of its own keeps each of them out of a storm.
    const level = n < 10 ? 'high' : 'critical'
    expect(await one.tell(fire(n, { channelName: `ops ${n}`, level }))).toEqual(SILENCED)
  }
  const told: number[] = []
  await one.moveTo('0')
  for (const count of [10, 12]) {
    await world.service.until(one.browser, count)
    told.push(one.titles().length)
    if (count < 12) await one.step()
  }
  expect(told).toEqual([10, 12])
  const critical = [10, 11].map(n => `Disk ${n}`)
  expect(one.titles().slice(0, 10)).toEqual(expect.arrayContaining(critical))
  expect(new Set(one.titles()).size).toBe(12)
  await one.untilEnded()
})
