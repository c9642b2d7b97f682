import { Elysia } from 'elysia'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { getProvider, type OpenidParts } from './parts.ts'
import { ProviderCheck, Providers } from './schema.ts'
import { toLogoutUrl, toRedirectUrl } from './visit.ts'

const tags = ['Server']

/** Routes that show the OpenID Connect providers to operators, and check them. */
export function providerRoutes({ guard, site, providers, clients }: OpenidParts) {
  return new Elysia({ name: 'openid.providers' })
    .use(guard)
    .get(
      '/api/server/providers',
      ({ call }) => {
        const items = providers.map(provider => {
          const { clientSecret: _, ...shown } = provider
          return {
            ...shown,
            isFailing: clients.isFailing(provider),
            redirectUrl: toRedirectUrl(site, provider.name),
            logoutUrl: toLogoutUrl(site, provider.name),
          }
        })
        return succeed(call, 200, { items })
      },
      {
        installation: 'providers.read',
        response: { 200: SuccessOf(Providers, 'All providers.') },
        detail: { operationId: 'listProviders', summary: 'List OpenID Connect providers', tags },
      },
    )
    .post(
      '/api/server/providers/:provider/check',
      async ({ call, params: { provider: name } }) => {
        const provider = getProvider(providers, name)
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
