import type { ReadonlySignal } from '@preact/signals'
import type { Event } from '../../../log/events/schema.ts'
import { ActionButton } from '../components/action-button.tsx'
import { MINUTE_MS, useRoute } from '../components/query.tsx'
import { useThreadChanges } from '../event/history.tsx'
import { toVisibleTitle, type Log } from '../feed/log.ts'
import { ErrorNotice } from '../components/standalone-page.tsx'
import { alarmChanges } from '../live/connection.ts'
import { request } from '../request.ts'
import { Clock } from './project-silence.tsx'
import { listPlaces, SilenceButton, SilencedPlace } from './silences.tsx'

const ROUTE = '/api/projects/:projectId/events/:eventId/acknowledgement'

interface AlarmOptions {
  project: string
  event: Event
  /** The log of the list, which knows of later events of the thread. */
  log: ReadonlySignal<Log>
  /** True if the account may change what others see. */
  mayAct: boolean
}

/** The member who takes care of an event, or the actions to do so. Nothing once it has ended. */
export function Alarm({ project, event, log, mayAct }: AlarmOptions) {
  const place = { projectId: project, eventId: event.id }
  const when = useThreadChanges(log, event.threadSeq)
  const query = useRoute(`GET ${ROUTE}`, place, { when, everyMs: MINUTE_MS })
  const { data, failure, refetch } = query
  if (!data && failure && failure.code !== 'not_found')
    return <ErrorNotice failure={failure} onRetry={() => void refetch()} />
  if (!data?.isOpen || !(data.acknowledgement || isAlarming(event))) return null
  return (
    <div class="alarm">
      <Acknowledged {...data.acknowledgement} />
      <SilencedPlace project={project} place={event} />
      {mayAct && (
        <>
          {!data.acknowledgement && <AcknowledgeButton {...{ project, event }} isPrimary />}
          <SilenceButton
            action="Silence…"
            project={project}
            places={listPlaces({ ...event, title: toVisibleTitle(event.title) })}
          />
        </>
      )}
    </div>
  )
}

/** Returns whether somebody may have to act: a deployment that is running needs nobody. */
export function isAlarming({ state, level }: Pick<Event, 'state' | 'level'>): boolean {
  return state !== 'running' || level === 'high' || level === 'critical'
}

/** The member who takes care of an alarm, and since when. Nothing without one. */
export function Acknowledged({
  by,
  at,
  until,
}: {
  by?: string
  at?: string
  until?: string | null
}) {
  return (
    at !== undefined && (
      <p>
        <bdi>{by}</bdi> has it <Clock word="since" at={at} />{' '}
        {until && <Clock word="until" at={until} />}
      </p>
    )
  )
}

interface ButtonOptions {
  project: string
  event: Pick<Event, 'id' | 'title'>
  isPrimary?: boolean
}

/** A button with which a member takes care of an event. The first one has it. */
export function AcknowledgeButton({ project, event, isPrimary = false }: ButtonOptions) {
  return (
    <ActionButton
      action="Acknowledge"
      {...(isPrimary ? { isPrimary } : { label: `Acknowledge ${event.title}` })}
      send={() => request(`POST ${ROUTE}`, { projectId: project, eventId: event.id })}
      onDone={() => void (alarmChanges.value += 1)}
    />
  )
}
