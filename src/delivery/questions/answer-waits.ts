import { Fault } from '../../base/errors.ts'
import { withTimeout } from '../../base/functions.ts'
import { createSemaphore } from '../../base/semaphore.ts'
import type { Question } from './answers.ts'

/** How long a lost hint delays an answer. */
const LOOK_MS = 10_000

/** The requests of this process that wait for answers. They hold no connection to the database. */
export type AnswerWaits = ReturnType<typeof createAnswerWaits>

export function createAnswerWaits() {
  const places = createSemaphore({ total: 1_000, perKey: 100, maxWaiting: 0 })
  /** A `seq` is undefined until the question was read. */
  const waiters = new Set<{ projectId: string; seq?: number; wake(): void }>()
  let isStopped = false

  return {
    /**
     * Returns what `read` finds once it is no longer waiting, or after `waitMs`. Throws
     * `unavailable` if too many requests wait.
     */
    async until<Found extends Pick<Question, 'state' | 'seq'>>(
      {
        organizationId,
        projectId,
        waitMs,
        signal,
      }: { organizationId: string; projectId: string; waitMs: number; signal: AbortSignal },
      read: () => Promise<Found>,
    ): Promise<Found> {
      if (waitMs === 0) return read()
      const release = await places.acquire(organizationId)
      if (!release) {
        const message = 'Too many requests wait for answers. Try again shortly.'
        throw new Fault('unavailable', message, { 'Retry-After': '5' })
      }
      const endMs = performance.now() + waitMs
      const waiter: Parameters<typeof waiters.add>[0] = { projectId, wake() {} }
      const end = () => waiter.wake()
      waiters.add(waiter)
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
          await withTimeout(Math.min(leftMs, LOOK_MS), promise, () => {})
        }
      } finally {
        signal.removeEventListener('abort', end)
        waiters.delete(waiter)
        release()
      }
    },
    /** Wakes the requests that wait for the question of a thread. */
    wake({ projectId, seq }: { projectId: string; seq: number }): void {
      for (const waiter of waiters)
        if (waiter.projectId === projectId && (waiter.seq ?? seq) === seq) waiter.wake()
    },
    /** Answers all requests, and each further one at once. */
    stop(): void {
      isStopped = true
      for (const waiter of waiters) waiter.wake()
    },
  }
}
