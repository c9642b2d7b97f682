import type { OrganizationUsage } from '../../server-schema.ts'
import { Loaded } from '../components/loaded.tsx'
import type { Query } from '../components/use-query.ts'
import { toSize } from './sizes.ts'
import { Section } from '../components/section.tsx'

type Usage = { items: OrganizationUsage[] }

/** The quotas of organizations, those with the most bytes today first. */
export function OrganizationQuotas({ query }: { query: Query<Usage> }) {
  return (
    <Section id="quotas" title="Quotas">
      <Loaded query={query}>
        {({ items }) => (
          <ul class="items">
            {items.map(one => (
              <li key={one.id}>
                <div class="item-main">
                  <p>
                    <bdi>{one.name}</bdi>{' '}
                    {isUsedUp(one) && <span class="badge badge-bad">Quota used</span>}
                  </p>
                  <p class="item-details">{toText(one)}</p>
                </div>
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </Section>
  )
}

function isUsedUp({ events, bytes, channels, webhooks }: OrganizationUsage): boolean {
  return [events, bytes, channels, webhooks].some(({ used, limit }) => used >= limit)
}

function toText({ events, bytes, channels, webhooks }: OrganizationUsage): string {
  return [
    `${toUsed(events)} events this minute`,
    `${toSize(bytes.used)} of ${toSize(bytes.limit)} today`,
    `${toUsed(channels)} channels`,
    `${toUsed(webhooks)} webhooks`,
  ].join(' · ')
}

function toUsed({ used, limit }: OrganizationUsage['events']): string {
  return `${used.toLocaleString()} of ${limit.toLocaleString()}`
}
