import type { Event } from '../../../log/events/schema.ts'
import { STATES } from '../../../log/events/state.ts'
import { CodeBlock } from '../components/copy-button.tsx'
import { Details } from '../components/item.tsx'
import { ProjectLayout } from '../components/layout.tsx'
import { LevelMark } from '../components/level.tsx'
import { OutwardLink } from '../components/linked-text.tsx'
import { PagedList, usePages } from '../components/pages.tsx'
import { isQuestion, StateMark } from '../components/state.tsx'
import { Moment } from '../components/timestamp.tsx'
import { toVisibleTitle } from '../feed/log.ts'
import { channelChanges, channelIcons, isDecisive } from '../feed/use-channels.ts'
import { SYSTEM_CLOCK } from '../live/clock.ts'
import { alarmChanges, createConnection } from '../live/connection.ts'
import { createThrottle } from '../live/throttle.ts'
import { LiveSummary, useSocket } from '../live/use-socket.tsx'
import { toPlural } from '../locale.ts'
import { toEventPath } from '../paths.ts'
import type { Item } from '../routes.ts'
import { follow } from '../threads/open-threads.ts'
import { AcknowledgeButton, Acknowledged, isAlarming } from '../threads/alarms.tsx'
import { OnDuty } from '../threads/on-duty.tsx'
import { Clock, SilenceLine, useSilences, type Silence } from '../threads/project-silence.tsx'
import { listPlaces, Silenced, SilenceButton } from '../threads/silences.tsx'
import { isAllowed } from '../session.ts'
import type { ProjectPageProps } from './props.ts'

const ROUTE = 'GET /api/projects/:projectId/threads'
/** Finds the events of all threads that have a state. */
const WITH_STATE = STATES.map(state => `state:${state}`).join(' ')
const RENDER_MS = 300
/** The shortest time between two requests that events cause. */
const REFRESH_MS = 2_000

/** The open threads of a project, the worst first. */
export default function OpenPage({ account, project }: ProjectPageProps) {
  const { pages, live } = useOpenThreads(project)
  const { items, loadMore } = pages
  const { items: silences } = useSilences(project).data ?? {}
  // The line above the list says what is true of all of it.
  const partial = silences?.filter(({ channelId }) => channelId !== null)
  const mayAct = isAllowed(account, project, 'member')
  return (
    <ProjectLayout account={account} project={project} at="open" title="Open">
      <SilenceLine account={account} project={project} items={silences} />
      <LiveSummary live={live}>
        {items.length > 0 && summarize(items, loadMore ? '+' : '')}
      </LiveSummary>
      <OnDuty account={account} project={project} />
      <PagedList pages={pages} empty={<NothingOpen />}>
        {thread => (
          <OpenThread key={thread.threadSeq} {...{ project, thread, mayAct }} silences={partial} />
        )}
      </PagedList>
    </ProjectLayout>
  )
}

/** The number of open threads, and of those that nobody has answered. */
function summarize(items: readonly Item<typeof ROUTE>[], more: string): string {
  const unanswered = items.filter(
    ({ state, thread, acknowledged }) =>
      !acknowledged && (state === 'firing' || isQuestion(thread)),
  )
  const count = `${items.length.toLocaleString()}${more} open`
  return unanswered.length === 0 ? count : `${count}, ${unanswered.length}${more} unanswered`
}

interface ThreadOptions {
  project: string
  thread: Item<typeof ROUTE>
  silences: readonly Silence[] | undefined
  mayAct: boolean
}

function OpenThread({ project, thread, silences, mayAct }: ThreadOptions) {
  const { channelId, channelName, state, level, acknowledged } = thread
  const { count, openedAt, updatedAt, event } = thread
  const title = toVisibleTitle(event.title)
  return (
    <li>
      <span class="channel-icon" aria-hidden="true">
        {event.icon ?? channelIcons.value[channelId] ?? '#'}
      </span>
      <div class="item-main">
        <a class="text-link" href={toEventPath(project, event.id)}>
          <LevelMark level={level} /> <bdi>{title}</bdi>
        </a>
        <Acknowledged {...acknowledged} />
        <Details>
          <StateMark state={state} thread={thread.thread} />
          <bdi>{channelName}</bdi>
          <Clock word="since" at={openedAt} />
          {count > 1 && (
            <>
              {toPlural(count, 'event')}, last <Moment at={updatedAt} />
            </>
          )}
        </Details>
        <Silenced items={silences} place={thread} />
      </div>
      <div class="item-actions">
        {mayAct && isAlarming(thread) && (
          <>
            {!acknowledged && <AcknowledgeButton {...{ project, event }} />}
            <SilenceButton
              action="Silence…"
              project={project}
              places={listPlaces({ ...thread, title })}
            />
          </>
        )}
        {event.url !== undefined && (
          <OutwardLink class="action-link" href={event.url} aria-label={`Open URL of ${title}`}>
            Open URL <span aria-hidden="true">↗</span>
          </OutwardLink>
        )}
      </div>
    </li>
  )
}

function NothingOpen() {
  return (
    <>
      <div class="empty-state">
        <h2>Nothing is open</h2>
        <p>
          An event with a <code>thread</code> that is <code>firing</code> or <code>running</code>{' '}
          stays here until an event with the same <code>thread</code> is <code>resolved</code>,{' '}
          <code>succeeded</code> or <code>failed</code>.{' '}
          <a href="/docs/alerts#threads">How threads work</a>
        </p>
      </div>
      <CodeBlock
        label="Open a thread"
        text={`curl '${location.origin}/v1/channels/ops?thread=disk&state=firing' \\
  -H 'Authorization: Bearer YOUR_API_KEY' \\
  -d 'Disk full'`}
      />
    </>
  )
}

/** The open threads, kept up to date over a socket. */
function useOpenThreads(project: string) {
  const pages = usePages(ROUTE, { projectId: project }, { pauseMs: REFRESH_MS, when: alarmChanges })
  const live = useSocket(project, environment => {
    const { change, refresh } = pages
    let events: Event[] = []
    const { trigger } = createThrottle(SYSTEM_CLOCK, RENDER_MS, () => {
      const taken = events
      events = []
      if (taken.some(isDecisive)) channelChanges.value += 1
      change(page => {
        const followed = follow(page, taken)
        if (!followed.isCurrent) refresh()
        return followed.page
      })
    })
    return createConnection({
      ...environment,
      project,
      toSearch: () => ({ q: WITH_STATE }),
      onStart: refresh,
      onResume: refresh,
      onMessage(message) {
        if (message.type === 'deleted' || message.type === 'restored') refresh()
        if (message.type !== 'event') return
        events.push(message.event)
        trigger()
      },
    })
  })
  return { pages, live }
}
