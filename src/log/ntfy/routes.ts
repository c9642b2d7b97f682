import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { KeyCall } from '../../access/keys/guard.ts'
import { Fault } from '../../base/errors.ts'
import { toWords, type ResponseParts } from '../../http/failures.ts'
import { readIdempotencyKey, toIdempotencyClaim } from '../../http/limits/idempotency.ts'
import { createValidator } from '../../http/validation.ts'
import { ChannelName } from '../channels/name.ts'
import { EventInput } from '../events/schema.ts'
import { createEventWriter, type EventParts } from '../events/v1-routes.ts'
import { readFields, toEventInput, toMessage } from './message.ts'

const event = createValidator(EventInput)
const EVENT_FIELDS = Object.keys(EventInput.properties).toSorted()
const Path = Type.Object({ topic: ChannelName, sequence_id: Type.Optional(Type.String()) })
const VERBS = ['publish', 'send', 'trigger']
const scope = { withWrite: 'events:write', toFailureBody } as const

/** Routes for programs that publish to ntfy. They take what ntfy's documentation describes. */
export function ntfyRoutes({ guard, ...parts }: Pick<EventParts, 'guard' | 'appender' | 'quotas'>) {
  const create = createEventWriter(parts)

  /** Creates the event of a message. `sent` has the fields of its body and path. */
  function publish(call: KeyCall, request: Request, topic: string, sent: object) {
    const input = event.parse(toEventInput(topic, readFields(request, sent)))
    // Other headers with the same Idempotency-Key are another request. The guard reads none of GET.
    const key = readIdempotencyKey(request.headers)
    const claim = key && toIdempotencyClaim(key, request, input, EVENT_FIELDS)
    return create(Object.assign(call, { claim }), input, toMessage)
  }

  const routes = new Elysia({ name: 'ntfy' }).use(guard)
  for (const method of ['POST', 'PUT']) {
    // apprise has no place for a path, and sends JSON to the root.
    for (const path of ['/', '/ntfy', '/ntfy/']) {
      routes.route(
        method,
        path,
        ({ call, request, body }) => publish(call, request, body.topic, body),
        { scope, body: Type.Object({ topic: ChannelName }) },
      )
    }
    for (const path of ['/ntfy/:topic', '/ntfy/:topic/:sequence_id']) {
      routes.route(
        method,
        path,
        ({ call, request, body: message, params: { topic, ...sent } }) =>
          publish(call, request, topic, { ...sent, message }),
        { scope, params: Path, body: Type.String() },
      )
    }
  }
  return routes.get(
    '/ntfy/:topic/:verb',
    ({ call, request, params: { topic, verb } }) => {
      if (VERBS.includes(verb)) return publish(call, request, topic, {})
      const message = 'Messages cannot be read under /ntfy. Read GET /v1/events or the live feed'
      throw new Fault('not_found', message)
    },
    { scope, params: Type.Object({ topic: ChannelName, verb: Type.String() }) },
  )
}

/** Returns a failure as ntfy writes it. Its codes begin with the status. */
function toFailureBody({ status, body }: ResponseParts): string {
  return JSON.stringify({
    code: status * 100 + (status === 400 ? 0 : 1),
    http: status,
    error: toWords(body),
  })
}
