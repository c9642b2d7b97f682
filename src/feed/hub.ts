import { matches, type CompiledFilter } from './filter.ts'
import { toMessage } from './messages.ts'
import type { FeedEvent } from './read-events.ts'

const MAX_TOPICS = 500
const RECENT_EVENTS = 512
const RECENT_CHARACTERS = 128 * 1024

/** One client's stream of one project. */
export interface Subscription {
  readonly socket: {
    send(text: string): void
    join(topic: string): void
    leave(topic: string): void
    /** Bytes that the client has not taken yet. */
    readonly bufferedBytes: number
  }
  /** The uuid, and the public id. */
  readonly projectId: string
  readonly project: string
  readonly filter: CompiledFilter
  /** Every matching event up to this seq has been sent. Meaningless while the stream is live. */
  cursor: number
}

/** The streams of a project with one filter. */
interface Topic {
  name: string
  filter: CompiledFilter
  streams: number
  live: number
}

interface FollowedProject {
  project: string
  /** The seq that was published last. */
  position: number
  /** Changes when filters ask more of events than before. */
  needsVersion: number
  /** By the key of the filter. */
  topics: Map<string, Topic>
  streams: Set<Subscription>
  /** Streams that are not live, and among them those that only wait for the position. */
  catchingUp: Set<Subscription>
  ahead: Set<Subscription>
  /** Exists while a stream is behind. */
  recent: Recent | undefined
}

export type Hub = ReturnType<typeof createHub>

/**
 * The streams of this process, and how far each project has been published. Nothing here is asynchronous, so no event
 * falls between two states of a stream, or into both. `publish` sends a text to the sockets that have joined a topic.
 */
