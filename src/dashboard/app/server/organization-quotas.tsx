import type { OrganizationUsage } from '../../../accounts/schema.ts'
import { Loaded } from '../components/loaded.tsx'
import type { Query } from '../components/use-query.ts'
import { t } from '../locales/translate.tsx'
import { request, type Result } from '../request.ts'
import { toSize } from './sizes.ts'

type Usage = { items: OrganizationUsage[] }

export function readOrganizationUsage(): Promise<Result<Usage>> {
  return request<Usage>('GET', '/api/server/organizations')
}

/** The quotas of organizations, those with the most bytes today first. */
export function OrganizationQuotas({ query }: { query: Query<Usage> }) {
  return (
    <section class="section" aria-labelledby="quotas">
      <h2 id="quotas">{t('server.quotas')}</h2>
      <Loaded query={query}>
        {({ items }) => (
          <ul class="items">
            {items.map(one => (
              <li key={one.id}>
                <div class="item-main">
                  <p>
                    <bdi>{one.name}</bdi>{' '}
                    {isUsedUp(one) && <span class="badge badge-bad">{t('server.quotaUsed')}</span>}
                  </p>
                  <p class="item-details">{toText(one)}</p>
                </div>
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </section>
  )
}

function isUsedUp({ events, bytes, channels, webhooks }: OrganizationUsage): boolean {
  return [events, bytes, channels, webhooks].some(({ used, limit }) => used >= limit)
}

function toText({ events, bytes, channels, webhooks }: OrganizationUsage): string {
  return [
    t('server.quotaEvents', events),
    t('server.quotaBytes', { used: toSize(bytes.used), limit: toSize(bytes.limit) }),
    t('server.quotaChannels', channels),
    t('server.quotaWebhooks', webhooks),
  ].join(' · ')
}
