import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createClient } from '../../../clients/typescript/src/client.ts'
import type { EventInput } from '../../../clients/typescript/src/client.ts'
import { API_KEY } from '../../support/worlds/client-story.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const START_MS = Date.UTC(2026, 10, 20)
/** The clock is corrected beyond a minute, by a header of whole seconds. */
const MAX_TIME_ERROR_MS = MINUTE_MS + 2_000

/** Less than the hour between the age at which the queue gives up and that of a forgotten key. */
const MAX_BACK_MS = 50 * MINUTE_MS

type Mode = 'up' | 'down' | 'flaky'
type Step =
  | { type: 'queue'; count: number }
  | { type: 'advance' | 'sleep' | 'set'; ms: number }
  | { type: 'mode'; mode: Mode }
  | { type: 'flush' }

/** An event that the queue has accepted. */
interface Accepted {
  /** The true time. */
  queuedMs: number
  /** The time by the clock of the machine. */
  wallMs: number
  inFlight: number
  /** True once the client was told that it is stored, or has dropped it. */
  isDone: boolean
  isDropped: boolean
  stored: { timestampMs: number; atMs: number }[]
}

const realImmediate = setImmediate
/** Resolves when everything has happened that needs no time. */
async function settle(): Promise<void> {
  for (let nth = 0; nth < 4; nth++) await new Promise<void>(resolve => realImmediate(resolve))
}

