import { Elysia } from 'elysia'
import type { KeyGuard } from '../../access/keys/guard.ts'
import type { Pool } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { PageOf, SuccessOf } from '../../http/envelope.ts'
import { PageQuery } from '../../http/paging.ts'
import { listChannels } from './channels.ts'
import { Channel } from './schema.ts'

/** Routes of /v1 that read channels. */
export function channelRoutes({ guard, lists }: { guard: KeyGuard; lists: Pool }) {
  return new Elysia({ name: 'channels' })
    .use(guard)
    .get(
      '/v1/channels',
      async ({ call, query }) =>
        succeed(
          call,
          200,
          await lists
            .of(call.key.organizationId)
            .run(sql => listChannels(sql, call.key.projectId, query)),
        ),
      {
        scope: 'events:read',
        query: PageQuery,
        response: { 200: SuccessOf(PageOf(Channel), 'A page of channels.') },
        detail: {
          operationId: 'listChannels',
          summary: 'List channels',
          description: 'Newest first.',
          tags: ['Channels'],
        },
      },
    )
}
