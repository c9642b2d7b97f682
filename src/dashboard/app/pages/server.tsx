import type { ComponentChildren } from 'preact'
import type { ServerInfo } from '../../../accounts/server-schema.ts'
import type { AccountPage } from '../app.tsx'
import { AuditLog } from '../audit/log.tsx'
import { AccountFrame } from '../parts/frame.tsx'
import { Loaded } from '../parts/loaded.tsx'
import { Moment } from '../parts/moment.tsx'
import { useAnswer } from '../parts/use-answer.ts'
import { PATHS } from '../paths.ts'
import { request } from '../request.ts'
import { toSize } from '../server/sizes.ts'

/** Free room below this share of a disk is little. */
const LITTLE = 0.1
const LATE_MS = 60_000

/** How the server is, for its operator. */
export function ServerPage({ account }: AccountPage) {
  const asked = useAnswer('', () => request<ServerInfo>('GET', '/api/server'))
  return (
    <AccountFrame account={account} path={PATHS.server} title="Server">
      <div class="settings">
        <h1 class="page-title">Server</h1>
        {account.person.isOperator ? (
          <>
            <Loaded of={asked}>{info => <Facts info={info} />}</Loaded>
            <button type="button" class="quiet-button" onClick={() => void asked.read()}>
              Look again
            </button>
            <AuditLog />
          </>
        ) : (
          <p class="lead-in">Only the operator sees this: whoever set the server up.</p>
        )}
      </div>
    </AccountFrame>
  )
}

function Facts({ info }: { info: ServerInfo }) {
  const { version, runtime, source, startedAt, database, disk, deliveries, push } = info
  const { pending, oldestMs, running } = deliveries
  const isFull = disk !== null && disk.freeBytes < disk.totalBytes * LITTLE
  return (
    <dl class="state">
      <Fact name="Version">
        Tidings {version} on {runtime}
        <Aside>
          started <Moment atMs={Date.parse(startedAt)} isFar /> · free software,{' '}
          {source === undefined ? 'AGPL-3.0' : <a href={source}>AGPL-3.0, the source</a>}
        </Aside>
      </Fact>
      <Fact name="Address" state={<Https isOn={info.isHttps} />}>
        <bdi>{info.url}</bdi>
        <Aside>{toAddressWords(info)}</Aside>
      </Fact>
      <Fact name="Database">
        Postgres {database.version}, {database.kind}
        <Aside>
          {toSize(database.bytes)} · {info.events.toLocaleString()} events in{' '}
          {info.projects.toLocaleString()} projects
        </Aside>
      </Fact>
      <Fact name="Disk" state={isFull && <span class="badge badge-bad">Nearly full</span>}>
        {disk === null ? (
          'Unknown'
        ) : (
          <>
            {toSize(disk.freeBytes)} free of {toSize(disk.totalBytes)}
            <Aside>
              where <bdi>{disk.folder}</bdi> is
            </Aside>
          </>
        )}
      </Fact>
      <Fact name="Live feeds">{info.sockets.toLocaleString()} open</Fact>
      <Fact
        name="Deliveries"
        state={oldestMs > LATE_MS && <span class="badge badge-bad">Late</span>}
      >
        {(pending.push + pending.webhook).toLocaleString()} waiting
        <Aside>
          {pending.push.toLocaleString()} pushes, {pending.webhook.toLocaleString()} for webhooks ·{' '}
          {oldestMs < 1_000
            ? 'nothing is overdue'
            : `the oldest is ${toSeconds(oldestMs)} s overdue`}{' '}
          · {running.toLocaleString()} under way
        </Aside>
      </Fact>
      <Fact
        name="Push"
        state={push.subject === null && <span class="badge badge-bad">No contact</span>}
      >
        {push.devices.toLocaleString()} devices
        <Aside>
          {push.subject === null ? (
            'Apple refuses pushes from nobody: set VAPID_SUBJECT to an address like mailto:you@example.com.'
          ) : (
            <>
              push services write to <bdi>{push.subject}</bdi>
              {!push.isSubjectSet && ', the operator’s address, as VAPID_SUBJECT is not set'}
            </>
          )}
          {' · '}
          {push.keyId === null ? (
            'the key is made when the first device asks for it'
          ) : (
            <>
              key <code>{push.keyId}</code>
            </>
          )}
        </Aside>
      </Fact>
    </dl>
  )
}

function toSeconds(ms: number): string {
  return Math.floor(ms / 1_000).toLocaleString()
}

function Fact({
  name,
  state,
  children,
}: {
  name: string
  state?: ComponentChildren
  children: ComponentChildren
}) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {children} {state}
      </dd>
    </div>
  )
}

function Aside({ children }: { children: ComponentChildren }) {
  return <p class="item-about">{children}</p>
}

function Https({ isOn }: { isOn: boolean }) {
  return (
    <span class={`badge ${isOn ? 'badge-good' : 'badge-bad'}`}>{isOn ? 'HTTPS' : 'No HTTPS'}</span>
  )
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
