import type { ReadonlySignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { toVisible } from '../../../base/display-text.ts'
import type { Event } from '../../../log/events/schema.ts'
import { toVisibleTitle, type Log } from '../feed/log.ts'
import { INTERACTIVE } from '../feed/use-pause.ts'
import { EMPTY_SEARCH, toSearchPath, toTermText, type Search } from '../feed/search.ts'
import { eventChannel } from '../palette/state.ts'
import { toShortcutKey } from '../key-press.ts'
import { CopyButton } from '../components/copy-button.tsx'
import { MoreMenu } from '../components/item.tsx'
import { LevelMark, capitalize } from '../components/level.tsx'
import { LinkedText, OutwardLink } from '../components/linked-text.tsx'
import { isQuestion, StateMark } from '../components/state.tsx'
import { now, Timestamp } from '../components/timestamp.tsx'
import { showResult, showToast } from '../components/toast.tsx'
import { toChannelPath, toEventPath } from '../paths.ts'
import { UserName } from '../users/avatar.tsx'
import { isSameDay, toFullTime } from '../time.ts'
import { toMetadataText } from '../../../log/events/metadata-values.ts'
import { toCurl } from './curl.ts'
import { DeliveryList } from './deliveries.tsx'
import { History } from './history.tsx'
import { JsonTree } from './json-tree.tsx'
import { Alarm } from '../threads/alarms.tsx'
import { Question } from '../threads/question.tsx'
import { closeSeen } from '../push/seen.ts'
import type { NeighbourIds } from './use-neighbours.ts'
import { Loaded, useRoute } from '../components/query.tsx'
import type { ProjectChannel } from '../../../log/channels/schema.ts'
import { request } from '../request.ts'
import { QuietButton } from '../components/buttons.tsx'
import { switchMute } from '../channels/api.ts'
import type { Role } from '../../../access/guard/permissions.ts'
import { copyText } from '../copy-text.ts'

interface PanelOptions {
  project: string
  id: string
  search: Search
  neighbours: NeighbourIds
  /** The log of the list. */
  log: ReadonlySignal<Log>
  /** The channels of the project, once they are loaded. */
  channels: readonly ProjectChannel[] | undefined
  /** Returns whether the account has at least this role. */
  may(role: Role): boolean
  onGo(id: string): void
  onClose(): void
}

/** The details of an event: next to the list on wide screens, else in front of it. */
export function EventPanel({
  project,
  id,
  search,
  neighbours,
  log,
  channels,
  may,
  onGo,
  onClose,
}: PanelOptions) {
  const panel = useRef<HTMLElement>(null)
  const place = { projectId: project, eventId: id }
  const query = useRoute('GET /api/projects/:projectId/events/:eventId', place)
  const { data: event, failure } = query
  const isGone = failure?.code === 'not_found'
  const { newer, older } = neighbours

  const channelId = event?.channelId
  const channel = channels?.find(one => one.id === channelId)
  const isLoaded = event !== undefined
  const about = event && `${project} ${event.threadSeq ?? event.seq}`

  useEffect(() => {
    eventChannel.value = channelId
    return () => {
      eventChannel.value = undefined
    }
  }, [channelId])
  useEffect(() => {
    if (!isLoaded) return
    // An event that was opened in a background tab is seen when the tab is.
    const see = () => {
      void closeSeen(one => one.path === `/e/${id}` || one.about === about)
      if (!document.hidden)
        void request('POST /api/projects/:projectId/events/:eventId/opened', place)
    }
    see()
    document.addEventListener('visibilitychange', see)
    return () => document.removeEventListener('visibilitychange', see)
  }, [id, isLoaded])
  useLayoutEffect(() => {
    panel.current?.focus({ preventScroll: true })
    panel.current?.scrollTo({ top: 0 })
  }, [id])
  // A layout effect, so that the next key already belongs to the event that is shown.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
      if (document.querySelector('dialog[open], :popover-open')) return
      const target = event.target instanceof Element ? event.target : null
      // Closing the event would lose what is typed.
      if (target?.closest('input, form')) return
      const key = toShortcutKey(event)
      if (key === 'Escape') onClose()
      else if (!panel.current?.contains(target) || target?.closest(INTERACTIVE)) return
      else if (key === 'j' && older !== undefined) onGo(older)
      else if (key === 'k' && newer !== undefined) onGo(newer)
      else if (key === 'a')
        panel.current?.querySelector<HTMLElement>('.alarm:not(.question) > .button')?.click()
      else return
      event.preventDefault()
    }
    // Captures the keys before the list, which uses the same ones.
    addEventListener('keydown', onKey, { capture: true })
    return () => removeEventListener('keydown', onKey, { capture: true })
  })

  async function remove() {
    const result = await request('DELETE /api/projects/:projectId/events/:eventId', place)
    const isDeleted = showResult(result, {
      message: 'Event deleted.',
      undo: () => request('POST /api/projects/:projectId/events/:eventId/restore', place),
      onUndone: () => onGo(id),
    })
    if (isDeleted) onClose()
  }

  return (
    <section
      ref={panel}
      class="panel"
      tabIndex={-1}
      aria-label="Event"
      aria-labelledby="panel-title"
    >
      <div class="panel-top">
        <button
          type="button"
          class="icon-button"
          aria-label="Close"
          title="Escape"
          onClick={onClose}
        >
          <StrokeIcon path="m4 4 12 12m0-12L4 16" />
        </button>
        <span class="panel-spacer" />
        <StepButton label="Newer event" hint="k" to={newer} onGo={onGo} path="m4 12.5 6-6 6 6" />
        <StepButton label="Older event" hint="j" to={older} onGo={onGo} path="m4 7.5 6 6 6-6" />
      </div>
      {!event && failure && (
        <div class="panel-body">
          <h2 id="panel-title">{isGone ? 'Event not found' : "Couldn't load event"}</h2>
          {isGone && <p class="panel-time">It was deleted or has expired.</p>}
        </div>
      )}
      {!isGone && (
        <Loaded query={{ ...query, failure: event ? undefined : failure }}>
          {event => (
            <>
              <Body project={project} event={event} search={search} log={log} onGo={onGo} />
              <DeliveryList key={id} project={project} event={id} mayReplay={may('admin')} />
              <div class="panel-actions">
                <QuietButton
                  onClick={() => void shareEvent(project, id, toVisibleTitle(event.title))}
                >
                  Share
                </QuietButton>
                {(channel ?? !channels) && (
                  <QuietButton
                    style={{ visibility: channel ? 'visible' : 'hidden' }}
                    onClick={() => channel && void switchMute(project, channel)}
                  >
                    {channel?.isMuted ? 'Unmute channel' : 'Mute channel'}
                  </QuietButton>
                )}
                <MoreMenu name="this event">
                  <CopyButton label="Copy JSON" toText={() => JSON.stringify(event, null, 2)} />
                  <CopyButton label="Copy curl" toText={() => toCurl(event, location.origin)} />
                  {may('admin') && (
                    <button type="button" class="quiet-button danger" onClick={remove}>
                      Delete
                    </button>
                  )}
                </MoreMenu>
              </div>
              <Alarm key={id} {...{ project, event, log }} mayAct={may('member')} />
              {event.actions && <Question key={id} {...{ project, event, log, may }} />}
            </>
          )}
        </Loaded>
      )}
    </section>
  )
}

