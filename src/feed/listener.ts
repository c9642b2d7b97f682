import { connect } from '../db/sql.ts'
import { toReason } from '../errors.ts'
import { logger } from '../log.ts'
import { CHANNEL } from './notifier.ts'

const log = logger('feed')
const BEAT_MS = 5_000
const SILENCE_MS = 10_000
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 2_000

export interface HintListenerOptions {
  /** The URL of the database itself: LISTEN does not work through a pooler. */
  url: string
  onPayload(payload: string): void
  /** Called whenever listening starts. Earlier payloads are lost. */
  onListening(): void
  beatMs?: number | undefined
  silenceMs?: number | undefined
}

/**
 * The LISTEN connection of the process. A connection may be dead, or lead to a pooler that does not listen, without an
 * error. So the listener notifies itself, and replaces a connection on which its own payload does not arrive.
 */
export function startHintListener(options: HintListenerOptions) {
  const { beatMs = BEAT_MS, silenceMs = SILENCE_MS } = options
  const attempted = Promise.withResolvers<void>()
  const stopped = Promise.withResolvers<void>()
  let isStopped = false
  let isUp = false
  let failures = 0
  let sinceMs = performance.now()
  let giveUp = (_reason: string) => {}

  /** Listens until the connection is lost, and returns the reason. */
  async function listen(): Promise<string> {
    const lost = Promise.withResolvers<string>()
    giveUp = lost.resolve
    let heardMs = performance.now()
    const sql = connect(options.url, {
      name: 'listen',
      max: 1,
      settings: { synchronous_commit: 'off' },
      listener: {
        onNotify(_, payload) {
          heardMs = performance.now()
          options.onPayload(payload)
        },
        onClose: () => lost.resolve('the connection was closed'),
      },
    })
    const beat = () => void sql`select pg_notify(${CHANNEL}, 'beat')`.catch(() => {})
    const timers: ReturnType<typeof setInterval>[] = []
    try {
      timers.push(setTimeout(() => lost.resolve('the database did not answer'), silenceMs))
      const begun = sql`listen ${sql(CHANNEL)}`.then(() => undefined)
      const reason = await Promise.race([begun, lost.promise])
      if (reason !== undefined) return reason
      clearTimeout(timers.pop())
      isUp = true
      failures = 0
      attempted.resolve()
      options.onListening()
      timers.push(
        setInterval(beat, beatMs),
        setInterval(() => {
          if (performance.now() - heardMs > silenceMs) lost.resolve('no payload arrives')
        }, silenceMs / 10),
      )
      return await lost.promise
    } finally {
      for (const timer of timers) clearInterval(timer)
      if (isUp) sinceMs = performance.now()
      isUp = false
      void sql.end({ timeout: 0 }).catch(() => {})
    }
  }

  async function run(): Promise<void> {
    while (!isStopped) {
      const reason = await listen().catch(toReason)
      attempted.resolve()
      if (isStopped) return
      log.debug('The LISTEN connection was lost: {reason}', { reason })
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** failures++, LONGEST_PAUSE_MS)
      await Promise.race([stopped.promise, new Promise(resolve => setTimeout(resolve, pauseMs))])
    }
  }

  const running = run()
  return {
    get isUp() {
      return isUp
    },
    /** Milliseconds since the connection was lost; 0 while it listens. */
    get downMs() {
      return isUp ? 0 : performance.now() - sinceMs
    },
    /** Resolves after the first attempt, successful or not. */
    attempted: attempted.promise,
    /** Replaces the connection. */
    renew: () => giveUp('connections of other pools were lost'),
    async stop(): Promise<void> {
      isStopped = true
      giveUp('the server is stopping')
      stopped.resolve()
      await running
    },
  }
}
