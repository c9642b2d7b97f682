import { Fault } from '../../base/errors.ts'
import { withTimeout } from '../../base/functions.ts'
import { logger } from '../../base/log.ts'
import { startLoop } from '../../base/loop.ts'
import { toArray } from '../../database/arrays.ts'
import type { Pool } from '../../database/pool.ts'
import type { Question, QuestionRef } from './answers.ts'

const log = logger('questions')
const MAX_WAITING = 1_000
const MAX_PER_PROJECT = 100
/** How long a lost hint delays an answer. */
const LOOK_MS = 10_000

interface Waiter {
  eventId: string
  /** Undefined until the question was read. */
  seq: number | undefined
  wake(): void
}

/** The requests of this process that wait for answers. They hold no connection to the database. */
export interface AnswerWaits {
  /**
   * Returns what `read` finds once it is no longer waiting, or after `waitMs`. Throws
   * `unavailable` if too many requests wait.
   */
  until<Found extends Pick<Question, 'state' | 'seq'>>(
    ref: QuestionRef,
    limits: { waitMs: number; signal: AbortSignal },
    read: () => Promise<Found>,
  ): Promise<Found>
  /** Wakes the requests that wait for the questions of a thread. */
  wake(thread: { projectId: string; seq: number }): void
  /** Answers all requests, and each further one at once. */
  stop(): Promise<void>
}

export function createAnswerWaits(pool: Pool): AnswerWaits {
  const projects = new Map<string, Set<Waiter>>()
  let size = 0
  let isStopped = false

  const list = () =>
    [...projects].flatMap(([projectId, own]) => [...own].map(waiter => ({ projectId, waiter })))

  /** Wakes the requests whose hint was lost. */
  async function look(): Promise<void> {
    if (size === 0) return
    const all = list()
    const rows = await pool.run(
      sql => sql<{ eventId: string }[]>`
        select q.event_id as "eventId"
        from unnest(
            ${toArray(all.map(({ projectId }) => projectId))}::uuid[],
            ${toArray(all.map(({ waiter }) => waiter.eventId))}::uuid[]
          ) as u (project_id, event_id)
          join questions q on q.project_id = u.project_id and q.event_id = u.event_id
        where q.ended_at is not null or q.expires_at <= now()
      `,
    )
    const ended = new Set(rows.map(({ eventId }) => eventId))
    for (const { waiter } of all) if (ended.has(waiter.eventId)) waiter.wake()
  }

  const loop = startLoop({
    everyMs: LOOK_MS,
    round: look,
    onFailure: reason => log.debug('Looking for answers failed: {reason}', { reason }),
  })

  return {
    async until({ projectId, eventId }, { waitMs, signal }, read) {
      if (waitMs === 0) return read()
      const own = projects.get(projectId) ?? new Set()
      if (size >= MAX_WAITING || own.size >= MAX_PER_PROJECT) {
        const message = 'Too many requests wait for answers. Try again shortly.'
        throw new Fault('unavailable', message, { 'Retry-After': '5' })
      }
      const endMs = performance.now() + waitMs
      const waiter: Waiter = { eventId, seq: undefined, wake() {} }
      const end = () => waiter.wake()
      projects.set(projectId, own.add(waiter))
      size++
      signal.addEventListener('abort', end)
      try {
        for (;;) {
          // Before the read, so that no answer comes in between.
          const { promise, resolve } = Promise.withResolvers<void>()
          waiter.wake = resolve
          const found = await read()
          waiter.seq = found.seq
          const leftMs = endMs - performance.now()
          if (found.state !== 'waiting' || leftMs <= 0 || isStopped || signal.aborted) return found
          await withTimeout(leftMs, promise, () => {})
        }
      } finally {
        signal.removeEventListener('abort', end)
        size--
        own.delete(waiter)
        if (own.size === 0) projects.delete(projectId)
      }
    },
    wake({ projectId, seq }) {
      for (const waiter of projects.get(projectId) ?? [])
        if (waiter.seq === undefined || waiter.seq === seq) waiter.wake()
    },
    stop() {
      isStopped = true
      for (const { waiter } of list()) waiter.wake()
      return loop.stop()
    },
  }
}
