import { createPool } from '../../../src/database/pool.ts'
import type { Sql } from '../../../src/database/sql.ts'
import { createEgress } from '../../../src/http/egress/egress.ts'
import { newId, parseId, type Id } from '../../../src/base/ids.ts'
import { createKey } from './keys.ts'
import {
  createWebhookSender,
  type SenderParts,
  type WebhookAttempt,
} from '../../../src/delivery/webhooks/sender.ts'
import type {
  DispatchingKind,
  DeliveryOutcome,
  Dispatched,
} from '../../../src/delivery/outbox/delivery-kind.ts'
import { WORKER_SETTINGS } from '../../../src/database/session.ts'
import { newSigningSecret } from '../../../src/delivery/webhooks/signing.ts'
import { toSealedCell } from '../../../src/delivery/webhooks/sealing.ts'
import {
  newMember,
  newOrganization,
  type TestOrganization,
  type SignedInAccount,
} from './signed-in-account.ts'
import { createRequests, type Answered } from './project.ts'
import { testSecrets } from '../secret.ts'
import { startReceiver, type Receiver } from '../servers/receiver.ts'
import { boot, type Booted } from '../servers/server.ts'

/** Inserts a channel. */
export async function newChannel(
  { sql }: Pick<Booted, 'sql'>,
  projectId: string,
  name: string,
): Promise<Id> {
  const id = newId('chn')
  await sql`
    insert into channels (project_id, id, public_id, slug, name, created_at)
    values (${projectId}, ${id.uuid}, ${id.id}, ${name}, ${name}, now())
  `
  return id
}

