import { Elysia } from 'elysia'
import { succeedRead, type SessionGuard } from '../../access/guard/guard.ts'
import type { Pool } from '../../database/pool.ts'
import { succeed, succeedJson } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { buildHistogram } from './histogram.ts'
import { parseIsoTimestamp } from './timestamp.ts'
import { findNeighbours, getEventDetail, getEventJson, listEventsJson } from './read.ts'
import { isSearch } from './search-filters.ts'
import {
  EventPage,
  Histogram,
  Neighbours,
  SearchQuery,
  SuggestionQuery,
  Suggestions,
  toSearchFilters,
} from './search-schema.ts'
import { suggestValues } from './suggestions.ts'
import { ThreadPage, ThreadQuery } from './thread-schema.ts'
import { listThreads } from './threads.ts'
import { Event, EventDetail } from './schema.ts'

const tags = ['Events']

export interface SearchParts {
  guard: SessionGuard
  /** For searches and histograms, which examine many rows. */
  searches: Pool
  /** For other reads. */
  pool: Pool
}

/** Routes of the dashboard that search, count and read events, and their threads. */
export function searchRoutes({ guard, searches, pool }: SearchParts) {
  return new Elysia({ name: 'events.search' })
    .use(guard)
    .get(
      '/api/projects/:projectId/events',
      async ({ call, query }) => {
        const filters = toSearchFilters(query)
        const page = await (isSearch(filters) ? searches : pool)
          .of(call.organizationId)
          .run(sql => listEventsJson(sql, call.projectId, filters, query))
        return succeedJson(call, 200, page)
      },
      {
        project: 'events.read',
        query: SearchQuery,
        response: { 200: SuccessOf(EventPage) },
        detail: { operationId: 'searchEvents', summary: 'Search events', tags },
      },
    )
    .get(
      '/api/projects/:projectId/histogram',
      async ({ call, query }) => {
        const filters = toSearchFilters(query)
        const range = {
          fromMs: query.from === undefined ? undefined : parseIsoTimestamp(query.from),
          toMs: query.to === undefined ? undefined : parseIsoTimestamp(query.to),
          nowMs: Date.now(),
        }
        const { projectId, organizationId } = call
        const histogram = await searches
          .of(organizationId)
          .run(sql => buildHistogram(sql, projectId, filters, range))
        return succeed(call, 200, histogram)
      },
      {
        project: 'events.read',
        query: SearchQuery,
        response: { 200: SuccessOf(Histogram) },
        detail: { operationId: 'getHistogram', summary: 'Count events over time', tags },
      },
    )
    .get(
      '/api/projects/:projectId/suggestions',
      async ({ call, query }) => {
        const { projectId, organizationId } = call
        const items = await searches
          .of(organizationId)
          .run(sql => suggestValues(sql, projectId, query))
        return succeed(call, 200, { items })
      },
      {
        project: 'events.read',
        query: SuggestionQuery,
        response: { 200: SuccessOf(Suggestions) },
        detail: {
          operationId: 'suggestValues',
          summary: 'Suggest values for a term of a search',
          description:
            'The values that begin with the text come first. If none contains it, a similar one is suggested.',
          tags,
        },
      },
    )
    .get(
      '/api/projects/:projectId/threads',
      ({ call, query }) => succeedRead(call, sql => listThreads(sql, call.projectId, query)),
      {
        project: 'events.read',
        query: ThreadQuery,
        response: { 200: SuccessOf(ThreadPage) },
        detail: { operationId: 'listProjectThreads', summary: 'List open threads', tags },
      },
    )
    .get(
      '/api/projects/:projectId/events/:eventId',
      async ({ call, params: { eventId } }) =>
        succeedJson(
          call,
          200,
          await pool
            .of(call.organizationId)
            .run(sql => getEventDetail(sql, call.projectId, eventId)),
        ),
      {
        project: 'events.read',
        response: { 200: SuccessOf(EventDetail) },
        detail: { operationId: 'getProjectEvent', summary: 'Get an event', tags },
      },
    )
    .get(
      '/api/projects/:projectId/events/:eventId/neighbours',
      async ({ call, params: { eventId } }) => {
        const { projectId } = call
        const neighbours = await pool.of(call.organizationId).run(async sql => {
          const { seq } = JSON.parse(await getEventJson(sql, projectId, eventId)) as Event
          return findNeighbours(sql, projectId, seq)
        })
        return succeed(call, 200, neighbours)
      },
      {
        project: 'events.read',
        response: { 200: SuccessOf(Neighbours) },
        detail: {
          operationId: 'getNeighbours',
          summary: 'Get the events before and after an event',
          tags,
        },
      },
    )
}
