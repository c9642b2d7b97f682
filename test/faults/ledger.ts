import { setTimeout as sleep } from 'node:timers/promises'
import { createHttpClient, type HttpClient } from '../support/clients/http-client.ts'
import type { RawAnswer } from '../support/clients/raw-http.ts'
import type { Random } from './random.ts'
import { scaled } from '../support/until.ts'

/**
 * One event that a client wants to store, recorded before it is sent. Its metadata contains its
 * name.
 */
export interface Intent {
  name: string
  projectId: string
  key: string | undefined
  /** The number of requests for it. */
  sent: number
  /** The text of every 201. */
  acknowledged: string[]
  /** The number of replays among those. */
  replays: number
}

export interface Ledger {
  intents: Map<string, Intent>
  /** Counts of answers by status, and of connection failures by message. */
  outcomes: Map<string, number>
  /** The slowest answer, in milliseconds. */
  slowestMs: number
  /** Answers that no client may ever get. */
  unexpected: string[]
}

export interface LoadOptions {
  /** The URLs of the running servers. */
  servers(): readonly string[]
  projects: readonly { id: string; key: string }[]
  clients: number
  random: Random
  /** The load ends by itself after this many intents. */
  total?: number
  /** The pause of each client after an intent, in milliseconds. */
  pauseMs?: number
}

export interface Load {
  ledger: Ledger
  /** Resolves when all clients are done; open intents with a key are retried for 20 s. */
  stop(): Promise<void>
  /** Ends each client after its current request. */
  abort(): void
  finished: Promise<void>
  /**
   * Resolves with the time of the next 201 for a request that starts after now (at `server`, if
   * given).
   */
  nextSuccess(server?: string): Promise<number>
  /** Resolves when `count` more requests were answered 201. */
  successes(count: number): Promise<void>
}

/** The share of intents with an Idempotency-Key. */
const KEYED = 0.5
/** The share of those that several clients send at once. */
const SHARED = 0.2
const EXPECTED = new Set([201, 409, 503])
const SETTLE_MS = scaled(20_000)
const STUCK_MS = scaled(40_000)

/** Runs clients that post events to the servers, and records their intents and answers. */
export function startLoad(options: LoadOptions): Load {
  const { random, projects, total = Infinity, pauseMs = 0 } = options
  const ledger: Ledger = { intents: new Map(), outcomes: new Map(), slowestMs: 0, unexpected: [] }
  const watchers = new Set<(server: string, startedMs: number) => void>()
  let deadlineMs = Infinity
  let planned = 0

  const count = (outcome: string) =>
    ledger.outcomes.set(outcome, (ledger.outcomes.get(outcome) ?? 0) + 1)

  function plan(source: Random): Intent {
    const nth = planned++
    const isKeyed = source.next() < KEYED
    // Several clients send the same name within a short time: they race for one key.
    const isShared = isKeyed && source.next() < SHARED
    const name = isShared
      ? `s${Math.floor(nth / 16)}-${source.below(2)}`
      : `${isKeyed ? 'k' : 'u'}${nth}`
    const known = ledger.intents.get(name)
    if (known) return known
    const project = isShared
      ? projects[Math.floor(nth / 16) % projects.length]!
      : source.pick(projects)
    const key = isKeyed ? `${random.seed}-${name}` : undefined
    const intent = { name, projectId: project.id, key, sent: 0, acknowledged: [], replays: 0 }
    ledger.intents.set(name, intent)
    return intent
  }

  async function send(client: HttpClient, intent: Intent, server: string): Promise<boolean> {
    const project = projects.find(({ id }) => id === intent.projectId)!
    const startedMs = performance.now()
    intent.sent++
    let answer: RawAnswer
    try {
      answer = await client.request('POST', '/v1/events', {
        headers: {
          authorization: `Bearer ${project.key}`,
          'content-type': 'application/json',
          ...(intent.key !== undefined && { 'idempotency-key': intent.key }),
        },
        body: JSON.stringify({
          channelName: `Channel ${intent.name.length % 3}`,
          title: 'New payment',
          metadata: { intent: intent.name },
        }),
      })
    } catch (error) {
      count(error instanceof Error ? error.message : String(error))
      return false
    }
    count(String(answer.status))
    ledger.slowestMs = Math.max(ledger.slowestMs, performance.now() - startedMs)
    if (!EXPECTED.has(answer.status)) ledger.unexpected.push(`${answer.status} ${answer.text}`)
    if (answer.status !== 201) return false
    intent.acknowledged.push(answer.text)
    if (answer.headers.has('x-idempotent-replay')) intent.replays++
    for (const watch of watchers) watch(server, startedMs)
    return true
  }

  async function runClient(nth: number): Promise<void> {
    const source = random.fork(nth)
    const clients = new Map<string, HttpClient>()
    const toClient = (server: string) => {
      const client = clients.get(server) ?? createHttpClient(server)
      clients.set(server, client)
      return client
    }
    while (planned < total && deadlineMs === Infinity) {
      const intent = plan(source)
      for (;;) {
        const server = source.pick(options.servers())
        if (await send(toClient(server), intent, server)) break
        // A down server must not cost all processor time.
        await sleep(10 + source.below(60))
        // Without a key the outcome is unknown: it must not be sent again.
        if (intent.key === undefined || performance.now() > deadlineMs) break
      }
      if (pauseMs > 0) await sleep(pauseMs)
    }
    for (const client of clients.values()) client.close()
  }

  /** Resolves at the next 201 for which `isWanted` is true. */
  async function untilTold(
    isWanted: (server: string, startedMs: number) => boolean,
  ): Promise<void> {
    const told = Promise.withResolvers<void>()
    const watch = (server: string, startedMs: number) => {
      if (isWanted(server, startedMs)) told.resolve()
    }
    const late = setTimeout(() => {
      const outcomes = JSON.stringify([...ledger.outcomes])
      told.reject(new Error(`No request succeeds: ${outcomes} ${ledger.unexpected.slice(-3)}`))
    }, STUCK_MS)
    watchers.add(watch)
    try {
      await told.promise
    } finally {
      watchers.delete(watch)
      clearTimeout(late)
    }
  }

  const running = Promise.all(Array.from({ length: options.clients }, (_, nth) => runClient(nth)))
  const finished = running.then(() => {})
  return {
    ledger,
    finished,
    async stop() {
      deadlineMs = performance.now() + SETTLE_MS
      await finished
    },
    abort() {
      deadlineMs = 0
    },
    async nextSuccess(wanted) {
      const fromMs = performance.now()
      await untilTold(
        (server, startedMs) => startedMs >= fromMs && (wanted === undefined || wanted === server),
      )
      return performance.now()
    },
    successes(wanted) {
      let seen = 0
      return untilTold(() => ++seen >= wanted)
    },
  }
}
