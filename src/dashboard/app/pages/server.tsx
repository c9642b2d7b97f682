import type { ComponentChildren } from 'preact'
import type { ServerInfo } from '../../../accounts/schema.ts'
import type { AccountPageProps } from './props.ts'
import { AuditLog } from '../audit/audit-log.tsx'
import { SettingsLayout } from '../components/layout.tsx'
import { Loaded } from '../components/loaded.tsx'
import { Timestamp } from '../components/timestamp.tsx'
import { useQuery } from '../components/use-query.ts'
import { PATHS } from '../paths.ts'
import { request } from '../request.ts'
import { toSize } from '../server/sizes.ts'

/** Free room below this share of a disk is little. */
const LITTLE = 0.1
const LATE_MS = 60_000

/** How the server is, for its operator. */
export default function ServerPage({ account }: AccountPageProps) {
  const query = useQuery('', () => request<ServerInfo>('GET', '/api/server'))
  return (
    <SettingsLayout account={account} path={PATHS.server} title="Server">
      <div class="settings">
        <h1 class="page-title">Server</h1>
        {account.person.isOperator ? (
          <>
            <Loaded query={query}>{info => <Facts info={info} />}</Loaded>
            <button type="button" class="quiet-button" onClick={() => void query.refetch()}>
              Look again
            </button>
            <AuditLog />
          </>
        ) : (
          <p class="page-lead">Only the operator sees this: whoever set the server up.</p>
        )}
      </div>
    </SettingsLayout>
  )
}

function Facts({ info }: { info: ServerInfo }) {
  const { version, runtime, source, startedAt, database, disk, deliveries, push } = info
  const { pending, oldestMs, running } = deliveries
  const isFull = disk !== null && disk.freeBytes < disk.totalBytes * LITTLE
  return (
    <dl class="server-facts">
      <Fact
        name="Version"
        value={`Tidings ${version} on ${runtime}`}
        about={
          <>
            started <Timestamp atMs={Date.parse(startedAt)} hasDate /> · free software,{' '}
            {source === undefined ? 'AGPL-3.0' : <a href={source}>AGPL-3.0, the source</a>}
          </>
        }
      />
      <Fact
        name="Address"
        value={info.url}
        warning={info.isHttps ? undefined : 'No HTTPS'}
        about={toAddressWords(info)}
      />
      <Fact
        name="Database"
        value={`Postgres ${database.version}, ${database.kind}`}
        about={`${toSize(database.bytes)} · ${toMany(info.events, 'event')} in ${toMany(info.projects, 'project')}`}
      />
      <Fact
        name="Disk"
        value={
          disk === null ? 'Unknown' : `${toSize(disk.freeBytes)} free of ${toSize(disk.totalBytes)}`
        }
        warning={isFull ? 'Nearly full' : undefined}
        about={disk && `where ${disk.folder} is`}
      />
      <Fact name="Live feeds" value={`${toCount(info.sockets)} open`} />
      <Fact
        name="Deliveries"
        value={`${toCount(pending.push + pending.webhook)} waiting`}
        warning={oldestMs > LATE_MS ? 'Late' : undefined}
        about={[
          `${toCount(pending.push)} for devices, ${toCount(pending.webhook)} for webhooks`,
          oldestMs < 1_000
            ? 'nothing is overdue'
            : `the oldest is ${toCount(Math.floor(oldestMs / 1_000))} s overdue`,
          `${toCount(running)} under way`,
        ].join(' · ')}
      />
      <Fact
        name="Push"
        value={toMany(push.devices, 'device')}
        warning={push.subject === null ? 'No contact' : undefined}
        about={[
          push.subject === null
            ? 'Apple refuses pushes from nobody: set VAPID_SUBJECT to an address like mailto:you@example.com'
            : `push services write to ${push.subject}`,
          push.isSubjectSet || push.subject === null
            ? ''
            : 'the operator’s address, as VAPID_SUBJECT is not set',
          push.keyId === null
            ? 'the key is made when the first device asks for it'
            : `key ${push.keyId}`,
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
  /** What is wrong with it, in a word or two. */
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

function toCount(count: number): string {
  return count.toLocaleString()
}

function toMany(count: number, one: string): string {
  return `${toCount(count)} ${one}${count === 1 ? '' : 's'}`
}

function toAddressWords({ url, isUrlSet, isHttps }: ServerInfo): string {
  if (!isUrlSet)
    return 'BASE_URL is not set: links that are handed over lead to this machine alone.'
  if (location.origin !== new URL(url).origin) {
    return `You came by ${location.origin}: is BASE_URL still right?`
  }
  return isHttps
    ? 'as BASE_URL says'
    : 'Passwords can be read on the way, and push needs HTTPS: put a proxy with HTTPS in front.'
}
