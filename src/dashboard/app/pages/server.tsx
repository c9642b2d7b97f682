import type { ComponentChildren } from 'preact'
import type { ServerInfo, OrganizationUsage } from '../../server-schema.ts'
import type { AccountPageProps } from './props.ts'
import { AuditLog } from '../audit/audit-log.tsx'
import { Item, Section } from '../components/item.tsx'
import { Layout } from '../components/layout.tsx'
import { Loaded, useRoute, type Query } from '../components/query.tsx'
import { Moment } from '../components/timestamp.tsx'
import { toPlural } from '../locale.ts'
import { PATHS } from '../paths.ts'
import { toSize } from '../server/sizes.ts'
import { QuietButton } from '../components/buttons.tsx'
import { useState } from 'preact/hooks'
import { ActionButton } from '../components/action-button.tsx'
import type { Provider } from '../../../access/openid/schema.ts'
import { request } from '../request.ts'

/** Warn if less than this share of the disk is free. */
const MIN_FREE_SHARE = 0.1
const MAX_OVERDUE_MS = 60_000

/** The status of the server, for its operator. */
export default function ServerPage({ account }: AccountPageProps) {
  const query = useRoute('GET /api/server')
  const quotas = useRoute('GET /api/server/organizations')
  return (
    <Layout account={account} path={PATHS.server} title="Server">
      <div class="settings">
        <h1 class="page-title">Server</h1>
        {account.person.isOperator ? (
          <>
            <Loaded query={query}>{info => <Facts info={info} />}</Loaded>
            <OrganizationQuotas query={quotas} />
            <QuietButton
              onClick={() => {
                void query.refetch()
                void quotas.refetch()
              }}
            >
              Refresh
            </QuietButton>
            <Providers />
            <AuditLog />
          </>
        ) : (
          <p class="page-lead">Only the operator, who set up this server, can see this page.</p>
        )}
      </div>
    </Layout>
  )
}

function Facts({ info }: { info: ServerInfo }) {
  const { version, runtime, startedAt, database, disk, deliveries, push } = info
  const { pending, oldestMs, running } = deliveries
  const isFull = disk !== null && disk.freeBytes < disk.totalBytes * MIN_FREE_SHARE
  return (
    <dl class="facts">
      <Fact
        name="Version"
        value={`Tidings ${version} on ${runtime}`}
        about={
          <>
            started <Moment at={startedAt} /> · AGPL-3.0 · <a href="/source">source code</a>
          </>
        }
      />
      <Fact
        name="Address"
        value={info.url}
        warning={info.isHttps ? undefined : 'No HTTPS'}
        about={toUrlNote(info)}
      />
      <Fact
        name="Database"
        value={`Postgres ${database.version}, ${database.kind === 'embedded' ? 'embedded' : 'external'}`}
        about={`${toSize(database.bytes)} · ${toPlural(info.events, 'event')} in ${toPlural(info.projects, 'project')}`}
      />
      <Fact
        name="Disk"
        value={
          disk === null ? 'Unknown' : `${toSize(disk.freeBytes)} free of ${toSize(disk.totalBytes)}`
        }
        warning={isFull ? 'Almost full' : undefined}
        about={disk && `the disk of ${disk.folder}`}
      />
      <Fact name="Live feeds" value={`${info.sockets.toLocaleString()} open`} />
      <Fact
        name="Deliveries"
        value={`${(pending.push + pending.webhook).toLocaleString()} pending`}
        warning={oldestMs > MAX_OVERDUE_MS ? 'Delayed' : undefined}
        about={[
          `${pending.push.toLocaleString()} for devices, ${pending.webhook.toLocaleString()} for webhooks`,
          oldestMs < 1_000
            ? 'none overdue'
            : `the oldest ${Math.floor(oldestMs / 1_000).toLocaleString()} s overdue`,
          `${running.toLocaleString()} in flight`,
        ].join(' · ')}
      />
      <Fact
        name="Push"
        value={toPlural(push.devices, 'device')}
        warning={push.subject === null ? 'No contact' : undefined}
        about={[
          push.subject === null
            ? 'Apple refuses notifications without a contact. Set VAPID_SUBJECT, for example to mailto:you@example.com'
            : `contact for push services: ${push.subject}`,
          push.isSubjectSet || push.subject === null
            ? ''
            : 'the operator’s address, as VAPID_SUBJECT is not set',
          push.keyId === null ? 'the key is created for the first device' : `key ${push.keyId}`,
        ]
          .filter(Boolean)
          .join(' · ')}
      />
    </dl>
  )
}

