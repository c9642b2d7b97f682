import { succeedRead } from '../guard/guard.ts'
import { Elysia } from 'elysia'
import { transact } from '../../database/pool.ts'
import type { Queryable } from '../../database/sql.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { lockOwnAccount } from '../sign-in/account.ts'
import type { OpenidParts } from './parts.ts'
import {
  addProvider,
  changeProvider,
  deleteProvider,
  getProvider,
  listProviders,
} from './providers.ts'
import {
  DeletedProvider,
  ProviderBody,
  ProviderChange,
  ProviderCheck,
  Providers,
  type Provider,
} from './schema.ts'
import { toLogoutUrl, toRedirectUrl } from './visit.ts'

const tags = ['Server']

/** Routes with which operators manage OpenID Connect providers. */
export function providerRoutes({ guard, site, source, clients }: OpenidParts) {
  async function list(sql: Queryable): Promise<{ items: Provider[] }> {
    const providers = await listProviders(sql, source)
    const items = providers.map(provider => {
      // The secret is never shown again.
      const { clientSecret: _, ...shown } = provider
      return {
        ...shown,
        isFailing: clients.isFailing(provider),
        redirectUrl: toRedirectUrl(site, provider.name),
        logoutUrl: toLogoutUrl(site, provider.name),
      }
    })
    return { items }
  }

  return new Elysia({ name: 'openid.providers' })
    .use(guard)
    .get('/api/server/providers', ({ call }) => succeedRead(call, list), {
      installation: 'providers.read',
      response: { 200: SuccessOf(Providers, 'All providers.') },
      detail: { operationId: 'listProviders', summary: 'List OpenID Connect providers', tags },
    })
    .post(
      '/api/server/providers',
      async ({ call, body }) => {
        const { actor } = call
        const added = await transact(call.pool, async tx => {
          await lockOwnAccount(tx, call.admitted, 'providers.create')
          await addProvider(tx, source, { actor, body })
          return list(tx)
        })
        return succeed(call, 201, added)
      },
      {
        installation: 'providers.create',
        body: ProviderBody,
        response: { 201: SuccessOf(Providers, 'All providers, with the new one.') },
        detail: { operationId: 'addProvider', summary: 'Add an OpenID Connect provider', tags },
      },
    )
    .patch(
      '/api/server/providers/:provider',
      async ({ call, body: change, params: { provider: name } }) => {
        const { actor } = call
        const changed = await transact(call.pool, async tx => {
          await lockOwnAccount(tx, call.admitted, 'providers.edit')
          await changeProvider(tx, source, { actor, name, change })
          return list(tx)
        })
        return succeed(call, 200, changed)
      },
      {
        installation: 'providers.edit',
        body: ProviderChange,
        response: { 200: SuccessOf(Providers, 'All providers, with the changes.') },
        detail: {
          operationId: 'editProvider',
          summary: 'Change an OpenID Connect provider',
          description: 'For another issuer, add another provider.',
          tags,
        },
      },
    )
    .delete(
      '/api/server/providers/:provider',
      async ({ call, params: { provider: name } }) => {
        await transact(call.pool, async tx => {
          await lockOwnAccount(tx, call.admitted, 'providers.delete')
          await deleteProvider(tx, call.actor, name)
        })
        return succeed(call, 200, { name })
      },
      {
        installation: 'providers.delete',
        response: { 200: SuccessOf(DeletedProvider, 'The provider is deleted.') },
        detail: {
          operationId: 'deleteProvider',
          summary: 'Delete an OpenID Connect provider',
          tags,
        },
      },
    )
    .post(
      '/api/server/providers/:provider/check',
      async ({ call, params: { provider: name } }) => {
        const provider = await call.pool.run(sql => getProvider(sql, source, name))
        return succeed(call, 200, { problem: (await clients.check(provider)) ?? null })
      },
      {
        installation: 'providers.check',
        response: { 200: SuccessOf(ProviderCheck, 'The result of the discovery.') },
        detail: {
          operationId: 'checkProvider',
          summary: 'Check an OpenID Connect provider',
          description: 'Fetches its metadata and its keys.',
          tags,
        },
      },
    )
}
