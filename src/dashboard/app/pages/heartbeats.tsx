import { useState } from 'preact/hooks'
import { toPeriod, UNITS } from '../../../base/period.ts'
import { ActionButton } from '../components/action-button.tsx'
import { QuietButton } from '../components/buttons.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { CodeBlock } from '../components/copy-button.tsx'
import { Select } from '../components/fields.tsx'
import { Field } from '../components/form.tsx'
import { FormButton } from '../components/inline-form.tsx'
import { Details, Item, MoreMenu } from '../components/item.tsx'
import { ProjectLayout } from '../components/layout.tsx'
import { capitalize } from '../components/level.tsx'
import { PagedList } from '../components/pages.tsx'
import { Loaded, MINUTE_MS, useRoute } from '../components/query.tsx'
import { Moment } from '../components/timestamp.tsx'
import { useChannels } from '../feed/use-channels.ts'
import { request } from '../request.ts'
import type { Data } from '../routes.ts'
import { isAllowed } from '../session.ts'
import { toDuration } from '../time.ts'
import type { ProjectPageProps } from './props.ts'

const ROUTE = '/api/projects/:projectId/heartbeats'
const ONE = `${ROUTE}/:heartbeatId` as const
const LOOKS = { new: '', up: 'good', down: 'bad', paused: '' }
const RESULTS = { success: 'Succeeded', start: 'Started', fail: 'Failed', log: 'Logged' }

type Heartbeat = Data<`GET ${typeof ROUTE}`>['items'][number]

/** The heartbeats of a project, each with its state, its address and its last pings. */
export default function HeartbeatsPage({ account, project }: ProjectPageProps) {
  const beats = useRoute(`GET ${ROUTE}`, { projectId: project }, { everyMs: MINUTE_MS })
  const mayEdit = isAllowed(account, project, 'member')
  const [created, setCreated] = useState('')
  const onDone = () => void beats.refetch()
  return (
    <ProjectLayout account={account} project={project} at="heartbeats" title="Heartbeats">
      <div class="settings">
        <p class="page-lead">
          A job calls its address when it is done. If it does not, its channel is told.{' '}
          <a href="/docs/heartbeats">How to add the call to a job</a>
        </p>
        {mayEdit && (
          <div class="primary-action">
            <FormButton
              action="New heartbeat"
              isPrimary
              submit="Create"
              send={value => request(`POST ${ROUTE}`, { projectId: project, ...read(value) })}
              onDone={({ id }) => {
                setCreated(id)
                onDone()
              }}
            >
              <Fields project={project} />
            </FormButton>
          </div>
        )}
        <PagedList
          pages={{ ...beats, items: beats.data?.items ?? [] }}
          empty={
            <div class="empty-state">
              <h2>No job reports yet</h2>
              <p>
                Create a heartbeat for a backup or another job of cron. You get the line that
                reports for it.
              </p>
            </div>
          }
        >
          {one => (
            <Beat key={one.id} {...{ project, one, mayEdit, onDone }} isNew={one.id === created} />
          )}
        </PagedList>
      </div>
    </ProjectLayout>
  )
}

interface BeatOptions {
  project: string
  one: Heartbeat
  mayEdit: boolean
  /** True shows its address at once. */
  isNew: boolean
  onDone(): void
}

