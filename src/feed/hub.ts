import { matches, type Filter } from './filter.ts'
import { toHeartbeat } from './messages.ts'
import type { FeedEvent } from './read.ts'
import { createRecent, type Recent } from './recent.ts'

const MAX_TOPICS = 500

/** What the hub needs of a socket. */
export interface HubSocket {
  send(text: string): void
  join(topic: string): void
  leave(topic: string): void
  /** Bytes that the client has not taken yet. */
  readonly bufferedBytes: number
}

/** One client's stream of one project. */
export interface Subscription {
  readonly socket: HubSocket
  /** The uuid, and the public id. */
  readonly projectId: string
  readonly project: string
  readonly filter: Filter
  /** All that the filter lets through up to this seq has been sent; of no meaning while it is live. */
  cursor: number
}

/** A project that somebody follows. */
export interface Followed {
  projectId: string
  /** The seq that was published last. */
  position: number
  /** What filters ask of its events; `needs` changes when they ask for more. */
  userNames: string[]
  wantsWords: boolean
  needs: number
}

/**
 * Who follows what, and how far all of it has been published. Nothing here waits: what is asked and what follows from
 * the answer happen in one turn of the event loop, which is why no event falls between two states of a stream, or
 * into both.
 */
export interface Hub {
  /**
   * Takes a stream in; `head` is the end of the log, from where a project is followed that nobody followed before.
   * False: the project has too many filters.
   */
  add(subscription: Subscription, head: number): boolean
  remove(subscription: Subscription): void
  has(subscription: Subscription): boolean
  /**
   * Lets a stream go on live once its cursor has come near enough; what it has not seen of the last events is sent
   * first. A cursor that is ahead of what is published waits for that. False: more must be read before.
   */
  join(subscription: Subscription): boolean
  /** Up to where a stream must read from the database. */
  toFloor(subscription: Subscription): number
  /** The seq of a project that was published last. */
  toPosition(projectId: string): number | undefined
  /**
   * Sends an event to whom it concerns, unless it has been; those of a project come in order. False: it was read for
   * less than filters `need` by now, and must be read again.
   */
  publish(event: FeedEvent, needs: number): boolean
  /** Sends a message to all streams of a project. */
  tell(projectId: string, toText: (project: string) => string): void
  /** Tells every stream how far it is. */
  beat(): void
  /** Those of these projects that somebody follows; all that are followed by default. */
  listFollowed(projectIds?: Iterable<string>): Followed[]
  readonly subscriptions: number
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
  position: number
  needs: number
  /** By the key of the filter. */
  topics: Map<string, Topic>
  streams: Set<Subscription>
  /** Those that are not live, and among them those that only wait for the position. */
  behind: Set<Subscription>
  waiting: Set<Subscription>
  /** There while a stream is behind. */
  recent: Recent | undefined
}

/** `publish` sends a text to the sockets that have joined a topic. */
export function createHub(publish: (topic: string, text: string) => void): Hub {
  const projects = new Map<string, Project>()
  let topicsMade = 0
  let needsMade = 0
  let subscriptions = 0

  function follow({ projectId, project }: Subscription, position: number): Project {
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

  return {
    add(subscription, head) {
      const { filter } = subscription
      const project = follow(subscription, head)
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

    remove(subscription) {
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

    has: subscription => projects.get(subscription.projectId)?.streams.has(subscription) ?? false,

    join(subscription) {
      const project = projects.get(subscription.projectId)
      if (!project?.recent || subscription.cursor < project.recent.floor) return false
      if (subscription.cursor > project.position) project.waiting.add(subscription)
      else goLive(project, subscription)
      return true
    },

    toFloor: ({ projectId }) => projects.get(projectId)?.recent?.floor ?? 0,
    toPosition: projectId => projects.get(projectId)?.position,

    publish(event, needs) {
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

    tell(projectId, toText) {
      const project = projects.get(projectId)
      if (project) tellAll(project, () => toText(project.project))
    },

    beat() {
      for (const project of projects.values()) {
        tellAll(project, cursor => toHeartbeat(project.project, cursor))
      }
    },

    listFollowed: (projectIds = projects.keys()) =>
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

  function tellAll({ position, topics, behind }: Project, toText: (cursor: number) => string) {
    const text = toText(position)
    for (const { name, live } of topics.values()) if (live > 0) publish(name, text)
    for (const { socket, cursor } of behind) socket.send(toText(cursor))
  }
}

/** Whether a filter asks for what nobody has asked of the project's events. */
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
