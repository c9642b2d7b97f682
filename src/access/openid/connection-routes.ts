import { succeedRead } from '../guard/guard.ts'
import { Elysia } from 'elysia'
import { PROXY } from '../../base/config/openid.ts'
import { transact } from '../../database/pool.ts'
import type { Queryable } from '../../database/sql.ts'
import { lockOwnAccount } from '../sign-in/account.ts'
import { DeletedId } from '../guard/schema.ts'
import { requireWayIn } from '../sign-in/ways-in.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { listConnections, removeConnection } from './connections.ts'
import type { OpenidParts } from './provider-routes.ts'
import { Connections } from './schema.ts'

const tags = ['Account']

/** Routes of the connections of the signed-in account. */
export function connectionRoutes({
  guard,
  providers,
  issuers,
}: OpenidParts & { issuers: readonly string[] }) {
  async function read(sql: Queryable, accountId: string): Promise<Connections> {
    const items = await listConnections(sql, accountId)
    const toLabel = (name: string) =>
      [...providers, PROXY].find(one => one.name === name)?.label ?? name
    return {
      items: items.map(item => ({ ...item, label: toLabel(item.provider) })),
      providers: providers.map(({ name, label }) => ({ name, label })),
    }
  }

  return new Elysia({ name: 'openid.connections' })
    .use(guard)
    .get(
      '/api/me/connections',
      ({ call }) => succeedRead(call, sql => read(sql, call.admitted.account.id)),
      {
        account: 'account.read',
        response: { 200: SuccessOf(Connections, 'Your connections to providers.') },
        detail: { operationId: 'listConnections', summary: 'List your connections', tags },
      },
    )
    .delete(
      '/api/me/connections/:connectionId',
      async ({ call, params: { connectionId: id } }) => {
        const { admitted, actor, pool } = call
        const accountId = admitted.account.id
        await transact(pool, async tx => {
          await lockOwnAccount(tx, admitted)
          await removeConnection(tx, actor, { accountId, id })
          await requireWayIn(tx, accountId, issuers)
        })
        return succeed(call, 200, { id })
      },
      {
        account: 'connections.remove',
        response: { 200: SuccessOf(DeletedId, 'The connection is removed.') },
        detail: { operationId: 'removeConnection', summary: 'Remove a connection', tags },
      },
    )
}
