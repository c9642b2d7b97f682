import { createECDH, createHash, randomBytes } from 'node:crypto'
import { sealAddress } from '../../../src/delivery/push/address.ts'
import { newId, parseId, toId } from '../../../src/base/ids.ts'
import type { SignedInAccount } from './signed-in-account.ts'
import { startPushService, type PushService, type TestBrowser } from '../servers/push-service.ts'
import { testSecrets } from '../secret.ts'
import { boot, type Booted } from '../servers/server.ts'
import { newTenant, type TestTenant } from './tenant.ts'
import { until } from '../until.ts'

/** Returns a browser's subscription that nothing is ever sent to. */
export function newSubscription() {
  return {
    endpoint: `https://updates.push.services.mozilla.com/wpush/v2/${randomBytes(24).toString('base64url')}`,
    keys: {
      p256dh: createECDH('prime256v1').generateKeys().toString('base64url'),
      auth: randomBytes(16).toString('base64url'),
    },
  }
}

/** Inserts the subscription of an account's session; without a real browser nothing can be sent. */
export async function insertSubscription(
  { sql }: Pick<Booted, 'sql'>,
  account: Pick<SignedInAccount, 'uuid' | 'sessionId'>,
  browser?: TestBrowser,
): Promise<string> {
  const { uuid, id } = newId('psh')
  const { keys } = browser ?? newSubscription()
  const endpoint = browser?.endpoint ?? `https://push.invalid/${id}`
  const address = sealAddress(testSecrets(), uuid, { endpoint, ...keys })
  const [row] = await sql<{ id: string }[]>`
    insert into push_subscriptions (id, account_id, session_id, endpoint_hash, address, host, label)
    values (
      ${uuid}, ${account.uuid}, ${account.sessionId},
      decode(${createHash('sha256').update(endpoint).digest('hex')}, 'hex'), ${address}, ${new URL(endpoint).host},
      'A browser'
    )
    on conflict (session_id) do update set label = excluded.label
    returning id
  `
  return toId('psh', row!.id)
}

/** A server and a push service that it can reach. */
export interface PushWorld extends AsyncDisposable {
  server: Booted
  service: PushService
  /** Subscribes a browser of the account. */
  subscribe(account: SignedInAccount): Promise<TestBrowser & { id: string }>
  /** Returns a tenant whose member has subscribed a browser. */
  newPhone(): Promise<{ tenant: TestTenant; browser: TestBrowser & { id: string } }>
  /** Resolves when all events of a project are dispatched for every kind. */
  untilDispatched(projectId: string): Promise<void>
  /** Returns the outcomes of an event's pushes as `state reason`, by device id or `nobody`. */
  outcomes(event: { id: string }): Promise<Record<string, string>>
  /** Resolves with the outcomes of an event's pushes, once there are `count`. */
  untilOutcomes(event: { id: string }, count?: number): Promise<Record<string, string>>
  /** Resolves when pushes of a project wait for their next attempt, and none is in flight. */
  untilWaiting(projectId: string): Promise<void>
}

export async function openPushWorld(
  overrides: Parameters<typeof boot>[0] = {},
): Promise<PushWorld> {
  const service = await startPushService()
  const server = await boot(
    {
      pushHosts: [service.host],
      egressAllowCidrs: ['127.0.0.0/8'],
      vapidSubject: 'mailto:ops@example.com',
      ...overrides,
    },
    { egress: { ca: service.ca } },
  )
  async function subscribe(account: SignedInAccount) {
    const browser = service.subscribe()
    const { endpoint, keys } = browser
    const { status, text, body } = await account.post('/api/push/subscriptions', {
      endpoint,
      keys,
    })
    if (status !== 200) throw new Error(`No subscription: ${text}`)
    return { ...browser, id: body.data.id }
  }
  async function outcomes({ id }: { id: string }): Promise<Record<string, string>> {
    const rows = await server.sql<
      { target_id: string | null; state: string; reason: string | null }[]
    >`
      select target_id, state, reason
      from delivery_records
      where kind = 'push' and event_id = ${parseId('evt', id) ?? ''}
    `
    return Object.fromEntries(
      rows.map(({ target_id, state, reason }) => [
        target_id === null ? 'nobody' : toId('psh', target_id),
        reason === null ? state : `${state}: ${reason}`,
      ]),
    )
  }
  return {
    server,
    service,
    subscribe,
    async newPhone() {
      const tenant = await newTenant(server)
      return { tenant, browser: await subscribe(tenant.account) }
    },
    untilDispatched: projectId =>
      until(async () => {
        const [row] = await server.sql<{ is_done: boolean }[]>`
          select bool_and(coalesce(c.seq, 0) = l.last_seq) as is_done
          from event_logs l
            cross join delivery_kinds k
            left join delivery_cursors c on c.project_id = l.project_id and c.kind = k.kind
          where l.project_id = ${projectId}
        `
        return row?.is_done ?? false
      }),
    outcomes,
    async untilOutcomes(event, count = 1) {
      await until(async () => Object.keys(await outcomes(event)).length >= count)
      return outcomes(event)
    },
    untilWaiting: projectId =>
      until(async () => {
        const rows = await server.sql<{ is_waiting: boolean }[]>`
          select token is null and available_at > now() as is_waiting
          from outbox
          where project_id = ${projectId}
        `
        return rows.count > 0 && rows.every(row => row.is_waiting)
      }),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      await service[Symbol.asyncDispose]()
    },
  }
}

/** Hours of each day in UTC, from and to so many minutes from now. */
export function toDailyHours(from: number, to: number) {
  const toTime = (minutes: number) =>
    new Date(Date.now() + minutes * 60_000).toISOString().slice(11, 16)
  return [{ days: [1, 2, 3, 4, 5, 6, 7], from: toTime(from), to: toTime(to), timeZone: 'UTC' }]
}