interface FactOptions {
  name: string
  value: string
  about?: ComponentChildren
  /** A problem, in one or two words. */
  warning?: string | undefined
}

function Fact({ name, value, about, warning }: FactOptions) {
  return (
    <>
      <dt>{name}</dt>
      <dd>
        <bdi>{value}</bdi> {warning && <span class="badge badge-bad">{warning}</span>}
        {about && <p class="item-details">{about}</p>}
      </dd>
    </>
  )
}

function toUrlNote({ url, isUrlSet, isHttps }: ServerInfo): string {
  if (!isUrlSet) return 'BASE_URL is not set, so links to this server work only on this machine.'
  if (location.origin !== new URL(url).origin) {
    return `You opened ${location.origin}. Check whether BASE_URL is still correct.`
  }
  return isHttps
    ? 'set by BASE_URL'
    : 'Passwords are sent unencrypted, and notifications require HTTPS. Put the server behind an HTTPS proxy.'
}

type Usage = { items: OrganizationUsage[] }

/** The quotas of organizations, those with the most bytes today first. */
function OrganizationQuotas({ query }: { query: Query<Usage> }) {
  return (
    <Section id="quotas" title="Quotas">
      <Loaded query={query}>
        {({ items }) => (
          <ul class="items">
            {items.map(one => (
              <Item
                key={one.id}
                title={
                  <>
                    <bdi>{one.name}</bdi>{' '}
                    {isUsedUp(one) && <span class="badge badge-bad">Quota used</span>}
                  </>
                }
                details={[
                  `${toUsed(one.events)} events this minute`,
                  `${toSize(one.bytes.used)} of ${toSize(one.bytes.limit)} today`,
                  `${toUsed(one.channels)} channels`,
                  `${toUsed(one.webhooks)} webhooks`,
                ]}
              />
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

function toUsed({ used, limit }: OrganizationUsage['events']): string {
  return `${used.toLocaleString()} of ${limit.toLocaleString()}`
}

/** The OpenID Connect providers of the server, for its operator. */
function Providers() {
  const query = useRoute('GET /api/server/providers')
  return (
    <Section id="providers" title="Sign-in providers">
      <Loaded query={query}>
        {({ items }) => (
          <>
            {items.length === 0 && (
              <p class="note">
                No providers yet. The settings <code>OIDC_*</code> add one, such as Keycloak or
                Google.
              </p>
            )}
            <ul class="items">
              {items.map(provider => (
                <ProviderItem key={provider.name} provider={provider} />
              ))}
            </ul>
          </>
        )}
      </Loaded>
    </Section>
  )
}

function ProviderItem({ provider }: { provider: Provider }) {
  const { name, label, issuer, redirectUrl, logoutUrl, isTrusted, isFailing } = provider
  const [result, setResult] = useState<{ problem: string | null }>()
  return (
    <Item
      title={
        <>
          <bdi>{label}</bdi> {isTrusted && <span class="badge">Trusted</span>}{' '}
          {isFailing && !result && <span class="badge badge-bad">Did not respond</span>}
          <p class="item-details">
            <bdi>{issuer}</bdi>
          </p>
          <p class="item-details">
            Redirect URL: <bdi>{redirectUrl}</bdi>
          </p>
          <p class="item-details">
            Back-channel logout URL: <bdi>{logoutUrl}</bdi>
          </p>
          <p role="status" class={result?.problem ? 'issue' : 'item-details'}>
            {result && (result.problem ?? 'The provider responds.')}
          </p>
        </>
      }
    >
      <ActionButton
        action="Check"
        send={() => request('POST /api/server/providers/:provider/check', { provider: name })}
        onDone={setResult}
      />
    </Item>
  )
}
