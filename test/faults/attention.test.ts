import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SCOPES } from '../../src/access/keys/schema.ts'
import { parseId } from '../../src/base/ids.ts'
import { findFreePort } from '../support/loopback.ts'
import { makeFolder } from '../support/scratch.ts'
import {
  spawnProgram,
  startProgram,
  toEmbeddedUrl,
  type Program,
} from '../support/servers/process.ts'
import { startPushService, type TestBrowser } from '../support/servers/push-service.ts'
import { openSql } from '../support/sql.ts'
import { until } from '../support/until.ts'
import { createKey } from '../support/worlds/keys.ts'
import {
  newMember,
  newOrganization,
  newSession,
  type SignedInAccount,
} from '../support/worlds/signed-in-account.ts'
import { listPostgres, readStart, untilStartedAnew } from './fleet.ts'

// The server and its Postgres are killed in turn, between each two steps of the story.
test('attention §9 a heartbeat stops, members are told in stages, one acknowledges and answers', async () => {
  await using service = await startPushService()
  const folder = makeFolder()
  writeFileSync(join(folder, 'authority.pem'), service.ca)
  const dataDir = makeFolder()
  const env = {
    ...{ DATA_DIR: dataDir, PORT: String(await findFreePort()) },
    ...{ EGRESS_ALLOW_CIDRS: '127.0.0.0/8', PUSH_HOSTS: service.host },
    ...{ VAPID_SUBJECT: 'mailto:ops@example.com' },
    NODE_EXTRA_CA_CERTS: join(folder, 'authority.pem'),
  }
  let program: Program = await startProgram({ env })
  const { url } = program
  const sql = openSql(toEmbeddedUrl(dataDir), { max: 2 })
  let strikes = 0

  /** Kills the server, or its Postgres, and waits until both work again. */
  async function strike(): Promise<void> {
    strikes++
    if (strikes % 2 === 1) {
      await program.kill('SIGKILL')
      program = await startProgram({ env })
    } else {
      const before = await readStart(sql)
      process.kill(listPostgres(dataDir)[0]!, 'SIGKILL')
      await untilStartedAnew(sql, before)
    }
    await until(async () => (await fetch(`${url}/readyz`).catch(() => undefined))?.ok === true)
  }

  /** Asks again while the server is not back. */
  async function ask(send: () => ReturnType<SignedInAccount['get']>) {
    const { status, body, text } = await send()
    expect([status, text]).toEqual([status < 300 ? status : 0, text])
    return body.data
  }

  try {
    const server = { sql, url }
    const organization = await newOrganization(server)
    const { uuid: projectId, id } = organization.project
    const path = `/api/projects/${id}`
    const first = await newMember(server, organization, 'owner')
    const second = await newMember(server, organization, 'member')
    const desk = await newSession(server, second)
    const subscribe = async (account: SignedInAccount): Promise<TestBrowser> => {
      const browser = service.subscribe()
      const { endpoint, keys } = browser
      await ask(() => account.post('/api/push/subscriptions', { endpoint, keys }))
      return browser
    }
    const devices = [await subscribe(first), await subscribe(second), await subscribe(desk)]
    const [ofFirst, ofPhone, ofDesk] = devices as [TestBrowser, TestBrowser, TestBrowser]

    const { channelId } = await ask(() => first.post(`${path}/channels`, { name: 'backups' })).then(
      channel => ({ channelId: channel.id as string }),
    )
    const stages = [
      { afterMinutes: 0, to: 'onDuty' },
      { afterMinutes: 5, to: { members: [second.id] } },
    ]
    await ask(() =>
      first.patch(`${path}/channels/${channelId}`, {
        ...{ level: 'critical', escalation: { level: 'critical', stages } },
      }),
    )
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString()
    await ask(() => first.put(`${path}/on-duty`, { memberId: first.id, until: tomorrow }))
    const beat = await ask(() =>
      first.post(`${path}/heartbeats`, {
        ...{ name: 'Backup', channel: channelId, periodSeconds: 86_400, graceSeconds: 3_600 },
      }),
    )
    expect((await fetch(beat.url)).status).toBe(200)
    await strike()

    // It stops: the time of a day passes. The server was never away for long.
    const beatId = parseId('hbt', beat.id)!
    await sql`
      update heartbeats set due_at = due_at - interval '2 days', last_ping_at = last_ping_at - interval '2 days'
      where id = ${beatId}
    `
    await sql`update clock set down_from = null, down_to = null`
    await sql`update outbox set available_at = now() where event_id = ${beatId}`
    await service.until(ofFirst, 1)
    const open = (await ask(() => first.get(`${path}/threads`))).items
    expect(open).toMatchObject([{ state: 'firing', level: 'critical' }])
    await strike()
    expect([service.of(ofPhone).length, service.of(ofDesk).length]).toEqual([0, 0])

    // The member on duty does not react for five minutes.
    const alarmId = parseId('evt', open[0].event.id)!
    await sql`
      update outbox set available_at = now(), requested_at = now()
      where kind = 'timer' and event_id = ${alarmId} and target_id::text like '%0002'
    `
    await service.until(ofPhone, 1)
    await service.until(ofDesk, 1)
    await strike()
    const acknowledged = `${path}/events/${open[0].event.id}/acknowledgement`
    expect(await ask(() => second.post(acknowledged, {}))).toMatchObject({ by: 'Test person' })
    await strike()
    expect(
      await sql`select from outbox where kind = 'timer' and event_id = ${alarmId}`,
    ).toHaveLength(0)

    // A script waits for an answer while the server is killed.
    const { token } = await createKey(sql, { projectId, name: 'cli', limit: 1_000, scopes: SCOPES })
    await using asking = spawnProgram({
      args: ['ask', 'Run the backup now?', '--action', 'run', '--action', 'later'],
      env: { TIDINGS_URL: url, TIDINGS_API_KEY: token },
    })
    let questions: { id: string }[] = []
    await until(async () => {
      questions = (await ask(() => second.get(`${path}/events?q=now`))).items
      return questions.length > 0
    })
    const [question] = questions
    await strike()
    await ask(() => second.post(`${path}/events/${question!.id}/answer`, { action: 'run' }))
    expect(await asking.exited).toEqual({ code: 0, signal: null })
    expect(asking.output()).toBe('run\n')
    await strike()

    // The job reports again: the thread is resolved.
    await until(async () => (await fetch(beat.url).catch(() => undefined))?.status === 200)
    await until(async () => (await ask(() => first.get(`${path}/threads`))).items.length === 0)

    // A delivery whose server was killed is claimed again when its lease has ended.
    await until(
      async () => (await sql`select from outbox where event_id = ${alarmId}`).count === 0,
      120_000,
    )
    const records = await sql<{ record: string }[]>`
      select concat_ws(' ', kind, state, reason) as record from delivery_records
      where project_id = ${projectId} and event_id = ${alarmId} and kind in ('push', 'timer')
      order by 1
    `
    // A kill can come before the outcome of a push is stored. Its next attempt is withheld.
    const told = records.map(({ record }) =>
      record.replace(
        'push withheld Acknowledged by a member. It may have arrived: the server ended during an attempt',
        'push delivered',
      ),
    )
    expect(told.toSorted()).toEqual([
      ...Array.from({ length: 3 }, () => 'push delivered'),
      'push withheld Its channel tells members in stages',
      'timer cancelled Acknowledged by a member',
      ...['timer delivered', 'timer delivered'],
    ])
    expect(
      (await ask(() => second.get(`${path}/events/${question!.id}/answer`))).receivedAt,
    ).not.toBeNull()
    // A push whose outcome was not stored before a kill may come once more.
    for (const device of devices) {
      const alarms = service.of(device).filter(({ text }) => text.includes('has not reported'))
      expect(alarms.length).toBeWithin(1, 3)
    }
  } finally {
    await sql.end({ timeout: 1 })
    await program.kill('SIGTERM')
  }
}, 600_000)