/** Inserts a webhook of a project and an attempt of it. Nothing can be sent to its address. */
export async function insertWebhook(
  { sql }: Pick<Booted, 'sql'>,
  projectId: string,
  { eventId, mark }: { eventId: string; mark: string },
): Promise<{ webhookId: string; attemptId: string }> {
  const secrets = testSecrets()
  const [webhook, attempt] = [newId('whk'), newId('att')]
  const seal = (column: 'url' | 'secret', text: string) =>
    secrets.seal(text, toSealedCell(column, webhook.uuid))
  await sql`
    insert into webhooks (project_id, id, name, url, host, preset, has_all_channels, secret)
    values (
      ${projectId}, ${webhook.uuid}, ${`webhook ${mark}`}, ${seal('url', `http://127.0.0.1/${mark}`)},
      '127.0.0.1', 'standard', true, ${seal('secret', newSigningSecret())}
    )
  `
  await sql`
    insert into webhook_attempts (
      project_id, id, webhook_id, event_id, kind, number, outcome, status, reason, response, latency_ms,
      started_at, host, preset, body_hash
    )
    values (
      ${projectId}, ${attempt.uuid}, ${webhook.uuid}, ${parseId('evt', eventId) ?? null}, 'event.created', 1,
      'failed', 500, 'The receiver answered 500', ${`response ${mark}`}, 1, now(),
      '127.0.0.1', 'standard', sha256('')
    )
  `
  return { webhookId: webhook.id, attemptId: attempt.id }
}

/** A webhook in its own project, whose deliveries the test makes: no dispatcher is needed. */
export interface TestWebhook {
  organization: TestOrganization
  admin: SignedInAccount
  id: string
  uuid: string
  secret: string
  /** Its path below /api. */
  path: string
  post(event: object): Promise<Answered>
  /** Appends an event to the project; returns its id. */
  newEvent(event?: object): Promise<string>
  /** Returns the input of a worker for an attempt. */
  toAttempt(eventId: string, attempt?: number, waitedMs?: number): WebhookAttempt
  /** Makes one attempt to deliver an event. */
  send(
    eventId: string,
    attempt?: number,
    options?: { signal?: AbortSignal; waitedMs?: number },
  ): Promise<DeliveryOutcome>
  /** Returns the webhook as the API shows it. */
  get(): Promise<Record<string, unknown> & { breaker: Record<string, unknown> }>
  /** Returns its attempts, newest first. */
  attempts(): Promise<Record<string, unknown>[]>
}

/** Creates a sender whose outcome comes when the attempt is recorded. */
export function createRecordingSender(parts: SenderParts) {
  const send = createWebhookSender(parts)
  return async (attempt: WebhookAttempt, signal?: AbortSignal): Promise<DeliveryOutcome> => {
    const outcome = await send(attempt, signal)
    if (outcome.kind !== 'done') return outcome
    await outcome.recorded
    return { kind: 'done' }
  }
}

/** Dispatches the events of a project after `seq`, whatever was dispatched before. */
export async function dispatchAfter(
  sql: Sql,
  kind: DispatchingKind,
  { projectId, seq }: { projectId: string; seq: number },
): Promise<Dispatched> {
  await sql`
    insert into delivery_cursors (project_id, kind, seq) values (${projectId}, ${kind.name}, ${seq})
    on conflict (project_id, kind) do update set seq = excluded.seq
  `
  return kind.dispatch(sql, { projectIds: [projectId], maxEvents: 500, lease: undefined })
}

const ALLOWED = ['127.0.0.0/8']

/** A server, what creates its webhooks, and a receiver that they may reach. */
export interface WebhookServer extends AsyncDisposable {
  server: Booted
  webhooks: ReturnType<typeof createWebhooks>
  receiver: Receiver
}

/** Boots a server that delivers nothing by itself, so that a test makes each attempt. */
export async function bootForWebhooks(): Promise<WebhookServer> {
  const egress = { listOwnAddresses: () => ['8.8.4.4'] }
  const server = await boot({ egressAllowCidrs: ALLOWED }, { kinds: [], egress })
  const webhooks = createWebhooks(server)
  const receiver = await startReceiver()
  return {
    server,
    webhooks,
    receiver,
    async [Symbol.asyncDispose]() {
      await receiver.close()
      await webhooks.close()
      await server[Symbol.asyncDispose]()
    },
  }
}

/** Returns functions that create webhooks of a server that may reach loopback. */
function createWebhooks(server: Booted, egress = createEgress({ allowCidrs: ALLOWED })) {
  const pool = createPool(server.databaseUrl, {
    name: 'test worker',
    max: 8,
    settings: WORKER_SETTINGS,
  })
  const parts = { pool, egress, secrets: testSecrets() }
  const sender = createRecordingSender(parts)

  return {
    parts,
    async close() {
      egress.close()
      await pool.end()
    },
    async create(url: string, options: object = {}): Promise<TestWebhook> {
      const organization = await newOrganization(server)
      const admin = await newMember(server, organization, 'admin')
      const project = organization.project
      const all = `/api/projects/${project.id}/webhooks`
      const made = await admin.post(all, { url, ...options })
      if (made.status !== 201) throw new Error(`No webhook: ${made.text}`)
      const { id, secret } = made.body.data
      const uuid = parseId('whk', id) ?? ''
      const key = await createKey(server.sql, { projectId: project.uuid, name: 't', limit: 10_000 })
      const { post } = createRequests(server.url, key.token)
      const path = `${all}/${id}`
      const toAttempt = (eventId: string, attempt = 1, waitedMs = 0) => ({
        projectId: project.uuid,
        targetId: uuid,
        eventId: parseId('evt', eventId) ?? '',
        attempt,
        waitedMs,
      })
      return {
        organization,
        admin,
        id,
        uuid,
        secret,
        path,
        post: event => post('/v1/events', event),
        newEvent: async event =>
          (await post('/v1/events', event ?? { channelName: 'payments', title: 'New payment' }))
            .body.data.id,
        toAttempt,
        send: (eventId, attempt, { signal, waitedMs } = {}) =>
          sender(toAttempt(eventId, attempt, waitedMs), signal),
        get: async () => (await admin.get(path)).body.data,
        attempts: async () => (await admin.get(`${path}/attempts`)).body.data.items,
      }
    },
  }
}
