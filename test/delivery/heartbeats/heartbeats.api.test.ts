import { expect, test } from 'bun:test'
import { parseId } from '../../../src/base/ids.ts'
import { tryToCheckClock } from '../../../src/database/clock.ts'
import { createPool } from '../../../src/database/pool.ts'
import { listAuditEntries } from '../../support/audit.ts'
import { withSharedServer } from '../../support/servers/server.ts'
import { newMember } from '../../support/worlds/signed-in-account.ts'
import { newTenant } from '../../support/worlds/tenant.ts'
import { until } from '../../support/until.ts'

const server = withSharedServer()
const RUN = '01234567-89ab-4cde-8f01-23456789abcd'
const OTHER = 'fedcba98-7654-4321-8fed-cba987654321'

/** A tenant with a heartbeat of a period of an hour and a grace of 10 minutes. */
async function openHeartbeat(fields: object = {}) {
  const { sql } = server
  const tenant = await newTenant(server, 'member')
  const { account, path } = tenant
  await account.post(`${path}/channels`, { name: 'ops' })
  const made = await account.post(`${path}/heartbeats`, {
    ...{ name: 'Backup', channel: 'ops', periodSeconds: 3600, graceSeconds: 600, ...fields },
  })
  expect([made.status, made.text]).toEqual([201, made.text])
  const { id, url } = made.body.data
  const uuid = parseId('hbt', id)!
  const read = async () => {
    const { items } = (await account.get(`${path}/heartbeats`)).body.data
    return items.find((one: { id: string }) => one.id === id)
  }
  return {
    ...tenant,
    id,
    url,
    read,
    status: async () => (await read()).status,
    /** Sends a ping, and resolves with the status and the body. */
    async ping(suffix = '', init: RequestInit = {}) {
      const response = await fetch(`${url}${suffix}`, init)
      return `${response.status} ${await response.text()}`
    },
    /** The pings as `kind` with exit code and run, the oldest first. */
    async pings() {
      const { items } = (await account.get(`${path}/heartbeats/${id}/pings`)).body.data
      return items.toReversed()
    },
    edit: (body: object) => account.patch(`${path}/heartbeats/${id}`, body),
    /** Lets time pass for the heartbeat, its pings and its timer, whose step waits for `step`. */
    async pass(time: string): Promise<void> {
      await sql`
        update heartbeats set
          last_ping_at = last_ping_at - ${time}::interval, started_at = started_at - ${time}::interval,
          due_at = due_at - ${time}::interval, timer_at = timer_at - ${time}::interval,
          extended_to = extended_to - ${time}::interval
        where id = ${uuid}
      `
      await sql`update heartbeat_pings set at = at - ${time}::interval where heartbeat_id = ${uuid}`
      await sql`
        update outbox set
          token = null,
          available_at = case
            when available_at - ${time}::interval > now() then available_at - ${time}::interval
            else now() + interval '1 hour'
          end
        where event_id = ${uuid}
      `
    },
    /** The seconds until the timer is due, to the minute; undefined without a timer. */
    async timer(): Promise<number | undefined> {
      const [row] = await sql<{ due: number }[]>`
        select round(extract(epoch from available_at - now()) / 60)::int * 60 as due
        from outbox where event_id = ${uuid}
      `
      return row?.due
    },
    enqueue: () =>
      sql`
        insert into outbox (project_id, event_id, kind, target_id, available_at)
        values (${tenant.projectId}, ${uuid}, 'timer', ${uuid}, now() + interval '1 hour')
      `,
    /**
     * Makes the timer due, and resolves when its step was made. A busy machine can check the clock
     * so late that heartbeats get their grace again. Only a test of that keeps such a time.
     */
    async step({ isDownKept = false } = {}): Promise<void> {
      const steady = isDownKept ? sql`` : sql`, down_from = null, down_to = null`
      // The end of a former step would move the timer again.
      let before: { claimed_at: Date | null } | undefined
      await until(async () => {
        await sql`update clock set checked_at = now()${steady}`
        ;[before] = await sql<{ claimed_at: Date | null }[]>`
          update outbox set available_at = now() where event_id = ${uuid} and token is null
          returning claimed_at
        `
        return before !== undefined
      })
      await until(async () => {
        await sql`update clock set checked_at = now()${steady}`
        const [row] = await sql`select token, claimed_at from outbox where event_id = ${uuid}`
        const isLater = Number(row?.['claimed_at']) > Number(before?.claimed_at)
        return !row || (row['token'] === null && isLater)
      })
    },
    /** The events of the heartbeat, as `state: title`, the oldest first. */
    async events(): Promise<any[]> {
      const answer = await tenant.v1.get(`/v1/events?threads=all&thread=heartbeat:${id}`)
      expect(answer.status).toBe(200)
      return answer.body.data.items.toReversed()
    },
    async told() {
      return (await this.events()).map(({ state, title }) => `${state}: ${title}`)
    },
  }
}