export function createHub(publish: (topic: string, text: string) => void) {
  const projects = new Map<string, FollowedProject>()
  let topicCount = 0
  let needsVersions = 0
  let subscriptions = 0

  function ensureProject({ projectId, project }: Subscription, position: number): FollowedProject {
    const known = projects.get(projectId)
    if (known) return known
    const fresh: FollowedProject = {
      project,
      position,
      needsVersion: ++needsVersions,
      topics: new Map(),
      streams: new Set(),
      catchingUp: new Set(),
      ahead: new Set(),
      recent: undefined,
    }
    projects.set(projectId, fresh)
    return fresh
  }

  function goLive(project: FollowedProject, subscription: Subscription): void {
    const { filter, socket } = subscription
    for (const event of project.recent?.after(subscription.cursor) ?? []) {
      if (matches(filter, event.fields)) socket.send(event.text)
    }
    const topic = project.topics.get(filter.key)
    if (!topic) return
    topic.live++
    socket.join(topic.name)
    stopCatchingUp(project, subscription)
  }

  function stopCatchingUp(project: FollowedProject, subscription: Subscription): void {
    project.ahead.delete(subscription)
    project.catchingUp.delete(subscription)
    if (project.catchingUp.size === 0) project.recent = undefined
  }

  function sendAll(
    { position, topics, catchingUp }: FollowedProject,
    toText: (cursor: number) => string,
  ) {
    const text = toText(position)
    for (const { name, live } of topics.values()) if (live > 0) publish(name, text)
    for (const { socket, cursor } of catchingUp) socket.send(toText(cursor))
  }

  return {
    /**
     * Adds a stream. `head` is the end of the log, where publication begins if the project had no stream. Returns
     * false where the project has too many filters.
     */
    add(subscription: Subscription, head: number): boolean {
      const { filter } = subscription
      const project = ensureProject(subscription, head)
      let topic = project.topics.get(filter.key)
      if (!topic) {
        if (project.topics.size >= MAX_TOPICS) return false
        if (needsMore(project, filter)) {
          project.needsVersion = ++needsVersions
          if (project.recent) project.recent = createRecent(project.position)
        }
        topic = { name: String(++topicCount), filter, streams: 0, live: 0 }
        project.topics.set(filter.key, topic)
      }
      topic.streams++
      project.streams.add(subscription)
      project.catchingUp.add(subscription)
      project.recent ??= createRecent(project.position)
      subscriptions++
      return true
    },

    remove(subscription: Subscription): void {
      const { projectId, filter, socket } = subscription
      const project = projects.get(projectId)
      const topic = project?.topics.get(filter.key)
      if (!project || !topic || !project.streams.delete(subscription)) return
      subscriptions--
      if (!project.catchingUp.has(subscription)) {
        topic.live--
        socket.leave(topic.name)
      }
      stopCatchingUp(project, subscription)
      if (--topic.streams === 0) project.topics.delete(filter.key)
      if (project.streams.size === 0) projects.delete(projectId)
    },

    has: (subscription: Subscription): boolean =>
      projects.get(subscription.projectId)?.streams.has(subscription) ?? false,

    /**
     * Makes a stream live if its cursor is near enough, and sends the recent events that it lacks first. A cursor ahead
     * of the position waits for it. Returns false where the stream must read more from the database before.
     */
    goLiveIfNear(subscription: Subscription): boolean {
      const project = projects.get(subscription.projectId)
      if (!project?.recent || subscription.cursor < project.recent.floor) return false
      if (subscription.cursor > project.position) project.ahead.add(subscription)
      else goLive(project, subscription)
      return true
    },

    /** The seq up to which a stream must read from the database. */
    toReplayEnd: ({ projectId }: Subscription): number =>
      projects.get(projectId)?.recent?.floor ?? 0,
    /** The seq of a project that was published last. */
    toPosition: (projectId: string): number | undefined => projects.get(projectId)?.position,

    /**
     * Sends an event to the streams that it matches, at most once. The events of a project come in order. Returns
     * false where filters need more by now than the event was read with: it must be read again.
     */
    publish(event: FeedEvent, needsVersion: number): boolean {
      const project = projects.get(event.projectId)
      if (!project || event.seq <= project.position) return true
      if (needsVersion !== project.needsVersion) return false
      for (const ahead of project.ahead) {
        if (ahead.cursor < event.seq) goLive(project, ahead)
      }
      project.position = event.seq
      for (const { name, filter, live } of project.topics.values()) {
        if (live > 0 && matches(filter, event.fields)) publish(name, event.text)
      }
      project.recent?.keep(event)
      return true
    },

    /** Sends a message to all streams of a project. */
    broadcast(projectId: string, toText: (project: string) => string): void {
      const project = projects.get(projectId)
      if (project) sendAll(project, () => toText(project.project))
    },

    /** Sends every stream its cursor. */
    sendHeartbeats(): void {
      for (const project of projects.values()) {
        const { project: id } = project
        sendAll(project, head => toMessage({ type: 'heartbeat', project: id, head }))
      }
    },

    /** The projects with streams, of these or of all: their positions, and what filters need of their events. */
    listFollowed: (projectIds: Iterable<string> = projects.keys()) =>
      [...projectIds].flatMap(projectId => {
        const project = projects.get(projectId)
        if (!project) return []
        const { position, needsVersion, topics } = project
        return [{ projectId, position, needsVersion, ...toNeeds(topics) }]
      }),

    get subscriptions() {
      return subscriptions
    },
  }
}

/** Whether a filter asks for what no other filter has asked of the project's events. */
function needsMore({ topics }: FollowedProject, { userId, lexemes }: CompiledFilter): boolean {
  const { userNames, wantsLexemes } = toNeeds(topics)
  return (
    (userId !== undefined && !userNames.includes(userId)) ||
    (lexemes !== undefined && !wantsLexemes)
  )
}

function toNeeds(topics: ReadonlyMap<string, Topic>): {
  userNames: string[]
  wantsLexemes: boolean
} {
  const filters = [...topics.values()].map(({ filter }) => filter)
  return {
    userNames: [...new Set(filters.flatMap(({ userId }) => userId ?? []))],
    wantsLexemes: filters.some(({ lexemes }) => lexemes !== undefined),
  }
}

type Recent = ReturnType<typeof createRecent>

/** The last published events of a project, for streams that catch up: all of those after `floor`. */
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
    after: (seq: number): FeedEvent[] => events.filter(event => event.seq > seq),
  }
}
