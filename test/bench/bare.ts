// The references of `bench ingest`. `bare.ts nothing` is a plain Elysia route with Elysia's own
// parser, whose schema equals that of POST /v1/events. `bare.ts batch <database url>` is the same
// before the plainest durable batch. Both print their port.
import { Type, type Static } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { toArray } from '../../src/database/arrays.ts'
import { connect } from '../../src/database/sql.ts'

const text = (maxLength: number) => Type.String({ minLength: 1, maxLength })

const Event = Type.Object(
  {
    channelName: text(255),
    title: text(500),
    description: Type.Optional(Type.String({ maxLength: 5_000 })),
    icon: Type.Optional(text(50)),
    tags: Type.Optional(Type.Array(text(50), { maxItems: 20 })),
    metadata: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    userId: Type.Optional(Type.Union([text(255), Type.Null()])),
    notify: Type.Optional(Type.Boolean()),
    source: Type.Optional(text(100)),
    timestamp: Type.Optional(text(40)),
  },
  { additionalProperties: true },
)
type Event = Static<typeof Event>

/** Stores an event; returns its place in the log. */
type Append = (id: string, event: Event) => Promise<number> | number

const [kind, databaseUrl = ''] = process.argv.slice(2)
const append = kind === 'batch' ? await createBatch() : keepNothing()
const app = new Elysia({ normalize: false })
  .post(
    '/v1/events',
    async ({ body, set }) => {
      const id = crypto.randomUUID()
      const seq = await append(id, body)
      set.status = 201
      const data = { id, seq, ...body, createdAt: new Date() }
      return { success: true, data, requestId: crypto.randomUUID() }
    },
    { body: Event },
  )
  .listen({ port: 0, hostname: '127.0.0.1' })
console.log(`READY ${app.server?.port}`)

function keepNothing(): Append {
  let seq = 0
  return () => ++seq
}

/**
 * Stores the events of all requests that wait by one INSERT and one commit, into a table with the
 * columns and indexes of ours. Postgres does not clean it meanwhile: its cleaner would take turns
 * with the rounds, and be counted for one side alone.
 */
async function createBatch(): Promise<Append> {
  const sql = connect(databaseUrl, { name: 'bench', max: 1 })
  await sql.unsafe(`
    create table plain_events (like events including indexes including constraints)
      with (autovacuum_enabled = false);
    create sequence plain_seq;
    alter table plain_events alter seq set default nextval('plain_seq');
    alter table plain_events alter occurred_at set default now();
    alter table plain_events alter created_at set default now();
  `)
  const projectId = crypto.randomUUID()
  const channelId = crypto.randomUUID()
  let waiting: { id: string; event: Event; onStored(seq: number): void }[] = []
  let isRunning = false

  async function run(): Promise<void> {
    isRunning = true
    while (waiting.length > 0) {
      const batch = waiting
      waiting = []
      const column = (read: (event: Event) => string | null | undefined) =>
        toArray(batch.map(({ event }) => read(event) ?? null))
      const rows = await sql<{ seq: number }[]>`
        insert into plain_events (
          project_id, id, channel_id, title, description, icon, tags, metadata, user_ref, source, notify
        )
        select
          ${projectId}, e.id, ${channelId}, e.title, e.description, e.icon, e.tags::text[], e.metadata::json,
          e.user_ref, 'api', true
        from unnest(
          ${toArray(batch.map(({ id }) => id))}::uuid[], ${column(one => one.title)}::text[],
          ${column(one => one.description)}::text[], ${column(one => one.icon)}::text[],
          ${column(one => toArray(one.tags ?? []))}::text[],
          ${column(one => JSON.stringify(one.metadata ?? {}))}::text[], ${column(one => one.userId)}::text[]
        ) as e (id, title, description, icon, tags, metadata, user_ref)
        returning seq::int as seq
      `
      for (const [nth, { onStored }] of batch.entries()) onStored(rows[nth]!.seq)
    }
    isRunning = false
  }

  return (id, event) =>
    new Promise(onStored => {
      waiting.push({ id, event, onStored })
      if (!isRunning) void run()
    })
}
