import { toReason } from '../../base/errors.ts'
import type { Hint, Hints } from '../../base/hints.ts'
import { UUID_PATTERN } from '../../base/ids.ts'
import { logger } from '../../base/log.ts'
import { feedHints } from '../../base/metrics.ts'
import type { Pool } from '../../database/pool.ts'
import { logFailure } from './read-events.ts'

const log = logger('feed')
export const NOTIFY_CHANNEL = 'tidings'
const MIN_INTERVAL_MS = 10
const MAX_WAITING = 10_000
// Postgres allows a payload of 7,999 bytes.
const MAX_BYTES = 7_500
const MAX_EVENT_BYTES = 5_000
const SEQ = /^[1-9]\d{0,15}$/
/** The kinds of hints about one event or thread, by their letters. */
const OF_SEQ = new Map<string | undefined, 'deleted' | 'restored' | 'acknowledged' | 'answered'>([
  ['d', 'deleted'],
  ['r', 'restored'],
  ['k', 'acknowledged'],
  ['q', 'answered'],
])

export type Notifier = ReturnType<typeof createNotifier>

/**
 * Sends hints to other processes by NOTIFY. It is never part of the transaction that a hint is
 * about: NOTIFY locks the whole database until that transaction is on disk. The first hint is sent
 * at once. Hints of the next 10 ms share one statement.
 */
export function createNotifier({
  pool,
  minIntervalMs = MIN_INTERVAL_MS,
}: {
  pool: Pool
  minIntervalMs?: number
}) {
  /** Identifies this process in its payloads. */
  const origin = crypto.randomUUID()
  const followers: ((hints: readonly Hint[]) => void)[] = []
  const waiting = new Set<string>()
  let sending: Promise<void> | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let sentMs = -Infinity

  function schedule(): void {
    if (waiting.size === 0 || sending || timer) return
    const waitMs = sentMs + minIntervalMs - performance.now()
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
      await pool.run(async sql => sql`select pg_notify(${NOTIFY_CHANNEL}, ${payload})`)
      feedHints.inc({ result: 'sent' })
    } catch (error) {
      // Other processes also poll every second.
      log.debug('Sending hints failed: {reason}', { reason: toReason(error) })
    }
  }

  const hints: Hints = {
    send(hints) {
      for (const handle of followers) {
        try {
          handle(hints)
        } catch (error) {
          // The caller has committed, so this must not fail its request.
          logFailure('Handling a hint failed', error)
        }
      }
      for (const hint of hints) {
        const word = toPayloadWord(hint)
        if (waiting.has(word)) feedHints.inc({ result: 'coalesced' })
        else if (waiting.size < MAX_WAITING) waiting.add(word)
        else feedHints.inc({ result: 'dropped' })
      }
      schedule()
    },
  }

  return {
    ...hints,
    origin,
    /** Registers a handler for the hints of this process. `send` calls it at once. */
    follow: (handle: (hints: readonly Hint[]) => void) => void followers.push(handle),
    /** Sends the waiting hints and stops. */
    async stop(): Promise<void> {
      clearTimeout(timer)
      timer = undefined
      await sending
      if (waiting.size > 0) await send()
    },
  }
}

/**
 * Encodes a hint as one word of a payload. The word `e:*` means that any project may have new
 * events.
 */
export function toPayloadWord(hint: Hint): string {
  switch (hint.kind) {
    case 'events':
      return `e:${hint.projectId}`
    case 'deleted':
      return `d:${hint.projectId}:${hint.seq}`
    case 'acknowledged':
      return `k:${hint.projectId}:${hint.seq}`
    case 'answered':
      return `q:${hint.projectId}:${hint.seq}`
    case 'restored':
      return `r:${hint.projectId}:${hint.seq}`
    case 'unread':
      return `u:${hint.projectId}:${hint.accountId}`
    case 'access':
      return 'a'
  }
}

/** Removes as many words as fit into one payload, and returns the payload. */
export function takePayload(origin: string, words: Set<string>): string {
  const events = [...words].filter(word => word.startsWith('e:'))
  for (const word of events) words.delete(word)
  const isLong = events.reduce((bytes, word) => bytes + word.length + 1, 0) > MAX_EVENT_BYTES
  let payload = [origin, ...(isLong ? ['e:*'] : events)].join(' ')
  for (const word of words) {
    if (payload.length + 1 + word.length > MAX_BYTES) break
    words.delete(word)
    payload += ` ${word}`
  }
  return payload
}

/** Parses a payload. Any client of the database can send one, so unknown words are ignored. */
export function parsePayload(payload: string): { origin: string; hints: (Hint | 'anyEvents')[] } {
  const [origin = '', ...words] = payload.split(' ')
  return { origin, hints: words.flatMap(word => parsePayloadWord(word) ?? []) }
}

function parsePayloadWord(word: string): Hint | 'anyEvents' | undefined {
  if (word === 'a') return { kind: 'access' }
  if (word === 'e:*') return 'anyEvents'
  const [letter, projectId = '', rest = ''] = word.split(':')
  if (!UUID_PATTERN.test(projectId)) return undefined
  if (letter === 'e') return { kind: 'events', projectId }
  if (letter === 'u' && UUID_PATTERN.test(rest))
    return { kind: 'unread', projectId, accountId: rest }
  const kind = OF_SEQ.get(letter)
  return kind && SEQ.test(rest) ? { kind, projectId, seq: Number(rest) } : undefined
}
