import { setTimeout as sleep } from 'node:timers/promises'
import { VERSION } from '../../base/version.ts'
import { connect } from '../../database/sql.ts'
import { toReason } from '../../base/errors.ts'
import { logger } from '../../base/log.ts'
import { NOTIFY_CHANNEL } from './notifier.ts'

const log = logger('feed')
const HEARTBEAT_MS = 5_000
const TIMEOUT_MS = 10_000
const MIN_PAUSE_MS = 100
const MAX_PAUSE_MS = 2_000

export interface HintListenerOptions {
  /** The URL of the database itself: LISTEN does not work through a pooler. */
  url: string
  /** The port of the server. */
  port: number
  onPayload(payload: string): void
  /** Called whenever LISTEN starts. Payloads sent before that are lost. */
  onListening(): void
  heartbeatMs?: number | undefined
  timeoutMs?: number | undefined
}

/**
 * Starts the LISTEN connection of the process. A dead connection, or a pooler without LISTEN,
 * causes no error. So the listener sends itself a heartbeat by NOTIFY, and reconnects when none
 * arrives.
 */
export function startHintListener(options: HintListenerOptions) {
  const { heartbeatMs = HEARTBEAT_MS, timeoutMs = TIMEOUT_MS } = options
  const firstAttempt = Promise.withResolvers<void>()
  const stopped = Promise.withResolvers<void>()
  let isStopped = false
  let isUp = false
  let failures = 0
  let sinceMs = performance.now()
  let dropConnection = (_reason: string) => {}

  /** Listens until the connection is lost. Returns the reason. */
  async function listen(): Promise<string> {
    const lost = Promise.withResolvers<string>()
    dropConnection = lost.resolve
    let heardMs = performance.now()
    const sql = connect(options.url, {
      // Doctor reads the versions and ports of running servers from this name.
      name: `listen ${VERSION} ${options.port}`,
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
    const heartbeat = () =>
      void sql`select pg_notify(${NOTIFY_CHANNEL}, 'heartbeat')`.catch(() => {})
    const timers: ReturnType<typeof setInterval>[] = []
    try {
      timers.push(setTimeout(() => lost.resolve('the database did not answer'), timeoutMs))
      const begun = sql`listen ${sql(NOTIFY_CHANNEL)}`.then(() => undefined)
      const reason = await Promise.race([begun, lost.promise])
      if (reason !== undefined) return reason
      clearTimeout(timers.pop())
      isUp = true
      failures = 0
      firstAttempt.resolve()
      options.onListening()
      timers.push(
        setInterval(heartbeat, heartbeatMs),
        setInterval(() => {
          if (performance.now() - heardMs > timeoutMs) lost.resolve('no heartbeat arrived')
        }, timeoutMs / 10),
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
      firstAttempt.resolve()
      if (isStopped) return
      log.debug('The LISTEN connection was lost: {reason}', { reason })
      const pauseMs = Math.min(MIN_PAUSE_MS * 2 ** failures++, MAX_PAUSE_MS)
      await Promise.race([stopped.promise, sleep(pauseMs)])
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
    /** Resolves after the first attempt to connect, successful or not. */
    firstAttempt: firstAttempt.promise,
    /** Replaces the connection. */
    renew: () => dropConnection('connections of other pools were lost'),
    async stop(): Promise<void> {
      isStopped = true
      dropConnection('the server is stopping')
      stopped.resolve()
      await running
    },
  }
}