type BodyOptions = Pick<PanelOptions, 'project' | 'search' | 'log' | 'onGo'> & { event: Event }

function Body({ project, event, search, log, onGo }: BodyOptions) {
  const { description, icon, level, state, thread, userId } = event
  // The thread of a question says nothing.
  const hasThread = thread !== undefined && !isQuestion(thread)
  const { channelId, channelName, source, metadata } = event
  const url = event.url !== undefined && URL.canParse(event.url) ? new URL(event.url) : undefined
  const title = <bdi>{toVisibleTitle(event.title)}</bdi>
  // A tag of white space would be an empty chip.
  const tags = event.tags.filter(tag => toVisible(tag) !== '')
  const atMs = Date.parse(event.timestamp)
  const nowMs = Math.max(Date.now(), now.value)
  const find = (text: string) =>
    toSearchPath(project, { ...EMPTY_SEARCH, text, from: search.from, to: search.to })
  /** The path of all events with the same value. */
  const only = (name: Parameters<typeof toTermText>[0], value: string) => {
    const text = toTermText(name, value)
    return text === undefined ? undefined : find(text)
  }
  return (
    <div class="panel-body">
      <h2 id="panel-title" title={toVisibleTitle(event.title)}>
        <LevelMark level={level} /> {icon !== null && <span aria-hidden="true">{icon}</span>}{' '}
        {/* The button has the same target, so the title is not a tab stop. */}
        {url === undefined ? (
          title
        ) : (
          <OutwardLink href={url.href} tabIndex={-1}>
            {title}
          </OutwardLink>
        )}
      </h2>
      <p class="panel-time">
        {toFullTime(atMs)}
        {isSameDay(atMs, nowMs) && atMs <= nowMs && (
          <>
            {' · '}
            <Timestamp atMs={atMs} />
          </>
        )}
      </p>
      {description !== null && description !== '' && (
        <p class="panel-description">
          <LinkedText text={toVisible(description)} />
        </p>
      )}
      {url !== undefined && (
        <p class="panel-url">
          <OutwardLink href={url.href} class="button">
            {/* Parts of the button itself would have no spaces between them. */}
            <span>
              Open <bdi>{url.host}</bdi> <span aria-hidden="true">↗</span>
            </span>
          </OutwardLink>
        </p>
      )}
      {thread !== undefined && <History project={project} event={event} log={log} onGo={onGo} />}
      <dl class="facts">
        <Fact name="Channel">
          <a href={toSearchPath(project, { ...EMPTY_SEARCH, channelId })}>
            <bdi>{channelName}</bdi>
          </a>
          <a class="filter-link" href={toChannelPath(project, channelId)}>
            Channel settings
          </a>
        </Fact>
        {level !== undefined && (
          <Fact name="Level" path={find(`level:${level}`)}>
            {capitalize(level)}
          </Fact>
        )}
        {state !== undefined && !isQuestion(thread) && (
          <Fact name="State" path={find(`state:${state}`)}>
            <StateMark state={state} thread={event.thread} />
          </Fact>
        )}
        {hasThread && (
          <Fact name="Thread" path={only('thread', thread)}>
            <bdi>{thread}</bdi>
          </Fact>
        )}
        {userId !== null && (
          <Fact name="User" path={only('user', userId)}>
            <UserName project={project} userId={userId} />
          </Fact>
        )}
        {tags.length > 0 && (
          <>
            <dt>Tags</dt>
            <dd class="facts-tags">
              {tags.map(tag => (
                <a
                  key={tag}
                  href={only('tag', tag) ?? toSearchPath(project, EMPTY_SEARCH)}
                  class="tag"
                  title="Show only events with this tag"
                >
                  <bdi>{toVisible(tag)}</bdi>
                </a>
              ))}
            </dd>
          </>
        )}
        <Fact name="Source" path={only('source', source)}>
          <bdi>{source}</bdi>
        </Fact>
        <Fact name="Sequence">{event.seq.toLocaleString()}</Fact>
      </dl>
      {Object.keys(metadata).length > 0 && (
        <section class="metadata" aria-labelledby="panel-metadata">
          <div class="metadata-top">
            <h3 id="panel-metadata">Metadata</h3>
            <CopyButton label="Copy" toText={() => JSON.stringify(metadata, null, 2)} />
          </div>
          <JsonTree
            key={event.id}
            value={metadata}
            toFilterPath={(path, value) =>
              only('meta', `${path.join('.')}=${toMetadataText(value)}`)
            }
          />
        </section>
      )}
    </div>
  )
}

