import type { ComponentChildren } from 'preact'
import type { ServerInfo } from '../../../accounts/schema.ts'
import type { AccountPageProps } from './props.ts'
import { AuditLog } from '../audit/audit-log.tsx'
import { SettingsLayout } from '../components/layout.tsx'
import { Loaded } from '../components/loaded.tsx'
import { Timestamp } from '../components/timestamp.tsx'
import { useQuery } from '../components/use-query.ts'
import { t, toRich } from '../locales/translate.tsx'
import { Providers } from '../openid/providers.tsx'
import { PATHS } from '../paths.ts'
import { request } from '../request.ts'
import { OrganizationQuotas, readOrganizationUsage } from '../server/organization-quotas.tsx'
import { toSize } from '../server/sizes.ts'
import { Standbys } from '../server/standbys.tsx'

/** Warn if less than this share of the disk is free. */
const MIN_FREE_SHARE = 0.1
const MAX_OVERDUE_MS = 60_000

/** The status of the server, for its operator. */
export default function ServerPage({ account }: AccountPageProps) {
  const query = useQuery('', () => request<ServerInfo>('GET', '/api/server'))
  const quotas = useQuery('', readOrganizationUsage)
  return (
    <SettingsLayout account={account} path={PATHS.server} title={t('common.server')}>
      <div class="settings">
        <h1 class="page-title">{t('common.server')}</h1>
        {account.person.isOperator ? (
          <>
            <Loaded query={query}>{info => <Facts info={info} />}</Loaded>
            <OrganizationQuotas query={quotas} />
            <button
              type="button"
              class="quiet-button"
              onClick={() => {
                void query.refetch()
                void quotas.refetch()
              }}
            >
              {t('words.refresh')}
            </button>
            <Providers />
            <AuditLog />
          </>
        ) : (
          <p class="page-lead">{t('server.operatorOnly')}</p>
        )}
      </div>
    </SettingsLayout>
  )
}

function Facts({ info }: { info: ServerInfo }) {
  const { version, runtime, startedAt, database, disk, deliveries, push } = info
  const { pending, oldestMs, running } = deliveries
  const isFull = disk !== null && disk.freeBytes < disk.totalBytes * MIN_FREE_SHARE
  return (
    <dl class="server-facts">
      <Fact
        name={t('server.version')}
        value={t('server.versionValue', { version, runtime })}
        about={toRich({
          key: 'server.versionAbout',
          values: { time: <Timestamp atMs={Date.parse(startedAt)} hasDate /> },
          elements: { source: text => <a href="/source">{text}</a> },
        })}
      />
      <Fact
        name={t('server.address')}
        value={info.url}
        warning={info.isHttps ? undefined : t('server.noHttps')}
        about={toUrlNote(info)}
      />
      <Fact
        name={t('server.database')}
        value={`Postgres ${database.version}, ${t(database.kind === 'embedded' ? 'server.embedded' : 'server.external')}`}
        about={t('server.databaseAbout', {
          size: toSize(database.bytes),
          events: info.events,
          projects: info.projects,
        })}
      />
      <Standbys standbys={database.standbys} />
      <Fact
        name={t('server.disk')}
        value={
          disk === null
            ? t('server.unknown')
            : t('server.diskFree', { free: toSize(disk.freeBytes), total: toSize(disk.totalBytes) })
        }
        warning={isFull ? t('server.almostFull') : undefined}
        about={disk && t('server.diskOf', { folder: disk.folder })}
      />
      <Fact name={t('server.liveFeeds')} value={t('server.open', { count: info.sockets })} />
      <Fact
        name={t('server.deliveries')}
        value={t('server.pending', { count: pending.push + pending.webhook })}
        warning={oldestMs > MAX_OVERDUE_MS ? t('server.delayed') : undefined}
        about={[
          t('server.pendingKinds', { push: pending.push, webhook: pending.webhook }),
          oldestMs < 1_000
            ? t('server.noneOverdue')
            : t('server.overdue', { seconds: Math.floor(oldestMs / 1_000) }),
          t('server.inFlight', { count: running }),
        ].join(' · ')}
      />
      <Fact
        name={t('server.push')}
        value={t('server.devices', { count: push.devices })}
        warning={push.subject === null ? t('server.noContact') : undefined}
        about={[
          push.subject === null
            ? t('server.noContactAbout')
            : t('server.contact', { subject: push.subject }),
          push.isSubjectSet || push.subject === null ? '' : t('server.contactDefault'),
          push.keyId === null ? t('server.noKey') : t('server.key', { id: push.keyId }),
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
    <div>
      <dt>{name}</dt>
      <dd>
        <bdi>{value}</bdi> {warning && <span class="badge badge-bad">{warning}</span>}
        {about && <p class="item-details">{about}</p>}
      </dd>
    </div>
  )
}

function toUrlNote({ url, isUrlSet, isHttps }: ServerInfo): string {
  if (!isUrlSet) return t('server.urlUnset')
  if (location.origin !== new URL(url).origin) {
    return t('server.urlOther', { origin: location.origin })
  }
  return t(isHttps ? 'server.urlSet' : 'server.urlPlain')
}
