import { matches, type Filter } from './filter.ts'
import { toMessage } from './messages.ts'
import type { FeedEvent } from './read.ts'

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
  readonly filter: Filter
  /** Every matching event up to this seq has been sent. Meaningless while the stream is live. */
  cursor: number
}

/** The streams of a project with one filter. */
interface Topic {
  name: string
  filter: Filter
  streams: number
  live: number
}

interface Project {
  project: string
  /** The seq that was published last. */
  position: number
  /** Changes when filters ask more of events than before. */
  needs: number
  /** By the key of the filter. */
  topics: Map<string, Topic>
  streams: Set<Subscription>
  /** Streams that are not live, and among them those that only wait for the position. */
  behind: Set<Subscription>
  waiting: Set<Subscription>
  /** Exists while a stream is behind. */
  recent: Recent | undefined
}

export type Hub = ReturnType<typeof createHub>

/**
 * The streams of this process, and how far each project has been published. Nothing here is asynchronous, so no event
 * falls between two states of a stream, or into both. `publish` sends a text to the sockets that have joined a topic.
 */
export function createHub(publish: (topic: string, text: string) => void) {
  const projects = new Map<string, Project>()
  let topicsMade = 0
  let needsMade = 0
  let subscriptions = 0

  function ensureProject({ projectId, project }: Subscription, position: number): Project {
    const known = projects.get(projectId)
    if (known) return known
    const fresh: Project = {
      project,
      position,
      needs: ++needsMade,
      topics: new Map(),
      streams: new Set(),
      behind: new Set(),
      waiting: new Set(),
      recent: undefined,
    }
    projects.set(projectId, fresh)
    return fresh
  }

  function goLive(project: Project, subscription: Subscription): void {
    const { filter, socket } = subscription
    for (const event of project.recent?.after(subscription.cursor) ?? []) {
      if (matches(filter, event.facts)) socket.send(event.text)
    }
    const topic = project.topics.get(filter.key)
    if (!topic) return
    topic.live++
    socket.join(topic.name)
    leaveBehind(project, subscription)
  }

  function leaveBehind(project: Project, subscription: Subscription): void {
    project.waiting.delete(subscription)
    project.behind.delete(subscription)
    if (project.behind.size === 0) project.recent = undefined
  }

  function sendAll({ position, topics, behind }: Project, toText: (cursor: number) => string) {
    const text = toText(position)
    for (const { name, live } of topics.values()) if (live > 0) publish(name, text)
    for (const { socket, cursor } of behind) socket.send(toText(cursor))
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
          project.needs = ++needsMade
          if (project.recent) project.recent = createRecent(project.position)
        }
        topic = { name: String(++topicsMade), filter, streams: 0, live: 0 }
        project.topics.set(filter.key, topic)
      }
      topic.streams++
      project.streams.add(subscription)
      project.behind.add(subscription)
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
      if (!project.behind.has(subscription)) {
        topic.live--
        socket.leave(topic.name)
      }
      leaveBehind(project, subscription)
      if (--topic.streams === 0) project.topics.delete(filter.key)
      if (project.streams.size === 0) projects.delete(projectId)
    },

    has: (subscription: Subscription): boolean =>
      projects.get(subscription.projectId)?.streams.has(subscription) ?? false,

    /**
     * Makes a stream live if its cursor is near enough, and sends the recent events that it lacks first. A cursor ahead
     * of the position waits for it. Returns false where the stream must read more from the database before.
     */
    join(subscription: Subscription): boolean {
      const project = projects.get(subscription.projectId)
      if (!project?.recent || subscription.cursor < project.recent.floor) return false
      if (subscription.cursor > project.position) project.waiting.add(subscription)
      else goLive(project, subscription)
      return true
    },

    /** The seq up to which a stream must read from the database. */
    toFloor: ({ projectId }: Subscription): number => projects.get(projectId)?.recent?.floor ?? 0,
    /** The seq of a project that was published last. */
    toPosition: (projectId: string): number | undefined => projects.get(projectId)?.position,

    /**
     * Sends an event to the streams that it matches, at most once. The events of a project come in order. Returns
     * false where filters need more by now than the event was read with: it must be read again.
     */
    publish(event: FeedEvent, needs: number): boolean {
      const project = projects.get(event.projectId)
      if (!project || event.seq <= project.position) return true
      if (needs !== project.needs) return false
      for (const waiting of project.waiting) {
        if (waiting.cursor < event.seq) goLive(project, waiting)
      }
      project.position = event.seq
      for (const { name, filter, live } of project.topics.values()) {
        if (live > 0 && matches(filter, event.facts)) publish(name, event.text)
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
    beat(): void {
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
        const { position, needs, topics } = project
        return [{ projectId, position, needs, ...toNeeds(topics) }]
      }),

    get subscriptions() {
      return subscriptions
    },
  }
}

/** Whether a filter asks for what no other filter has asked of the project's events. */
function needsMore({ topics }: Project, { userId, words }: Filter): boolean {
  const { userNames, wantsWords } = toNeeds(topics)
  return (
    (userId !== undefined && !userNames.includes(userId)) || (words !== undefined && !wantsWords)
  )
}

function toNeeds(topics: ReadonlyMap<string, Topic>): { userNames: string[]; wantsWords: boolean } {
  const filters = [...topics.values()].map(({ filter }) => filter)
  return {
    userNames: [...new Set(filters.flatMap(({ userId }) => userId ?? []))],
    wantsWords: filters.some(({ words }) => words !== undefined),
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