test('attention §7 a ping is answered as healthchecks.io does', async () => {
  const one = await openHeartbeat()
  expect(one.url).toMatch(/^http:\/\/localhost:\d+\/ping\/[0-9a-f-]{36}$/)
  for (const method of ['HEAD', 'GET', 'POST']) {
    const response = await fetch(one.url, { method, headers: { 'user-agent': 'x'.repeat(300) } })
    expect([response.status, await response.text()]).toEqual([200, method === 'HEAD' ? '' : 'OK'])
    expect(response.headers.get('content-type')).toStartWith('text/plain')
    expect(response.headers.get('access-control-allow-origin')).toBe('*')
  }
  expect(
    (await one.pings()).map(({ method, userAgent }: any) => [method, userAgent.length]),
  ).toEqual(['HEAD', 'GET', 'POST'].map(method => [method, 200]))
  expect(await one.ping('/256')).toBe('400 invalid url format')
  expect(await one.ping('/99999999999')).toBe('400 invalid url format')
  expect(await one.ping('?rid=run')).toBe('400 invalid uuid format')
  for (const suffix of ['/', '/start/']) expect(await one.ping(suffix)).toBe('200 OK')
  const before = await one.pings()
  for (const url of [
    `${server.url}/ping/${RUN}`,
    `${server.url}/ping/backup`,
    `${one.url}/other`,
  ]) {
    const response = await fetch(url)
    expect([response.status, await response.text()]).toEqual([404, 'not found'])
    expect(response.headers.get('access-control-allow-origin')).toBe('*')
  }
  expect(await one.pings()).toEqual(before)
})

test('attention §7 success and exit code 0 are up, /fail and other codes are down at once', async () => {
  const one = await openHeartbeat()
  expect(await one.ping('/log', { method: 'POST', body: 'hello' })).toBe('200 OK')
  expect(await one.status()).toBe('new')
  expect(await one.ping('/0')).toBe('200 OK')
  expect(await one.read()).toMatchObject({ status: 'up' })
  expect(await one.told()).toEqual([])
  const body = `${'x'.repeat(3000)}\nno space left\n`
  expect(await one.ping('/255', { method: 'POST', body })).toBe('200 OK')
  expect(await one.read()).toMatchObject({ status: 'down', dueAt: null })
  // It is told once.
  await one.ping('/fail')
  await one.ping('/log')
  expect(await one.status()).toBe('down')
  await one.ping()
  await one.ping('/fail')
  const told = ['firing: Backup failed', 'resolved: Backup reports again', 'firing: Backup failed']
  expect(await one.told()).toEqual(told)
  const [failed, , again] = await one.events()
  expect(failed.description).toStartWith('Exit code 255.\n\nxxx')
  expect(failed.description).toEndWith('xxx\nno space left')
  expect(failed.description.length).toBeLessThan(2100)
  expect(again.description).toBe('It reported a failure.')
  expect(failed).toMatchObject({ channelName: 'ops', thread: `heartbeat:${one.id}` })
  expect((await one.pings()).map(({ kind, exitCode }: any) => [kind, exitCode])).toEqual([
    ...[
      ['log', null],
      ['success', 0],
      ['fail', 255],
      ['fail', null],
      ['log', null],
      ['success', null],
      ['fail', null],
    ],
  ])
})

