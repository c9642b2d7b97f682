import { Elysia } from 'elysia'
import type { ProviderSettings } from '../../base/config/openid.ts'
import { Fault } from '../../base/errors.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import type { SessionGuard, SessionGuardOptions } from '../guard/guard.ts'
import type { ProviderClients } from './provider-client.ts'
import { ProviderCheck, Providers } from './schema.ts'
import { toLogoutUrl, toRedirectUrl } from './visit.ts'

const tags = ['Server']

/** The dependencies of the routes of OpenID Connect and of the proxy header. */
export interface OpenidParts extends SessionGuardOptions {
  guard: SessionGuard
  /** Ordered by label. */
  providers: readonly ProviderSettings[]
  secrets: Pick<Secrets, 'seal' | 'open'>
  clients: ProviderClients
  /** True if AUTH_PROXY_HEADER is set. */
  hasProxyHeader: boolean
  /** Returns the e-mail address in the proxy header of a request from a trusted proxy. */
  findProxyEmail(request: Request): string | undefined
}

/** Returns the provider with a name. Throws `not_found`. */
export function getProvider(
  providers: readonly ProviderSettings[],
  name: string,
): ProviderSettings {
  const found = providers.find(one => one.name === name)
  if (found) return found
  throw new Fault('not_found', 'No provider has this name')
}

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
