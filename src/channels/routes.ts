import type { Pool } from '../db/pool.ts'
import { PageOf } from '../http/envelope.ts'
import { PageQuery } from '../http/paging.ts'
import { endpoint, type Endpoint } from '../keys/endpoint.ts'
import { listChannels } from './channels.ts'
import { Channel } from './schema.ts'

export function channelRoutes({ reads }: { reads: Pool }): Endpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/v1/channels',
      operationId: 'listChannels',
      summary: 'List channels',
      description: 'Newest first.',
      tag: 'Channels',
      scope: 'events:read',
      query: PageQuery,
      success: { status: 200, description: 'A page of channels.', data: PageOf(Channel) },
      async handle({ key, query }) {
        return JSON.stringify(await reads.run(sql => listChannels(sql, key.projectId, query)))
      },
    }),
  ]
}