test('attention §7 success ends a run and gives its length, and rid pairs runs', async () => {
  const one = await openHeartbeat()
  await one.ping()
  await one.pass('30 minutes')
  const { lastPingAt } = await one.read()
  await one.ping('/start')
  expect(await one.read()).toMatchObject({ lastPingAt, startedAt: expect.any(String) })
  await one.pass('2 minutes')
  await one.ping()
  expect((await one.read()).startedAt).toBeNull()
  await one.ping(`/start?rid=${RUN}`)
  await one.pass('1 minute')
  await one.ping(`/start?rid=${OTHER}`)
  await one.pass('1 minute')
  // The first run ends, and the second one goes on.
  await one.ping(`?rid=${RUN.toUpperCase()}`)
  expect((await one.read()).startedAt).toBeString()
  await one.ping(`/3?rid=${OTHER}`)
  const ended = (await one.pings()).filter(({ kind }: any) => ['success', 'fail'].includes(kind))
  const minutes = ended.map(({ tookMs }: any) => tookMs && Math.round(tookMs / 60_000))
  expect(minutes).toEqual([null, 2, 2, 1])
  expect((await one.events()).at(-1).description).toBe('Exit code 3 after 1 minute.')
})

test('attention §7 a run that has not ended within the grace is down', async () => {
  const one = await openHeartbeat()
  expect(await one.timer()).toBeUndefined()
  await one.ping('/start')
  expect(await one.timer()).toBe(600)
  await one.pass('10 minutes')
  await one.step()
  expect(await one.status()).toBe('down')
  expect(await one.told()).toEqual(['firing: Backup has not reported'])
  expect((await one.events())[0].description).toMatch(
    /^A run started at .* UTC and has not ended within 10 minutes\.$/,
  )
  // A start does not bring it up, and is not waited for.
  await one.ping('/start')
  expect(await one.read()).toMatchObject({ status: 'down', dueAt: null })
})

test('attention §7 a heartbeat that does not report is told with its last runs, and success resolves it', async () => {
  const one = await openHeartbeat()
  for (const suffix of ['/7', '', '', '']) await one.ping(suffix)
  expect(await one.timer()).toBe(4200)
  // A ping moves no timer: its step finds that it is early.
  await one.pass('1 hour')
  await one.ping()
  expect(await one.timer()).toBe(600)
  await one.step()
  expect(await one.timer()).toBe(4200)
  await one.pass('70 minutes')
  await one.step()
  expect(await one.status()).toBe('down')
  const missed = (await one.events()).at(-1)
  expect(missed).toMatchObject({ title: 'Backup has not reported', state: 'firing' })
  expect(missed.description).toMatch(
    /^Last ping: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\.\nExpected by .* UTC: every 1 hour, with 10 minutes of grace\.\n\nLast runs:\n(- [^\n]*: succeeded\n?){3}$/,
  )
  await until(async () => (await one.timer()) === undefined)
  // Its step is repeated, as after a crash before it was settled.
  await one.enqueue()
  await one.step()
  await one.ping()
  const told = ['firing: Backup has not reported', 'resolved: Backup reports again']
  expect((await one.told()).slice(-2)).toEqual(told)
  expect(await one.timer()).toBe(4200)
})

test('attention §7 a paused heartbeat is woken by success, and not by /start', async () => {
  const one = await openHeartbeat()
  await one.ping('/fail')
  expect((await one.edit({ isPaused: true })).body.data.status).toBe('paused')
  await one.ping('/start')
  await one.ping('/log')
  expect(await one.read()).toMatchObject({ status: 'paused', dueAt: null })
  await one.ping()
  expect(await one.status()).toBe('up')
  expect(await one.told()).toEqual(['firing: Backup failed', 'resolved: Backup was paused'])
  await one.ping('/start')
  const running = await one.read()
  expect((await one.edit({ isPaused: false })).body.data).toEqual(running)
  expect((await one.edit({})).body.data).toEqual(running)
  await one.edit({ isPaused: true })
  expect((await one.edit({ isPaused: false })).body.data).toMatchObject({
    status: 'new',
    dueAt: null,
  })
})

