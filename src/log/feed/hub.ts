import type { SearchFilters } from '../events/search-filters.ts'
import { matches, toNeeds, type FilterNeeds } from './filter.ts'
import { toMessage, toRestoredMessage } from './messages.ts'
import type { FeedEvent } from './read-events.ts'

const MAX_TOPICS = 500
const RECENT_EVENTS = 512
const RECENT_CHARACTERS = 128 * 1024
const MAX_DELETED = 1_000

/** A client's subscription to one project. */
export interface Subscription {
  readonly socket: {
    send(text: string): void
    join(topic: string): void
    leave(topic: string): void
    /** Bytes that are not yet sent to the client. */
    readonly bufferedBytes: number
  }
  /** The project's uuid. */
  readonly projectId: string
  /** The project's public id. */
  readonly project: string
  /** Prepared for `matches`. */
  readonly filters: SearchFilters
  /** Every matching event up to this seq has been sent. Unused while the subscription is live. */
  cursor: number
}

/** The subscriptions of a project with the same filters. */
interface Topic {
  name: string
  filters: SearchFilters
  subscriptions: number
  /** How many of them are live: their sockets have joined the topic. */
  live: number
}

/** A project with at least one subscription. */
interface FollowedProject {
  /** The public id. */
  project: string
  /** The last published seq. */
  position: number
  /** Changes when a new filter needs more data of each event than before. */
  needsVersion: number
  /** The topics by the JSON of their filters. */
  topics: Map<string, Topic>
  subscriptions: Set<Subscription>
  /** The subscriptions that are not live. */
  catchingUp: Set<Subscription>
  /**
   * Those in `catchingUp` whose cursor is ahead of the position. Each becomes live when the
   * position reaches its cursor.
   */
  ahead: Set<Subscription>
  /** Kept while a subscription is catching up. */
  recent: Recent | undefined
  /**
   * The latest deleted seqs, and when that became known, as a time of `performance.now()`. An event
   * that was read before its deletion is not sent after it.
   */
  deleted: Map<number, number>
}

type Publish = (topic: string, text: string) => void

export type Hub = ReturnType<typeof createHub>

/**
 * Keeps the subscriptions of this process, and the last published seq of each project. Nothing here
 * is asynchronous. So no event is lost or sent twice when a subscription becomes live. `publish`
 * sends a text to the sockets that have joined a topic. Names of topics begin with `prefix`.
 */
