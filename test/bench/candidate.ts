// One candidate of a bench, in its own process: `bun candidate.ts <name> <database url>`; prints
// its port.
import { createApp } from '../../src/http/app.ts'
import { connect } from '../../src/database/sql.ts'
import type { Appender } from '../../src/log/events/append.ts'
import type { NewEvent } from '../../src/log/events/new-event.ts'
import { toEventResponse } from '../../src/log/events/event-json.ts'
import { eventRoutes } from '../../src/log/events/v1-routes.ts'
import { createRequestMemory } from '../../src/http/request-memory.ts'
import { createSemaphore } from '../../src/base/semaphore.ts'
import { createFailedAuthentications } from '../../src/http/limits/failed-authentications.ts'
import { toRateLimitResult } from '../../src/http/limits/rate-limit.ts'
import { serve } from '../../src/base/platform.ts'
import { createKeyGuard } from '../../src/access/keys/guard.ts'
import { SCOPES } from '../../src/access/keys/schema.ts'

const [name, databaseUrl = ''] = process.argv.slice(2)
const projectId = crypto.randomUUID()
const channelId = crypto.randomUUID()

const appender: Appender = {
  append: name === 'insert-notify' ? await createInsert() : keepNothing(),
  waiting: 0,
  drain: async () => {},
}
const key = { id: crypto.randomUUID(), projectId, organizationId: projectId, scopes: SCOPES }
const rateLimit = toRateLimitResult({ limit: 1e9, used: 1, resetAt: 2e9, retryAfter: 60 }, 1, 1)
const guard = createKeyGuard({
  admission: {
    admit: async () => ({ key, rateLimit }),
    countUsage() {},
    waiting: 0,
    stop: async () => {},
  },
  failedAuthentications: createFailedAuthentications(),
  refusals: { count: () => {} },
  concurrency: createSemaphore({}),
  inputLimits: { timeoutMs: 20_000, memory: createRequestMemory() },
  toAddress: () => '',
})
const quotas = { check() {}, count() {} }
// The write routes never read.
const pool = undefined as never
const app = createApp({
  features: [eventRoutes({ guard, appender, quotas, searches: pool, lists: pool })],
})
const { port } = serve<never>({
  host: '127.0.0.1',
  port: 0,
  maxBodyBytes: 1 << 20,
  maxFrameBytes: 4096,
  maxBufferedBytes: 4096,
  fetch: request => app.fetch(request),
  upgrade: request => app.fetch(request),
  open() {},
  message() {},
  close() {},
})
console.log(`PORT ${port}`)

/** The same route and schema without a database: the cost of HTTP, JSON and validation. */
function keepNothing(): Appender['append'] {
  let seq = 0
  return async ({ event, requestId, admission }) => {
    admission?.settle(rateLimit)
    return { outcome: 'done', body: answer(event, String(++seq), requestId) }
  }
}

/**
 * One INSERT and one NOTIFY per request into the same columns and indexes, as most applications
 * write it.
 */
async function createInsert(): Promise<Appender['append']> {
  const sql = connect(databaseUrl, { name: 'bench', max: 16 })
  await sql.unsafe(`
    create table if not exists plain_events (like events including indexes including constraints);
    create sequence if not exists plain_seq;
    alter table plain_events alter seq set default nextval('plain_seq');
    alter table plain_events alter occurred_at set default now();
    alter table plain_events alter created_at set default now();
  `)
  return async ({ event, requestId, admission }) => {
    admission?.settle(rateLimit)
    const [row] = await sql<[{ seq: string }]>`
      with made as (
        insert into plain_events (
          project_id, id, channel_id, title, description, icon, tags, metadata, user_ref, source, notify
        )
        values (
          ${projectId}, ${event.id.uuid}, ${channelId}, ${event.title}, ${event.description}, ${event.icon},
          ${`{${event.tags.join()}}`}::text[], ${event.metadataJson}::text::json, ${event.userRef},
          ${event.source}, ${event.notify}
        )
        returning seq
      )
      select seq, pg_notify('events', seq::text) from made
    `
    return { outcome: 'done', body: answer(event, row.seq, requestId) }
  }
}

function answer(event: NewEvent, seq: string, requestId: string): string {
  const place = {
    seq,
    channelId,
    channelName: event.channelName,
    userId: event.userRef,
    createdAtMs: Date.now(),
  }
  return toEventResponse(event, place, requestId)
}
