import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Pool } from '../../database/pool.ts'
import { ChannelName } from '../channels/name.ts'
import { succeed, succeedJson } from '../../http/call.ts'
import { Failure, SuccessOf } from '../../http/envelope.ts'
import { createValidator, invalidField } from '../../http/validation.ts'
import { respondToWrite, type KeyCall, type KeyGuard } from '../../access/keys/guard.ts'
import type { Quotas } from '../../http/limits/quotas.ts'
import type { Appender, AppendStep } from './append.ts'
import type { AppendJob } from './append-statement.ts'
import { toUserAsSent } from './event-json.ts'
import { fromLogSnag, fromPlainText, toNewEvent, type NewEvent } from './new-event.ts'
import {
  readQuestion,
  storeQuestion,
  toAskedResponse,
  type AskedQuestion,
  toQuestionThread,
  type QuestionParts,
} from './question.ts'
import { getEventDetail, listLogJson } from './read.ts'
import { isSearch } from './search-filters.ts'
import {
  Event,
  EventDetail,
  EventInput,
  EventQuery,
  EventRequest,
  LogInput,
  LogPage,
  TextInput,
  TextQuery,
} from './schema.ts'
import { toListFilters } from './search-schema.ts'
import { ThreadPage, ThreadQuery } from './thread-schema.ts'
import { listThreads } from './threads.ts'

const tags = ['Events']
const created = { 201: SuccessOf(Event, 'The event is committed.') }
const textEvent = createValidator(EventInput)

export interface EventParts {
  guard: KeyGuard
  appender: Appender
  quotas: Pick<Quotas, 'check' | 'count'>
  /** For searches, which examine many rows. */
  searches: Pool
  /** For pages of the log and single events. */
  lists: Pool
}

/** A job of an organization, which its quotas count. */
type CountedJob = AppendJob & { organizationId: string }

/** Appends an event within the quotas of its organization. Throws `quota_exceeded`. */
async function appendCounted(
  { appender, quotas }: Pick<EventParts, 'appender' | 'quotas'>,
  { organizationId, ...job }: CountedJob,
  then?: AppendStep,
): ReturnType<Appender['append']> {
  const counted = { organizationId, events: 1, bytes: countBytes(job.event) }
  quotas.check(counted)
  const written = await appender.append(job, then)
  if (written.outcome === 'done') quotas.count(counted)
  return written
}

/**
 * Returns a function that appends an event and responds 201 with it, or 200 with what `toBody`
 * makes of it.
 */
export function createEventWriter(parts: Pick<EventParts, 'appender' | 'quotas'>) {
  return async (
    call: KeyCall,
    input: EventInput,
    toBody?: (stored: string) => string,
    asked?: AskedQuestion,
  ): Promise<Response> => {
    const { key, requestId, claim, admission } = call
    const { projectId, organizationId } = key
    const event = toNewEvent(input)
    if (asked) Object.assign(event, toQuestionThread(event))
    if (event.state !== null && event.thread === null)
      throw invalidField('state', 'invalid_value', 'Requires `thread`')
    const job = { projectId, organizationId, event, requestId, claim, admission }
    const written = await appendCounted(
      parts,
      job,
      asked && ((tx, createdAtMs) => storeQuestion(tx, { projectId, event, createdAtMs }, asked)),
    )
    return respondToWrite(call, toBody ? 200 : 201, written, (stored, mayReadUsers) => {
      if (toBody) return toBody(stored)
      const body = mayReadUsers ? stored : toUserAsSent(stored, event)
      return asked ? toAskedResponse(body, asked) : body
    })
  }
}

/** Routes of /v1 that create events, and read them and their threads. */
export function eventRoutes(parts: EventParts & QuestionParts) {
  const { guard, searches, lists } = parts
  const create = createEventWriter(parts)

  return new Elysia({ name: 'events' })
    .use(guard)
    .post(
      '/v1/events',
      ({ call, body }) => create(call, body, undefined, readQuestion(parts, body)),
      {
        scope: { withWrite: 'events:write' },
        body: EventRequest,
        response: { 201: SuccessOf(EventDetail, 'The event is committed.') },
        detail: {
          operationId: 'createEvent',
          summary: 'Create an event',
          description:
            'An unknown channel is created. A 201 response means that the event is stored durably.',
          tags,
        },
      },
    )
    .post('/v1/log', ({ call, body }) => create(call, fromLogSnag(body)), {
      scope: { withWrite: 'events:write' },
      body: LogInput,
      response: created,
      detail: { operationId: 'logEvent', summary: "Create an event from LogSnag's body", tags },
    })
    .post(
      '/v1/channels/:name',
      ({ call, body, query, params: { name } }) => {
        if (body.trim() === '') throw invalidField('title', 'required', 'Required')
        return create(
          call,
          textEvent.parse({ ...query, channelName: name, ...fromPlainText(body) }),
        )
      },
      {
        scope: { withWrite: 'events:write' },
        params: Type.Object({ name: ChannelName }),
        query: TextQuery,
        body: TextInput,
        response: created,
        detail: {
          operationId: 'sendText',
          summary: 'Create an event from text',
          description:
            'The first line is the title, an emoji at its start the icon, and the rest the description.',
          tags,
        },
      },
    )
    .get(
      '/v1/events',
      async ({ call, query }) => {
        const { projectId, organizationId } = call.key
        const filters = toListFilters(query)
        const pool = isSearch(filters) ? searches : lists
        const page = await pool
          .of(organizationId)
          .run(sql => listLogJson(sql, projectId, filters, query))
        return succeedJson(call, 200, page)
      },
      {
        scope: 'events:read',
        query: EventQuery,
        response: { 200: SuccessOf(LogPage, 'A page of events.') },
        detail: {
          operationId: 'listEvents',
          summary: 'List events',
          description:
            'Newest first, or with `after` in the order of the log. A page may hold fewer items than its limit, or none: it ends before its events reach 1 MiB, or when matches are rare. Continue until `nextCursor` is null. `completeAfter` says where the log begins.',
          tags,
        },
      },
    )
    .get(
      '/v1/threads',
      async ({ call, query }) => {
        const { projectId, organizationId } = call.key
        const page = await lists.of(organizationId).run(sql => listThreads(sql, projectId, query))
        return succeed(call, 200, page)
      },
      {
        scope: 'events:read',
        query: ThreadQuery,
        response: { 200: SuccessOf(ThreadPage, 'A page of threads.') },
        detail: {
          operationId: 'listThreads',
          summary: 'List open threads',
          description:
            'The worst first: by level, and firing before running. With `channel` and `thread`, all threads of this key, newest first.',
          tags,
        },
      },
    )
    .get(
      '/v1/events/:id',
      async ({ call, params: { id } }) => {
        const { projectId, organizationId } = call.key
        const event = await lists.of(organizationId).run(sql => getEventDetail(sql, projectId, id))
        return succeedJson(call, 200, event)
      },
      {
        scope: 'events:read',
        params: Type.Object({
          id: Type.String({ minLength: 1, description: 'The id of the event.' }),
        }),
        response: { 200: SuccessOf(EventDetail, 'The event.'), 404: Failure },
        detail: { operationId: 'getEvent', summary: 'Get an event', tags },
      },
    )
}

/** Returns the UTF-8 bytes of an event's texts, which its organization's quota counts. */
export function countBytes({ channelName, title, description, ...event }: NewEvent): number {
  const { metadataJson, tags, userRef, source, url, thread } = event
  return Buffer.byteLength(
    [channelName, title, description, metadataJson, ...tags, userRef, source, url, thread].join(''),
  )
}