export function createHub(publish: Publish, prefix = '') {
  const projects = new Map<string, FollowedProject>()
  let topicCount = 0
  let needsVersions = 0

  return {
    /**
     * Adds a subscription. For the first one of a project, publishing begins at `head`, the end of
     * the log. Returns false when the project has too many different filters.
     */
    add(subscription: Subscription, head: number): boolean {
      const { filters } = subscription
      const key = toKey(filters)
      const project =
        projects.get(subscription.projectId) ??
        createFollowedProject(subscription.project, head, ++needsVersions)
      projects.set(subscription.projectId, project)
      let topic = project.topics.get(key)
      if (!topic) {
        if (project.topics.size >= MAX_TOPICS) return false
        if (needsMore(project, filters)) {
          project.needsVersion = ++needsVersions
          if (project.recent) project.recent = createRecent(project.position)
        }
        topic = { name: `${prefix}${++topicCount}`, filters, subscriptions: 0, live: 0 }
        project.topics.set(key, topic)
      }
      topic.subscriptions++
      project.subscriptions.add(subscription)
      project.catchingUp.add(subscription)
      project.recent ??= createRecent(project.position)
      return true
    },

    remove(subscription: Subscription): void {
      const { projectId, filters, socket } = subscription
      const key = toKey(filters)
      const project = projects.get(projectId)
      const topic = project?.topics.get(key)
      if (!project || !topic || !project.subscriptions.delete(subscription)) return
      if (!project.catchingUp.has(subscription)) {
        topic.live--
        socket.leave(topic.name)
      }
      stopCatchingUp(project, subscription)
      if (--topic.subscriptions === 0) project.topics.delete(key)
      if (project.subscriptions.size === 0) projects.delete(projectId)
    },

    has: (subscription: Subscription): boolean =>
      projects.get(subscription.projectId)?.subscriptions.has(subscription) ?? false,

    /**
     * Makes a subscription live if its cursor is recent enough, and first sends it the recent
     * events that it lacks. With a cursor ahead of the position, it becomes live later. Returns
     * false when it must first replay more events from the database.
     */
    goLiveIfNear(subscription: Subscription): boolean {
      const project = projects.get(subscription.projectId)
      if (!project?.recent || subscription.cursor < project.recent.floor) return false
      if (subscription.cursor > project.position) project.ahead.add(subscription)
      else goLive(project, subscription)
      return true
    },

    isFollowed: (projectId: string): boolean => projects.has(projectId),
    /** The seq up to which a subscription must replay from the database. */
    toReplayEnd: ({ projectId }: Subscription): number =>
      projects.get(projectId)?.recent?.floor ?? 0,
    /** The last published seq of a project. */
    toPosition: (projectId: string): number | undefined => projects.get(projectId)?.position,

    /**
     * Publishes an event, unless it was published before. Events of a project must come in order.
     * Returns false when a filter was added since the event was read, and needs more of its data.
     * The caller must then read the event again.
     */
    publish(event: FeedEvent, needsVersion: number): boolean {
      const project = projects.get(event.projectId)
      if (!project || event.seq <= project.position) return true
      if (needsVersion !== project.needsVersion) return false
      for (const ahead of project.ahead) {
        if (ahead.cursor < event.seq) goLive(project, ahead)
      }
      project.position = event.seq
      if (!project.deleted.has(event.seq)) publishMatch(publish, project, event, event.text)
      project.recent?.keep(event)
      return true
    },

    /** Tells all subscriptions of a project that an event was deleted. */
    removeEvent(projectId: string, seq: number): void {
      const project = projects.get(projectId)
      if (!project) return
      noteDeleted(project, seq)
      const text = toMessage({ type: 'deleted', project: project.project, seq })
      sendAll(publish, project, () => text)
    },

    /** Tells all subscriptions of a project that a thread, or an event alone, was acknowledged. */
    sendAcknowledged(projectId: string, seq: number): void {
      const project = projects.get(projectId)
      if (!project) return
      const text = toMessage({ type: 'acknowledged', project: project.project, seq })
      sendAll(publish, project, () => text)
    },

    /**
     * Sends a restored event to the subscriptions that it matches. Those that are behind may get it
     * again, as an `event`. Returns false for the same reason as `publish`.
     */
    restoreEvent(event: FeedEvent, needsVersion: number): boolean {
      const project = projects.get(event.projectId)
      if (!project) return true
      if (needsVersion !== project.needsVersion) return false
      project.deleted.delete(event.seq)
      project.recent?.insert(event)
      const text = toRestoredMessage(event.text)
      publishMatch(publish, project, event, text)
      for (const { socket, filters } of project.catchingUp)
        if (matches(filters, event.fields)) socket.send(text)
      return true
    },

    /** Returns true if an event was deleted, perhaps after it was read. */
    isDeleted: ({ projectId, seq }: Pick<FeedEvent, 'projectId' | 'seq'>): boolean =>
      projects.get(projectId)?.deleted.has(seq) ?? false,

    /** Lists the events whose deletion became known after a time of `performance.now()`. */
    listDeletedSince: (sinceMs: number): Pick<FeedEvent, 'projectId' | 'seq'>[] =>
      [...projects].flatMap(([projectId, { deleted }]) =>
        [...deleted].flatMap(([seq, atMs]) => (atMs > sinceMs ? { projectId, seq } : [])),
      ),

    /** Sends each subscription a heartbeat with the last seq that it has received. */
    sendHeartbeats(): void {
      for (const project of projects.values()) {
        const { project: id } = project
        sendAll(publish, project, head => toMessage({ type: 'heartbeat', project: id, head }))
      }
    },

    /**
     * Lists the followed projects, or those of `projectIds`, with the data that their filters need.
     */
    listFollowed: (projectIds: Iterable<string> = projects.keys()) =>
      [...projectIds].flatMap(projectId => {
        const project = projects.get(projectId)
        if (!project) return []
        const { position, needsVersion, topics } = project
        return [{ projectId, position, needsVersion, ...toTopicNeeds(topics) }]
      }),

    get subscriptions() {
      return [...projects.values()].reduce((sum, one) => sum + one.subscriptions.size, 0)
    },
  }
}