function Beat({ project, one, mayEdit, isNew, onDone }: BeatOptions) {
  const [isOpen, setOpen] = useState(isNew)
  const { name, status, url, lastPingAt, startedAt } = one
  const place = { projectId: project, heartbeatId: one.id }
  const edit = (change: object) => request(`PATCH ${ONE}`, { ...place, ...change })
  const shows = url === null ? 'Pings' : 'Address and pings'
  return (
    <>
      <Item
        title={
          <h2>
            <bdi>{name}</bdi>{' '}
            <span class={`badge badge-${LOOKS[status]}`}>{capitalize(status)}</span>
          </h2>
        }
        details={[
          <bdi>{one.channelName}</bdi>,
          `every ${toPeriod(one.periodSeconds).replace(/^1 /, '')}, ${toPeriod(one.graceSeconds)} of grace`,
          lastPingAt ? <Moment word="last result" at={lastPingAt} /> : 'no result yet',
          startedAt && <Moment word="running since" at={startedAt} />,
        ]}
      >
        <QuietButton
          aria-expanded={isOpen}
          aria-label={`${shows} of ${name}`}
          onClick={() => setOpen(!isOpen)}
        >
          {shows}
        </QuietButton>
        {mayEdit && (
          <>
            <FormButton
              action="Edit"
              label={`Edit ${name}`}
              submit="Save"
              send={value => edit(read(value))}
              onDone={onDone}
            >
              <Fields project={project} one={one} />
            </FormButton>
            <MoreMenu name={name}>
              <ActionButton
                action={status === 'paused' ? 'Resume' : 'Pause'}
                send={() => edit({ isPaused: status !== 'paused' })}
                onDone={onDone}
              />
              <ConfirmButton
                isQuiet
                action="New address"
                title="Give another address to"
                name={name}
                lead="The present address stops working at once."
                yes="Change address"
                send={() => edit({ newAddress: true })}
                onDone={onDone}
              />
              <ConfirmButton
                action="Delete"
                title="Delete"
                name={name}
                lead="Its pings are deleted, and its address stops working."
                yes="Delete heartbeat"
                send={() => request(`DELETE ${ONE}`, place)}
                onDone={onDone}
              />
            </MoreMenu>
          </>
        )}
      </Item>
      {isOpen && (
        <li aria-label={`${shows} of ${name}`}>
          <div class="item-main">
            {url !== null && <Commands url={url} />}
            <Pings {...place} />
          </div>
        </li>
      )}
    </>
  )
}

/** The address, and the lines that call it. */
function Commands({ url }: { url: string }) {
  const curl = `curl -fsS -m 10 --retry 5 -o /dev/null ${url}`
  return (
    <>
      <CodeBlock label="Its address" text={url} />
      <CodeBlock label="At the end of a script" text={curl} />
      <CodeBlock label="In a crontab" text={`0 3 * * * /usr/local/bin/backup && ${curl}`} />
    </>
  )
}

function Pings(place: { projectId: string; heartbeatId: string }) {
  return (
    <Loaded query={useRoute(`GET ${ONE}/pings`, place, { everyMs: 10_000 })}>
      {({ items }) =>
        items.length === 0 ? (
          <p>No pings yet</p>
        ) : (
          items.map(({ number, kind, at, tookMs, exitCode, userAgent, body }) => (
            <details key={number} class="attempt">
              <summary>
                <span class={`badge badge-${kind === 'fail' ? 'bad' : ''}`}>{RESULTS[kind]}</span>
                <span class="item-details">
                  <Moment at={at} />
                  {tookMs !== null && `, took ${toDuration(tookMs)}`}
                  {exitCode !== null && `, exit code ${exitCode}`}
                </span>
              </summary>
              <Details>{[<bdi>{userAgent}</bdi>]}</Details>
              {body && <pre dir="auto">{body}</pre>}
            </details>
          ))
        )
      }
    </Loaded>
  )
}

function Fields({ project, one }: { project: string; one?: Heartbeat }) {
  const { list = [] } = useChannels(project)
  return (
    <>
      <Field name="name" label="Name" value={one?.name} />
      <Select
        name="channel"
        label="Channel"
        value={one?.channelId}
        valueText={one?.channelName}
        options={list.map(({ id, name }) => ({ value: id, text: name, isUserText: true }))}
      />
      <Length
        name="period"
        label="It reports every"
        unitLabel="Unit of the period"
        seconds={one?.periodSeconds ?? 86_400}
      />
      <Length
        name="grace"
        label="It may be late by"
        unitLabel="Unit of the grace"
        seconds={one?.graceSeconds ?? 3600}
      />
    </>
  )
}

interface LengthOptions {
  name: string
  label: string
  unitLabel: string
  seconds: number
}

/** A number and its unit, side by side. */
function Length({ name, label, unitLabel, seconds }: LengthOptions) {
  const [n = '', unit = ''] = toPeriod(seconds).split(' ')
  return (
    <div class="length">
      <Field name={`${name}Seconds`} label={label} isNumber value={n} />
      <Select
        name={name}
        label={unitLabel}
        value={unit.replace(/s$/, '')}
        options={UNITS.map(([name]) => ({ value: name, text: `${name}s` }))}
      />
    </div>
  )
}

/** Reads the fields of a heartbeat. */
function read(value: (name: string) => string) {
  const toSeconds = (name: string) =>
    Number(value(`${name}Seconds`)) * (UNITS.find(([unit]) => unit === value(name))?.[1] ?? 0)
  return {
    name: value('name'),
    channel: value('channel'),
    periodSeconds: toSeconds('period'),
    graceSeconds: toSeconds('grace'),
  }
}
