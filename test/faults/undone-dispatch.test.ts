import { afterEach, expect } from 'bun:test'
import { WORKER_SETTINGS } from '../../src/database/session.ts'
import { migrate } from '../../src/database/migrate.ts'
import { createPool } from '../../src/database/pool.ts'
import { connect, type Sql } from '../../src/database/sql.ts'
import { startOutbox } from '../../src/delivery/outbox/outbox.ts'
import { createWebhookKind } from '../../src/delivery/webhooks/sender.ts'
import { createEgress } from '../../src/http/egress/egress.ts'
import { testSecrets } from '../support/secret.ts'
import { dbTest, makeDataDir, start, clearEmbedded } from '../support/servers/embedded.ts'
import { scaled, until } from '../support/until.ts'
import { appendEvents } from '../support/worlds/deliveries.ts'
import { newOrganization } from '../support/worlds/signed-in-account.ts'
import { startWebhookReceiver } from './webhook-receiver.ts'
import { openSql } from '../support/sql.ts'

afterEach(clearEmbedded)

// Postgres crashes between the dispatch of an event and its first attempt. The commit of a dispatch
// does not wait for fsync, so that the crash undoes it.

/** Long, because the restart goes on while the machine is busy. */
const TIMEOUT_MS = scaled(60_000)
const LEASE_MS = 2 * TIMEOUT_MS

dbTest(
  'the attempt of a dispatch that a crash undid arrives after the restart, beside its repeat',
  async () => {
    const { url, superuserUrl } = await start(await makeDataDir())
    await migrate(url)
    const sql = openSql(url)
    const admin = connect(superuserUrl, { name: 'test admin', max: 1 })
    await using hooks = await startWebhookReceiver()
    const { project } = await newOrganization({ sql })
    const { targetId } = await hooks.add(sql, testSecrets(), project.uuid, response =>
      response.end(),
    )

    const egress = createEgress({ allowCidrs: ['127.0.0.0/8'] })
    const pausing = Promise.withResolvers<void>()
    let begun = 0
    // The next dispatch waits until the test has looked.
    let looked: PromiseWithResolvers<void> | undefined
    const kind = createWebhookKind({
      pool: open('deliver'),
      secrets: testSecrets(),
      egress: {
        ...egress,
        async send(request) {
          // Like a process that stands still between the read of an event and its request.
          if (begun++ === 0) await pausing.promise
          return egress.send(request)
        },
      },
    })
    const outbox = await startOutbox({
      pool: open('worker'),
      kinds: [{ ...kind, dispatch, timeoutMs: TIMEOUT_MS, leaseMs: LEASE_MS }],
    })
    const writer = (await readWriter(admin)) ?? 0
    expect(writer).toBeGreaterThan(0)
    // It would write the dispatch to the disk.
    process.kill(writer, 'SIGSTOP')
    await appendEvents(sql, project.uuid, 1)
    outbox.wake([project.uuid])
    await until(() => begun === 1)
    expect(await readState(sql)).toEqual({ leased: 1, dispatched: 1 })

    looked = Promise.withResolvers()
    process.kill(writer, 'SIGKILL')
    // A session of before the crash may still answer for a moment.
    await until(async () => {
      const pid = await readWriter(admin).catch(() => undefined)
      return pid !== undefined && pid !== writer
    })
    const endMs = performance.now()
    expect(await readState(sql)).toEqual({ leased: 0, dispatched: 0 })
    looked.resolve()
    outbox.wake([project.uuid])
    // A target with an attempt of over 2 s gets no other one, so the order of the two is open.
    pausing.resolve()
    await until(() => hooks.receipts.length === 2)
    await until(async () => (await readState(sql)).leased === 0)
    await outbox.stop()

    const receipts = hooks.receipts
    expect(receipts.map(one => one.targetId)).toEqual([targetId, targetId])
    expect(new Set(receipts.map(one => one.eventId)).size).toBe(1)
    for (const { atMs } of receipts) expect(atMs).toBeGreaterThan(endMs)
    egress.close()
    await Promise.all([sql.end({ timeout: 1 }), admin.end({ timeout: 1 })])

    async function dispatch(...given: Parameters<typeof kind.dispatch>) {
      await looked?.promise
      return kind.dispatch(...given)
    }

    function open(name: string) {
      return createPool(url, {
        name,
        max: 2,
        deadlineMs: scaled(60_000),
        settings: WORKER_SETTINGS,
      })
    }
  },
)

async function readState(sql: Sql): Promise<{ leased: number; dispatched: number }> {
  const [row] = await sql<[{ leased: number; dispatched: number }]>`
    select
      (select count(*)::int from outbox where token is not null) as leased,
      (select coalesce(sum(seq), 0)::int from delivery_cursors) as dispatched
  `
  return { ...row }
}

/** Returns the process id of the WAL writer; undefined if it does not run. */
async function readWriter(admin: Sql): Promise<number | undefined> {
  const [writer] = await admin<{ pid: number }[]>`
    select pid from pg_stat_activity where backend_type = 'walwriter'
  `
  return writer?.pid
}
