import { TidingsError, ValidationError } from './errors.ts'
import { parseJson, toJson } from './json.ts'
import { after, callSafely, isTransient, MAX_TIMER_MS, newUuid } from './request.ts'
import type { Call, ClientOptions, ServerClock } from './request.ts'
import type { EventInput } from './schema.ts'
import { isForgotten, readMoment, toAgeMs } from './time.ts'
import type { Moment } from './time.ts'

/** An event that waits to be sent. */
type Entry = {
  /** Its place in the queue. */
  nth: number
  /** The event as JSON, without a time that the queue adds. */
  text: string
  bytes: number
  idempotencyKey: string
  queuedAt: Moment
  /** The server's time when the event was queued, as far as it was known. */
  at: number | undefined
  /** True for an event that is sent as it is, without a time of the queue. */
  isPlain: boolean
  /** The body of every attempt, and when the first one began. */
  sent: { body: string; since: Moment } | undefined
}

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
const MAX_BYTES = 16 * 1024 * 1024
const WARN_EVERY_MS = 1_000
const encoder = new TextEncoder()

/** A bounded queue in memory that sends events in the background. */
export function createQueue(call: Call, clock: ServerClock, options: ClientOptions) {
  const { queueLimit = 1_000, queueLimitBytes = MAX_BYTES, onDrop = createWarning() } = options
  const { parseNumber } = options
  const waiting: Entry[] = []
  const flushing = new Set<() => void>()
  let count = 0
  let bytes = 0
  let inFlight = 0
  let failures = 0
  /** True if the server works, as far as is known. Until then, one event at a time tries it out. */
  let isWorking = false
  let resume: (() => void) | undefined

  function queue(event: EventInput, { idempotencyKey = newUuid() }: QueueOptions = {}): boolean {
    const text = toJson(event)
    const size = encoder.encode(text).length
    if (countUnsent() >= queueLimit || bytes + size > queueLimitBytes) {
      const held = `${countUnsent()} events with ${bytes} bytes wait`
      drop(text, new TidingsError(`The queue is full: ${held}`))
      return false
    }
    bytes += size
    waiting.push({
      ...{ nth: count++, text, bytes: size, idempotencyKey },
      ...{ queuedAt: readMoment(), at: clock.now(), sent: undefined },
      isPlain: event.timestamp != null,
    })
    sendNext()
    return true
  }

  async function flush({ timeoutMs = 10_000 }: FlushOptions = {}): Promise<number> {
    // A long pause after an outage would outlast the wait.
    failures = 0
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
    while (!resume && inFlight < (isWorking ? MAX_IN_FLIGHT : 1)) {
      const entry = waiting.shift()
      if (!entry) break
      void send(entry)
    }
    if (countUnsent() === 0) for (const end of flushing) end()
  }

  async function send(entry: Entry): Promise<void> {
    inFlight++
    const error = await attempt(entry).catch((reason: Error) => reason)
    inFlight--
    // The clock was set since. Nothing was stored, so the key can take another body.
    const isTimeRefused = !entry.isPlain && refusesTime(error)
    if (isTimeRefused) Object.assign(entry, { isPlain: true, sent: undefined })
    if (isTimeRefused || isTransient(error)) {
      // Events that were sent together fail in any order.
      const at = waiting.findIndex(({ nth }) => nth > entry.nth)
      waiting.splice(at < 0 ? waiting.length : at, 0, entry)
      if (isTransient(error)) pause(error)
    } else {
      bytes -= entry.bytes
      failures = 0
      isWorking = true
      if (error) drop(entry.text, error)
    }
    sendNext()
  }

  async function attempt(entry: Entry): Promise<undefined> {
    const { text, idempotencyKey, isPlain } = entry
    if (entry.sent && isForgotten(entry.sent.since)) {
      throw new TidingsError('No attempt within 23 hours was successful')
    }
    while (!isPlain && clock.now() === undefined) await clock.ask()
    // The first attempt fixes the time: a key must always have the same body.
    const { body } = (entry.sent ??= {
      body: isPlain ? text : addTime(entry),
      since: readMoment(),
    })
    // Only the waits of the queue let the program end, and end with `flush`.
    await call('POST', '/v1/events', { body, idempotencyKey, retries: 0 })
  }

  /** Without it, the server would take the time at which it gets the event. */
  function addTime({ text, at, queuedAt }: Entry): string {
    const ms = at ?? (clock.now() ?? Date.now()) - toAgeMs(queuedAt)
    const rest = text === '{}' ? '' : ','
    // Parsing it would lose the spelling of numbers.
    return `${text.slice(0, -1)}${rest}"timestamp":"${new Date(ms).toISOString()}"}`
  }

  function drop(text: string, error: Error): void {
    callSafely('onDrop', () => onDrop(parseJson(text, parseNumber) as EventInput, error))
  }

  function pause({ retryAfterMs = 0 }: TidingsError): void {
    isWorking = false
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

/** Returns true if the server rejects only the time of an event. */
function refusesTime(error: Error | undefined): boolean {
  return (
    error instanceof ValidationError && error.details.every(({ path }) => path[0] === 'timestamp')
  )
}

/** Lets the program end while the timer waits. In browsers, timers never keep a program alive. */
function unref(timer: unknown): void {
  const { Deno } = globalThis as { Deno?: { unrefTimer(id: unknown): void } }
  if (typeof timer === 'number') Deno?.unrefTimer(timer)
  else (timer as { unref?(): void }).unref?.()
}

function createWarning() {
  let warnedMs = -Infinity
  return (event: EventInput, error: Error) => {
    if (performance.now() - warnedMs < WARN_EVERY_MS) return
    warnedMs = performance.now()
    console.warn(`Tidings: the event "${event.title}" is lost. ${error.message}`)
  }
}
