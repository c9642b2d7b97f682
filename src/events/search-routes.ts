import { apiEndpoint, type ApiEndpoint } from '../accounts/endpoint.ts'
import type { Pool } from '../db/pool.ts'
import { histogramOf } from './histogram.ts'
import { parseTimestamp } from './moment.ts'
import { findNeighbours, getEventJson, listEventsJson } from './read.ts'
import { EventPage, Histogram, Neighbours, SearchQuery, toSearchFilters } from './search-schema.ts'
import { Event } from './schema.ts'

/** A project's events as its people look for them. */
export function searchRoutes({ pool }: { pool: Pool }): ApiEndpoint[] {
  return [
    apiEndpoint({
      method: 'GET',
      path: '/api/projects/:projectId/events',
      action: 'events.read',
      query: SearchQuery,
      success: { status: 200, data: EventPage },
      handle: ({ projectId, query }) => {
        const filters = toSearchFilters(query)
        return pool.run(sql => listEventsJson(sql, projectId, filters, query))
      },
    }),
    apiEndpoint({
      method: 'GET',
      path: '/api/projects/:projectId/histogram',
      action: 'events.read',
      query: SearchQuery,
      success: { status: 200, data: Histogram },
      async handle({ projectId, query }) {
        const filters = toSearchFilters(query)
        const range = {
          fromMs: query.from === undefined ? undefined : parseTimestamp(query.from),
          toMs: query.to === undefined ? undefined : parseTimestamp(query.to),
          nowMs: Date.now(),
        }
        return JSON.stringify(await pool.run(sql => histogramOf(sql, projectId, filters, range)))
      },
    }),
    apiEndpoint({
      method: 'GET',
      path: '/api/projects/:projectId/events/:eventId',
      action: 'events.read',
      success: { status: 200, data: Event },
      handle: ({ projectId, params: { eventId = '' } }) =>
        pool.run(sql => getEventJson(sql, projectId, eventId)),
    }),
    apiEndpoint({
      method: 'GET',
      path: '/api/projects/:projectId/events/:eventId/neighbours',
      action: 'events.read',
      success: { status: 200, data: Neighbours },
      handle: ({ projectId, params: { eventId = '' } }) =>
        pool.run(async sql => {
          const { seq } = JSON.parse(await getEventJson(sql, projectId, eventId)) as Event
          return JSON.stringify(await findNeighbours(sql, projectId, seq))
        }),
    }),
  ]
}