interface FactOptions {
  name: string
  /** The path of all events with the same value. */
  path?: string | undefined
  children: ComponentChildren
}

function Fact({ name, path, children }: FactOptions) {
  return (
    <>
      <dt>{name}</dt>
      <dd>
        {children}
        {path !== undefined && (
          <a class="filter-link" href={path}>
            Filter
          </a>
        )}
      </dd>
    </>
  )
}

/** Passes the link of an event to the system, or copies it where the system takes none. */
async function shareEvent(project: string, id: string, title: string): Promise<void> {
  const url = new URL(toEventPath(project, id), location.href).href
  const { share } = navigator as Partial<Navigator>
  if (share) return void share.call(navigator, { title, url }).catch(() => {}) // It was cancelled.
  showToast((await copyText(url)) ? 'Link copied.' : 'The link could not be copied.')
}

interface StepOptions {
  label: string
  hint: string
  to: string | undefined
  onGo(id: string): void
  path: string
}

/** A button that opens the next newer or older event, if there is one. */
function StepButton({ label, hint, to, onGo, path }: StepOptions) {
  return (
    <button
      type="button"
      class="icon-button"
      aria-label={label}
      title={hint}
      aria-disabled={to === undefined}
      onClick={() => to !== undefined && onGo(to)}
    >
      <StrokeIcon path={path} />
    </button>
  )
}

function StrokeIcon({ path }: { path: string }) {
  return (
    <svg class="stroke" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
      <path d={path} />
    </svg>
  )
}