test('attention §7 a body is cut, not refused, and what is no text is replaced', async () => {
  const one = await openHeartbeat()
  const body = `${'x'.repeat(99_998)}😀${'y'.repeat(900_000)}`
  expect(await one.ping('', { method: 'POST', body })).toBe('200 OK')
  expect(await one.ping('', { method: 'POST', body: new Uint8Array([65, 0, 255, 66]) })).toBe(
    '200 OK',
  )
  const [long, odd] = await one.pings()
  expect(long.body).toBe('x'.repeat(10_000))
  expect(odd.body).toBe('A\ufffd\ufffdB')
})

test('attention §7 the newest 20 pings are kept, and 300 count in a minute', async () => {
  const one = await openHeartbeat()
  for (let n = 1; n <= 22; n++) await one.ping('/log', { method: 'POST', body: String(n) })
  const kept = await one.pings()
  expect(kept.map(({ body }: any) => body)).toEqual(
    Array.from({ length: 20 }, (_, n) => String(n + 3)),
  )
  const fill = () =>
    server.sql`update heartbeats set minute = date_trunc('minute', now()), minute_pings = 300 where id = ${parseId('hbt', one.id)!}`
  // The minute can end between the two.
  await until(async () => {
    await fill()
    return (await one.ping('/fail')) === '429 rate limited'
  })
  await server.sql`update heartbeats set minute = minute - interval '1 minute' where id = ${parseId('hbt', one.id)!}`
  expect(await one.ping('/fail')).toBe('200 OK')
})

test('attention §7 a time without a server extends the grace, and the event says so', async () => {
  const one = await openHeartbeat({ periodSeconds: 60, graceSeconds: 600 })
  await one.ping()
  const pool = createPool(server.databaseUrl, { name: 'test heartbeats', max: 1 })
  // As before a start: nobody has checked the clock for ten minutes.
  await server.sql`update clock set checked_at = now() - interval '10 minutes'`
  await one.pass('12 minutes')
  await tryToCheckClock(pool)
  await one.step({ isDownKept: true })
  expect(await one.status()).toBe('up')
  expect(await one.timer()).toBe(600)
  await server.sql`update clock set down_from = down_from - interval '10 minutes', down_to = down_to - interval '10 minutes'`
  await one.pass('9 minutes')
  // Another stop, during that, extends it again.
  await server.sql`update clock set checked_at = now() - interval '16 seconds', down_from = null, down_to = null`
  await tryToCheckClock(pool)
  const passAll = async (time: string) => {
    await server.sql`update clock set down_from = down_from - ${time}::interval, down_to = down_to - ${time}::interval`
    await one.pass(time)
  }
  await passAll('2 minutes')
  await one.step({ isDownKept: true })
  expect(await one.status()).toBe('up')
  await passAll('9 minutes')
  await one.step({ isDownKept: true })
  expect(await one.status()).toBe('down')
  const [missed] = await one.events()
  expect(missed.description).toMatch(/\nTidings itself was down from \S+ \S+ UTC to \S+ \S+ UTC\./)
  await pool.end()
})

test('attention §7 a time without a server that ended before the due time moves nothing', async () => {
  const one = await openHeartbeat({ periodSeconds: 60, graceSeconds: 600 })
  await one.ping()
  const { dueAt } = await one.read()
  await server.sql`update clock set down_from = now() - interval '3 hours', down_to = now() - interval '2 hours'`
  expect((await one.read()).dueAt).toBe(dueAt)
  const pool = createPool(server.databaseUrl, { name: 'test heartbeats', max: 1 })
  const stop = async (length: string) => {
    await server.sql`update clock set checked_at = now() - ${length}::interval`
    await tryToCheckClock(pool)
    const [{ minutes }] = await server.sql<[{ minutes: number }]>`
      select round(extract(epoch from down_to - down_from) / 60)::int as minutes from clock
    `
    return minutes
  }
  expect(await stop('5 minutes')).toBe(5)
  // The list shows the time at which its step tells of it.
  await one.pass('11 minutes')
  const shown = Date.parse((await one.read()).dueAt) - Date.now()
  expect(Math.round(shown / 60_000)).toBe(10)
  // Stops that follow each other within an hour are one.
  await server.sql`update clock set down_from = down_from - interval '1 minute', down_to = down_to - interval '1 minute'`
  expect(await stop('16 seconds')).toBe(6)
  await pool.end()
})

