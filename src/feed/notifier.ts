import type { Pool } from '../db/pool.ts'
import { toReason } from '../errors.ts'
import type { Hint, Hints } from '../hints.ts'
import { logger } from '../log.ts'
import { feedHints } from '../metrics.ts'
import { takePayload, toWord, type Word } from './payload.ts'

const log = logger('feed')
export const CHANNEL = 'tidings'
const GAP_MS = 10
const MAX_WAITING = 10_000

export interface Notifier extends Hints {
  /** Names this process in what it sends. */
  readonly origin: string
  /** Calls `take` with every hint that is told in this process, at once. */
  follow(take: (hints: readonly Hint[]) => void): void
  /** Sends what waits. */
  stop(): Promise<void>
}

/**
 * Tells other processes by NOTIFY. It stands apart from the transactions that it tells of, because whoever notifies
 * holds a lock of the whole database until the log is on disk; and what comes within 10 ms shares one statement: the
 * first goes at once, the rest together.
 */
export function createNotifier({ pool, gapMs = GAP_MS }: { pool: Pool; gapMs?: number }): Notifier {
  const origin = crypto.randomUUID()
  const followers: ((hints: readonly Hint[]) => void)[] = []
  const waiting = new Set<Word>()
  let sending: Promise<void> | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let sentMs = -Infinity

  function schedule(): void {
    if (waiting.size === 0 || sending || timer) return
    const waitMs = sentMs + gapMs - performance.now()
    if (waitMs <= 0) return start()
    timer = setTimeout(() => {
      timer = undefined
      start()
    }, waitMs)
  }

  function start(): void {
    sentMs = performance.now()
    sending = send().finally(() => {
      sending = undefined
      schedule()
    })
  }

  async function send(): Promise<void> {
    const payload = takePayload(origin, waiting)
    try {
      await pool.run(async sql => sql`select pg_notify(${CHANNEL}, ${payload})`)
      feedHints.inc({ of: 'sent' })
    } catch (error) {
      // Others find out by themselves, a second later.
      log.debug('No hint was sent: {reason}', { reason: toReason(error) })
    }
  }

  return {
    origin,
    tell(hints) {
      for (const take of followers) {
        try {
          take(hints)
        } catch (error) {
          // What is told of has been committed: whoever did it must not hear of a failure.
          log.error('A hint was not taken: {reason}', { reason: toReason(error) })
        }
      }
      for (const hint of hints) {
        const word = toWord(hint)
        if (waiting.has(word)) feedHints.inc({ of: 'coalesced' })
        else if (waiting.size < MAX_WAITING) waiting.add(word)
        else feedHints.inc({ of: 'dropped' })
      }
      schedule()
    },
    follow: take => void followers.push(take),
    async stop() {
      clearTimeout(timer)
      timer = undefined
      await sending
      if (waiting.size > 0) await send()
    },
  }
}
