import { TidingsError } from './errors.ts'
import { after, isTransient, MAX_TIMER_MS, newUuid } from './request.ts'
import type { Call, ClientOptions } from './request.ts'
import type { EventInput } from './schema.ts'

/** An event that waits to be sent. */
type Entry = { body: string; idempotencyKey: string; queuedAt: number }

/** The options of one queued event. */
export type QueueOptions = {
  /** As that of `events.create`. Default: a new UUID. */
  idempotencyKey?: string
}

/** The options of `flush`. */
export type FlushOptions = {
  /** The longest wait. Default 10,000. */
  timeoutMs?: number
}

const MAX_IN_FLIGHT = 10
const MAX_PAUSE_MS = 30_000
/** The server remembers an Idempotency-Key this long. A later retry could create a second event. */
const MAX_AGE_MS = 24 * 60 * 60_000
const WARN_EVERY_MS = 1_000

/** A bounded queue in memory that sends events in the background. */
export function createQueue(call: Call, options: ClientOptions) {
  const { queueLimit = 1_000, onDrop = createWarning() } = options
  const waiting: Entry[] = []
  const flushing = new Set<() => void>()
  let inFlight = 0
  let failures = 0
  let resume: (() => void) | undefined

  function queue(event: EventInput, { idempotencyKey = newUuid() }: QueueOptions = {}): boolean {
    // The server would otherwise take the time at which it gets the event.
    const timestamp = event.timestamp ?? new Date().toISOString()
    const body = JSON.stringify({ ...event, timestamp })
    if (countUnsent() >= queueLimit) {
      onDrop(event, new TidingsError(`The queue is full: ${queueLimit} events wait`))
      return false
    }
    waiting.push({ body, idempotencyKey, queuedAt: Date.now() })
    sendNext()
    return true
  }

  async function flush({ timeoutMs = 10_000 }: FlushOptions = {}): Promise<number> {
    resume?.()
    if (countUnsent() > 0) {
      await new Promise<void>(resolve => {
        const clear = after(timeoutMs, undefined, end)
        flushing.add(end)
        function end() {
          clear()
          flushing.delete(end)
          resolve()
        }
      })
    }
    return countUnsent()
  }

  function countUnsent(): number {
    return waiting.length + inFlight
  }

  function sendNext(): void {
    while (!resume && inFlight < MAX_IN_FLIGHT) {
      const entry = waiting.shift()
      if (!entry) break
      void send(entry)
    }
    if (countUnsent() === 0) for (const end of flushing) end()
  }

  async function send(entry: Entry): Promise<void> {
    inFlight++
    const { body, idempotencyKey, queuedAt } = entry
    const error = await call('POST', '/v1/events', { body, idempotencyKey }).then(
      () => undefined,
      (reason: Error) => reason,
    )
    inFlight--
    const waits = isTransient(error) && Date.now() - queuedAt < MAX_AGE_MS
    if (error === undefined) failures = 0
    else if (waits) {
      waiting.unshift(entry)
      pause(error)
    }
    sendNext()
    if (error !== undefined && !waits) onDrop(JSON.parse(body) as EventInput, error)
  }

  function pause({ retryAfterMs = 0 }: TidingsError): void {
    if (resume) return
    const pauseMs = Math.min(1_000 * 2 ** failures++, MAX_PAUSE_MS)
    const timer = setTimeout(end, Math.min(retryAfterMs + pauseMs, MAX_TIMER_MS))
    unref(timer)
    resume = end
    function end() {
      clearTimeout(timer)
      resume = undefined
      sendNext()
    }
  }

  return { queue, flush }
}

/** Lets the program end while the timer waits. In browsers, timers never keep a program alive. */
function unref(timer: unknown): void {
  const { Deno } = globalThis as { Deno?: { unrefTimer(id: unknown): void } }
  if (typeof timer === 'number') Deno?.unrefTimer(timer)
  else (timer as { unref?(): void }).unref?.()
}

function createWarning() {
  let warnedAt = -Infinity
  return (event: EventInput, error: Error) => {
    if (Date.now() - warnedAt < WARN_EVERY_MS) return
    warnedAt = Date.now()
    console.warn(`Tidings: the event "${event.title}" is lost. ${error.message}`)
  }
}