test('attention §7 a clock that was set back hides no heartbeat, and no run has a negative length', async () => {
  const one = await openHeartbeat()
  await one.ping()
  await one.ping('/start')
  await one.pass('-2 days')
  await one.step()
  await until(async () => Number(await one.timer()) === 600)
  await one.pass('-2 days')
  await one.ping()
  expect((await one.pings()).at(-1).tookMs).toBe(0)
  await one.pass('-2 days')
  await one.ping('/log')
  expect(Date.parse((await one.read()).dueAt)).toBeLessThan(Date.now() + 4_200_000)
})

test('attention §7 a heartbeat tells of at most 10 changes in a minute', async () => {
  const one = await openHeartbeat()
  await one.ping()
  // The minute can end between them.
  await until(async () => {
    for (let n = 0; n < 10; n++) await one.ping(n % 2 === 0 ? '/fail' : '')
    return (await one.ping('/fail')) === '429 rate limited'
  })
  expect(await one.status()).toBe('up')
  expect(await one.ping('/log')).toBe('200 OK')
  await server.sql`update heartbeats set minute = minute - interval '1 minute' where id = ${parseId('hbt', one.id)!}`
  expect(await one.ping('/fail')).toBe('200 OK')
})

test('a member edits, moves and deletes a heartbeat, and a viewer does not see its address', async () => {
  const one = await openHeartbeat()
  const { account, path, id } = one
  await one.ping('/fail')
  await account.post(`${path}/channels`, { name: 'others' })
  expect((await one.edit({ channel: 'others' })).status).toBe(409)
  await one.ping()
  const edited = await one.edit({ name: 'Nightly', channel: 'others', graceSeconds: 60 })
  expect(edited.body.data).toMatchObject({ name: 'Nightly', channelName: 'others' })
  // The earlier time moves the timer, too.
  expect(await one.timer()).toBe(3660)
  expect((await one.edit({ channel: 'nowhere' })).status).toBe(400)
  const viewer = await newMember(server, one.organization, 'viewer')
  const seen = await viewer.get(`${path}/heartbeats`)
  expect(seen.body.data.items).toMatchObject([{ id, url: null }])
  const moved = await one.edit({ newAddress: true })
  expect(await one.ping()).toBe('404 not found')
  expect((await fetch(`${moved.body.data.url}/fail`)).status).toBe(200)
  expect((await account.delete(`${path}/heartbeats/${id}`)).status).toBe(200)
  expect((await one.told()).at(-1)).toBe('resolved: Nightly was deleted')
  expect((await account.get(`${path}/heartbeats/${id}/pings`)).status).toBe(404)
  const entries = await listAuditEntries(server.sql, one.organization.uuid)
  const own = entries.filter(({ target }) => target === id)
  expect(own.map(({ action }) => action)).toEqual(
    ['created', 'edited', 'edited', 'deleted'].map(what => `heartbeat.${what}`),
  )
  expect(own[2]?.details).toEqual({ name: 'Nightly', newAddress: true })
})

test('a project has at most 500 heartbeats', async () => {
  const one = await openHeartbeat()
  await server.sql`
    insert into heartbeats (project_id, id, channel_id, address, name, period_s, grace_s)
    select project_id, gen_random_uuid(), channel_id, gen_random_uuid(), name, period_s, grace_s
    from heartbeats, generate_series(1, 499)
    where id = ${parseId('hbt', one.id)!}
  `
  const more = { name: 'More', channel: 'ops', periodSeconds: 60, graceSeconds: 60 }
  expect((await one.account.post(`${one.path}/heartbeats`, more)).status).toBe(409)
})

// The last one, because it counts failures of the address of all tests.
test('pings of unknown addresses count as failed authentications', async () => {
  const one = await openHeartbeat()
  const cookie = `tidings=${'x'.repeat(43)}`
  const signIn = () => fetch(`${server.url}/api/me`, { headers: { cookie } })
  expect((await signIn()).status).toBe(401)
  for (let n = 0; n < 60; n++)
    expect((await fetch(`${server.url}/ping/${crypto.randomUUID()}`)).status).toBe(404)
  expect((await signIn()).status).toBe(429)
  expect(await one.ping()).toBe('200 OK')
})