function createFollowedProject(
  project: string,
  position: number,
  needsVersion: number,
): FollowedProject {
  return {
    project,
    position,
    needsVersion,
    topics: new Map(),
    subscriptions: new Set(),
    catchingUp: new Set(),
    ahead: new Set(),
    recent: undefined,
    deleted: new Map(),
  }
}

/** Sends a subscription the recent events after its cursor, and joins its topic. */
function goLive(project: FollowedProject, subscription: Subscription): void {
  const { filters, socket } = subscription
  for (const event of project.recent?.after(subscription.cursor) ?? []) {
    if (matches(filters, event.fields) && !project.deleted.has(event.seq)) socket.send(event.text)
  }
  const topic = project.topics.get(toKey(filters))
  if (!topic) return
  topic.live++
  socket.join(topic.name)
  stopCatchingUp(project, subscription)
}

function noteDeleted({ deleted }: FollowedProject, seq: number): void {
  deleted.delete(seq)
  deleted.set(seq, performance.now())
  for (const oldest of deleted.keys()) {
    if (deleted.size <= MAX_DELETED) break
    deleted.delete(oldest)
  }
}

function stopCatchingUp(project: FollowedProject, subscription: Subscription): void {
  project.ahead.delete(subscription)
  project.catchingUp.delete(subscription)
  if (project.catchingUp.size === 0) project.recent = undefined
}

/** Sends `text` about an event to the live subscriptions that the event matches. */
function publishMatch(
  publish: Publish,
  { topics }: FollowedProject,
  { fields }: FeedEvent,
  text: string,
): void {
  for (const { name, filters, live } of topics.values())
    if (live > 0 && matches(filters, fields)) publish(name, text)
}

/** Sends each subscription the text for its cursor. */
function sendAll(
  publish: Publish,
  { position, topics, catchingUp }: FollowedProject,
  toText: (cursor: number) => string,
): void {
  const text = toText(position)
  for (const { name, live } of topics.values()) if (live > 0) publish(name, text)
  for (const { socket, cursor } of catchingUp) socket.send(toText(cursor))
}

/** Returns true if a filter needs data of events that no other filter of the project needs. */
function needsMore({ topics }: FollowedProject, filters: SearchFilters): boolean {
  const known = toTopicNeeds(topics)
  const { users, wantsText } = toNeeds([filters])
  return users.some(user => !known.users.includes(user)) || (wantsText && !known.wantsText)
}

function toTopicNeeds(topics: ReadonlyMap<string, Topic>): FilterNeeds {
  return toNeeds([...topics.values()].map(({ filters }) => filters))
}

function toKey(filters: SearchFilters): string {
  return JSON.stringify(filters)
}

type Recent = ReturnType<typeof createRecent>

/** Keeps the last published events of a project: all after the seq `floor`. */
function createRecent(floor: number) {
  const events: FeedEvent[] = []
  let characters = 0
  return {
    get floor() {
      return floor
    },
    keep(event: FeedEvent): void {
      events.push(event)
      characters += event.text.length
      while (events.length > RECENT_EVENTS || characters > RECENT_CHARACTERS) {
        const oldest = events.shift()
        if (!oldest) return
        characters -= oldest.text.length
        floor = oldest.seq
      }
    },
    /** Adds an event that was missing among them when it was published. */
    insert(event: FeedEvent): void {
      const at = events.findLastIndex(({ seq }) => seq <= event.seq)
      if (event.seq <= floor || event.seq > (events.at(-1)?.seq ?? 0)) return
      if (events[at]?.seq === event.seq) return
      events.splice(at + 1, 0, event)
      characters += event.text.length
    },
    after: (seq: number): FeedEvent[] => events.filter(event => event.seq > seq),
  }
}
