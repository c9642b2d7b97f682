import { ChannelName } from '../channels/name.ts'
import { createValidator, invalidField } from '../http/validation.ts'
import { PageOf } from '../http/envelope.ts'
import { NO_ISSUES } from '../http/rules.ts'
import type { Pool } from '../db/pool.ts'
import { Type } from '@sinclair/typebox'
import { endpoint, toWriteAnswer, type Call, type Endpoint } from '../keys/endpoint.ts'
import type { Appender } from './append.ts'
import { toDraft } from './draft.ts'
import { fromLog, fromText } from './drop-in.ts'
import { toFilters } from './event-query.ts'
import { getEventJson, listEventsJson } from './read.ts'
import { Event, EventInput, EventQuery, LogInput, TextInput } from './schema.ts'
import { isTooFarAhead } from './timestamp.ts'

const tag = 'Events'
const created = { status: 201, description: 'The event is committed.', data: Event } as const

export function eventRoutes({ appender, reads }: { appender: Appender; reads: Pool }): Endpoint[] {
  async function create({ key, requestId, claim }: Call<unknown, unknown>, input: EventInput) {
    const draft = toDraft(input)
    return toWriteAnswer(
      201,
      await appender.append({ projectId: key.projectId, draft, requestId, claim }),
    )
  }
  const fromTextInput = createValidator(EventInput)

  return [
    endpoint({
      method: 'POST',
      path: '/v1/events',
      operationId: 'createEvent',
      summary: 'Create an event',
      description:
        'An unknown channel is created. The answer 201 means that the event is stored durably.',
      tag,
      scope: 'events:write',
      body: EventInput,
      example: {
        channelName: 'payments',
        title: 'New payment',
        icon: '💰',
        metadata: { amount: 42 },
      },
      success: created,
      handle: call => create(call, call.body),
    }),
    endpoint({
      method: 'POST',
      path: '/v1/log',
      operationId: 'logEvent',
      summary: "Create an event from LogSnag's body",
      tag,
      scope: 'events:write',
      body: LogInput,
      alsoCheck: ({ timestamp }) =>
        timestamp === undefined || isUnixTime(timestamp)
          ? NO_ISSUES
          : [
              {
                path: ['timestamp'],
                code: 'out_of_range',
                message: 'Must be Unix seconds, at most 5 minutes in the future',
              },
            ],
      example: { channel: 'payments', event: 'New payment', tags: { amount: 42 } },
      success: created,
      handle: call => create(call, fromLog(call.body)),
    }),
    endpoint({
      method: 'POST',
      path: '/v1/channels/:name',
      operationId: 'sendText',
      summary: 'Create an event from text',
      description:
        'The first line is the title, an emoji at its start the icon, and the rest the description.',
      tag,
      scope: 'events:write',
      params: { name: ChannelName },
      body: 'text',
      text: TextInput,
      example: '💾 Backup failed\nThe disk is full.',
      success: created,
      handle(call) {
        const [channelName = ''] = call.params
        if (call.body.trim() === '') throw invalidField('title', 'required', 'Required')
        return create(call, fromTextInput.parse({ channelName, ...fromText(call.body) }))
      },
    }),
    endpoint({
      method: 'GET',
      path: '/v1/events',
      operationId: 'listEvents',
      summary: 'List events',
      description:
        'Newest first, or with `after` in the order of the log. A page of a rare match may be short or even empty while there is more: go on until `nextCursor` is null.',
      tag,
      scope: 'events:read',
      query: EventQuery,
      success: { status: 200, description: 'A page of events.', data: PageOf(Event) },
      handle: ({ key, query }) =>
        reads.run(sql => listEventsJson(sql, key.projectId, toFilters(query), query)),
    }),
    endpoint({
      method: 'GET',
      path: '/v1/events/:id',
      operationId: 'getEvent',
      summary: 'Get an event',
      tag,
      scope: 'events:read',
      params: { id: Type.String({ minLength: 1, description: 'The id of the event.' }) },
      success: { status: 200, description: 'The event.', data: Event },
      hasNotFound: true,
      handle: ({ key, params: [id = ''] }) =>
        reads.run(sql => getEventJson(sql, key.projectId, id)),
    }),
  ]
}

function isUnixTime(seconds: number): boolean {
  return seconds >= 0 && !isTooFarAhead(seconds * 1000)
}