/** A machine whose clocks and timers the test moves, and a server that fails at random. */
function open({ skewMs, seed }: { skewMs: number; seed: number }) {
  let trueMs = START_MS
  let sleptMs = 0
  let aheadMs = skewMs
  let wasSet = false
  let backMs = 0
  let mode: Mode = 'up'
  const timers = new Map<object, { atMs: number; run: () => void }>()
  const steadyMs = () => trueMs - START_MS - sleptMs
  const wallMs = () => trueMs + aheadMs
  let state = seed
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }

  const saved = { setTimeout, clearTimeout, now: Date.now, steady: performance.now }
  Object.assign(globalThis, {
    // With arguments, as the database driver passes them, which other files of the process use.
    setTimeout<Args extends unknown[]>(run: (...args: Args) => void, ms: number, ...args: Args) {
      const timer = { unref() {} }
      timers.set(timer, { atMs: steadyMs() + ms, run: () => run(...args) })
      return timer
    },
    clearTimeout: (timer: object) => void timers.delete(timer),
  })
  Date.now = () => Math.floor(wallMs())
  performance.now = steadyMs

  const accepted: Accepted[] = []
  const keys = new Map<string, { body: string; atMs: number }>()
  const problems: string[] = []

  /** By the clock that says more. */
  const toAgeMs = (one: Accepted) => Math.max(trueMs - one.queuedMs, wallMs() - one.wallMs)

  /** Stores an event as the server does. */
  function store(key: string, body: string): Response {
    const known = keys.get(key)
    if (known && trueMs - known.atMs < 24 * HOUR_MS) {
      if (known.body !== body) return respond(422, { code: 'idempotency_key_reused' })
      return respond(201, { success: true, data: {} })
    }
    const { title, timestamp } = JSON.parse(body) as EventInput
    const timestampMs = timestamp === undefined ? trueMs : Date.parse(`${timestamp}`)
    if (timestampMs > trueMs + 5 * MINUTE_MS) {
      const details = [{ path: ['timestamp'], message: 'Too late', code: 'out_of_range' }]
      return respond(400, { details })
    }
    keys.set(key, { body, atMs: trueMs })
    accepted[Number(title)]?.stored.push({ timestampMs, atMs: trueMs })
    return respond(201, { success: true, data: {} })
  }

  function respond(status: number, body: object, headers: Record<string, string> = {}): Response {
    const date = new Date(trueMs).toUTCString()
    const isSuccess = status < 300
    return Response.json(
      { success: isSuccess, error: 'No', ...body },
      { status, headers: { Date: date, ...headers } },
    )
  }

  function wait(ms: number, signal: AbortSignal | null | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = globalThis.setTimeout(resolve, ms)
      signal?.addEventListener('abort', () => {
        clearTimeout(timer)
        reject(new Error('Aborted'))
      })
    })
  }

  async function receive(url: string, init: RequestInit): Promise<Response> {
    const isEvent = url.endsWith('/v1/events')
    const body = String(init.body)
    const one = isEvent ? accepted[Number((JSON.parse(body) as EventInput).title)] : undefined
    if (one) {
      const older = accepted.slice(0, accepted.indexOf(one))
      const overtaken = older.filter(
        other => other.inFlight === 0 && !other.isDone && toAgeMs(other) < 23 * HOUR_MS,
      )
      if (overtaken.length > 0)
        problems.push(`${accepted.indexOf(one)} overtook ${JSON.stringify(overtaken)}`)
      one.inFlight++
    }
    try {
      const response = await answer()
      // The client then reads it at once.
      const text = await response.text()
      Object.defineProperty(response, 'text', { value: async () => text })
      if (one && (response.status === 201 || response.status === 422)) one.isDone = true
      return response
    } finally {
      // The client learns it a moment later.
      void settle().then(() => one && one.inFlight--)
    }

    async function answer(): Promise<Response> {
      const act = () =>
        isEvent
          ? store(new Headers(init.headers).get('idempotency-key') ?? '', body)
          : respond(200, {})
      if (mode === 'up') return act()
      if (mode === 'down') throw new Error('Connection refused')
      const fault = random()
      if (fault < 0.2) throw new Error('Connection refused')
      if (fault < 0.4) return respond(503, {}, random() < 0.5 ? { 'Retry-After': '1' } : {})
      if (fault < 0.45) return respond(408, { code: 'request_timeout' })
      if (fault < 0.5) return respond(429, {}, { 'Retry-After': String(Math.ceil(random() * 60)) })
      if (fault < 0.6) await wait(Infinity, init.signal)
      const response = act()
      if (fault < 0.7) await wait(random() * 9_000, init.signal)
      // The response is lost after the commit.
      if (fault < 0.8) throw new Error('Connection reset')
      if (fault < 0.9) return respond(503, {})
      if (fault < 0.95) await wait(Infinity, init.signal)
      return response
    }
  }

  const client = createClient({
    ...{ baseUrl: 'http://localhost', apiKey: API_KEY, queueLimit: 40 },
    fetch: receive,
    onDrop({ title }, error) {
      const one = accepted[Number(title)]
      if (!one || error.message.startsWith('The queue is full')) return
      one.isDone = one.isDropped = true
      if (toAgeMs(one) < 23 * HOUR_MS) problems.push(`Dropped early: ${error.message}`)
      throw new Error('A bug of the program')
    },
  })

  async function advance(ms: number): Promise<void> {
    const endMs = steadyMs() + ms
    await settle()
    for (;;) {
      const due = [...timers].filter(([, { atMs }]) => atMs <= endMs)
      const [next] = due.sort(([, one], [, other]) => one.atMs - other.atMs)
      if (!next) break
      const [timer, { atMs, run }] = next
      timers.delete(timer)
      trueMs += Math.max(0, atMs - steadyMs())
      run()
      await settle()
    }
    trueMs += Math.max(0, endMs - steadyMs())
  }

  return {
    problems,
    async perform(step: Step): Promise<void> {
      if (step.type === 'queue') {
        for (let nth = 0; nth < step.count; nth++) {
          const title = `${accepted.length}`
          accepted.push({
            ...{ queuedMs: trueMs, wallMs: wallMs(), stored: [] },
            ...{ inFlight: 0, isDone: false, isDropped: false },
          })
          if (!client.queue({ channelName: 'a', title })) accepted.pop()
        }
      } else if (step.type === 'advance') await advance(step.ms)
      else if (step.type === 'sleep') {
        trueMs += step.ms
        sleptMs += step.ms
      } else if (step.type === 'set') {
        // A clock that is set back during a sleep of a day hides so much of it.
        backMs += Math.max(0, -step.ms)
        if (step.ms < 0 && backMs > MAX_BACK_MS) return
        aheadMs += step.ms
        wasSet = true
      } else if (step.type === 'mode') mode = step.mode
      else {
        const flushed = client.flush({ timeoutMs: 100 })
        await advance(100)
        await flushed
      }
    },
    async finish(): Promise<void> {
      mode = 'up'
      // The longest pause, and a Retry-After.
      for (let nth = 0; nth < 20; nth++) await advance(MINUTE_MS)
      expect(problems).toEqual([])
      const flushed = client.flush({ timeoutMs: 1 })
      await advance(1)
      expect(await flushed).toBe(0)
      for (const { stored, isDropped, queuedMs } of accepted) {
        if (stored.length > 1) throw new Error('An event is stored twice')
        const [one] = stored
        if (!one) {
          if (!isDropped) throw new Error('An event is lost')
        } else if (!wasSet && one.atMs - queuedMs < 23 * HOUR_MS) {
          const errorMs = Math.abs(one.timestampMs - queuedMs)
          if (errorMs > MAX_TIME_ERROR_MS) throw new Error(`Its time differs by ${errorMs} ms`)
        }
      }
    },
    close(): void {
      globalThis.setTimeout = saved.setTimeout
      globalThis.clearTimeout = saved.clearTimeout
      Date.now = saved.now
      performance.now = saved.steady
    },
  }
}

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('queue' as const),
      count: fc.integer({ min: 1, max: 15 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('advance' as const),
      ms: fc.integer({ min: 1, max: 90_000 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('sleep' as const),
      ms: fc.integer({ min: 1, max: 26 * HOUR_MS }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('set' as const),
      ms: fc.integer({ min: -20 * MINUTE_MS, max: 30 * HOUR_MS }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('mode' as const),
      mode: fc.constantFrom<Mode>('up', 'down', 'flaky'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('flush' as const) }) },
)
const machine = fc.record({
  // Right, and wrong in both directions; a machine without a battery begins in 1970.
  skewMs: fc.constantFrom(0, 30_000, -6 * MINUTE_MS, 6 * MINUTE_MS, 3 * HOUR_MS, -START_MS),
  seed: fc.integer({ min: 0, max: 2 ** 31 }),
})

test('the queue stores each accepted event once, in order and with its time, or drops it after 23 hours', async () => {
  const { warn } = console
  console.warn = () => {}
  try {
    await fc.assert(
      fc.asyncProperty(
        machine,
        fc.array(step, { maxLength: 30, size: 'max' }),
        async (options, steps) => {
          const world = open(options)
          try {
            for (const one of steps) await world.perform(one)
            await world.finish()
          } finally {
            world.close()
          }
        },
      ),
      { numRuns: Number(process.env['PROPERTY_RUNS'] ?? 200) },
    )
  } finally {
    console.warn = warn
  }
})
