// The ceiling of `bench ingest`, in its own process: a plain Elysia route with Elysia's own parser,
// and nothing behind it. Its schema equals that of POST /v1/events. Prints its port.
import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'

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

let seq = 0
const app = new Elysia({ normalize: false })
  .post(
    '/v1/events',
    ({ body, set }) => {
      set.status = 201
      const data = { id: crypto.randomUUID(), seq: ++seq, ...body, createdAt: new Date() }
      return { success: true, data, requestId: crypto.randomUUID() }
    },
    { body: Event },
  )
  .listen({ port: 0, hostname: '127.0.0.1' })
console.log(`PORT ${app.server?.port}`)
