import { spawn, type ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { httpGet } from '../base/http-get.ts'
import type { Config } from '../base/config.ts'
import { overrideSettings } from '../base/config/names.ts'
import { sendSignal } from '../database/embedded/processes.ts'
import { connect } from '../database/sql.ts'
import { bootstrap, type BootstrapOptions, type BootstrapSecrets } from './bootstrap.ts'
import { IncompleteStop, startOrClose, type CleanupStack } from './cleanup-stack.ts'
import { openCurrentDatabase } from './current-database.ts'
import { findFreePort, toHostPort, toLocalUrl } from '../base/listener.ts'
import { logger } from '../base/log.ts'
import { once } from '../base/functions.ts'
import { toSelfCommand } from '../base/platform.ts'

/**
 * The environment variable that holds the number of a worker, from 1. The variable is absent in a
 * process that is no worker.
 */
export const WORKER_VARIABLE = 'TIDINGS_WORKER'

/** Several server processes on one port and one database. */
export interface Workers extends BootstrapSecrets {
  url: string
  /**
   * Stops all workers within DRAIN_SECONDS and 25 s. Resolves to true when each has stopped without
   * an error.
   */
  stop(): Promise<boolean>
}

const log = logger('workers')
/** The time for the stop of a worker after DRAIN_SECONDS. */
const STOP_MS = 25_000
/** The time that a killed worker takes to end. */
const END_MS = 1_000
const POLL_MS = 50
const RESPONSE_TIMEOUT_MS = 1_000
const BACKOFF_MIN_MS = 250
const BACKOFF_MAX_MS = 15_000
/** The interval of messages from a worker, and of looks at them. */
const HEARTBEAT_MS = 1_000
/**
 * A worker is frozen after this many looks without a message. Looks are counted, because a machine
 * that slept has stopped both processes.
 */
const MISSED_LOOKS = 30
/** A worker that ran longer than this is restarted after the shortest backoff. */
const STABLE_MS = 30_000

interface WorkersOptions extends BootstrapOptions {
  signal?: AbortSignal | undefined
}

/**
 * Starts `config.workers` server processes, and restarts those that end unexpectedly or freeze.
 * This process opens the database before they start, and closes it after they stop. Throws when a
 * worker cannot serve. The message tells the operator what to do. The signal aborts the start.
 */
export async function startWorkers(config: Config, options: WorkersOptions = {}): Promise<Workers> {
  if (process.platform !== 'linux') {
    throw new Error('Several workers on one port require Linux. Remove WORKERS.')
  }
  return startOrClose(options.signal, cleanup => open(config, options, cleanup))
}

async function open(
  config: Config,
  { signal, isTerminal }: WorkersOptions,
  cleanup: CleanupStack,
): Promise<Workers> {
  const database = await openCurrentDatabase(config, cleanup, { signal })
  const workers: SupervisedWorker[] = []
  const stopping = new AbortController()
  const stopMs = config.drainSeconds * 1000 + STOP_MS + END_MS
  const stopAll = async () => {
    stopping.abort()
    return (await Promise.all(workers.map(worker => worker.stop()))).every(isClean => isClean)
  }
  cleanup.push('the workers', stopAll, stopMs)
  const port = await findFreePort(config)
  const url = config.baseUrl ?? `http://localhost:${port}`
  signal?.throwIfAborted()
  for (let number = 1; number <= config.workers; number++)
    workers.push(startSupervisedWorker(config, { number, port }))
  await Promise.race([
    waitUntilHealthy(toLocalUrl({ host: config.host, port }), stopping.signal),
    ...workers.map(async ({ number, firstExit }) => {
      const how = await firstExit
      throw new Error(`Worker ${number} ended during its start (${how}). See the log above.`)
    }),
  ])
  for (const worker of workers) worker.supervise()
  const sql = connect(database.url, { name: 'workers', max: 1 })
  // This is the last step: the first key is shown only once, and a failed start would lose it.
  const secrets = await bootstrap(sql, config, { isTerminal }).finally(() =>
    sql.end({ timeout: 1 }),
  )
  log.info('{workers} workers are listening on {address}. Links begin with {url}', {
    workers: config.workers,
    address: toHostPort({ host: config.host, port }),
    url,
  })
  const stop = once(async () => {
    log.info('Stopping')
    const unfinished = await cleanup.runAll(stopMs)
    if (unfinished.length > 0) log.error(new IncompleteStop(unfinished).message)
    return unfinished.length === 0
  })
  return { url, ...secrets, stop }
}

interface WorkerPlace {
  number: number
  port: number
}

interface SupervisedWorker {
  number: number
  firstExit: Promise<string>
  /** Restarts the worker whenever it ends. Until this call, an exit is a failed start. */
  supervise(): void
  stop(): Promise<boolean>
}

function startSupervisedWorker(config: Config, place: WorkerPlace): SupervisedWorker {
  const { number } = place
  const firstExit = Promise.withResolvers<string>()
  const stopping = new AbortController()
  let isSupervised = false
  let backoffMs = BACKOFF_MIN_MS
  let child = start()

  function start(): ChildProcess {
    const next = spawnWorker(config, place)
    const startedMs = performance.now()
    log.info('Worker {number} started', { number, pid: next.pid })
    next.once('error', error => void end(error.message))
    next.once('exit', (code, name) => void end(name ?? `exit code ${code}`))
    killWhenFrozen(next, number)

    async function end(how: string): Promise<void> {
      firstExit.resolve(how)
      if (!isSupervised || stopping.signal.aborted) return
      if (performance.now() - startedMs > STABLE_MS) backoffMs = BACKOFF_MIN_MS
      log.error('Worker {number} ended ({how}) and will be restarted in {backoffMs} ms', {
        number,
        how,
        backoffMs,
      })
      await sleep(backoffMs, undefined, { signal: stopping.signal }).catch(() => {})
      backoffMs = Math.min(2 * backoffMs, BACKOFF_MAX_MS)
      if (!stopping.signal.aborted) child = start()
    }
    return next
  }

  return {
    number,
    firstExit: firstExit.promise,
    supervise: () => void (isSupervised = true),
    async stop() {
      stopping.abort()
      if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null)
        return true
      const exited = new Promise<boolean>(resolve => {
        child.once('exit', (code, name) => {
          // SIGTERM kills only a worker that has no handler yet. This is a clean stop, too.
          const isClean = code === 0 || name === 'SIGTERM'
          if (!isClean)
            log.error('Worker {number} did not stop in order ({how})', {
              number,
              how: name ?? `exit code ${code}`,
            })
          resolve(isClean)
        })
      })
      // By pid, because Deno considers a child ended after any `child.kill`.
      const { pid } = child
      sendSignal(pid, 'SIGTERM')
      const stopMs = config.drainSeconds * 1000 + STOP_MS
      const timer = setTimeout(() => sendSignal(pid, 'SIGKILL'), stopMs)
      return exited.finally(() => clearTimeout(timer))
    },
  }
}

/**
 * Kills a worker whose event loop has stood still for 30 s, so that it is restarted. Meanwhile, the
 * kernel gives it its share of new connections, which nobody answers. It could not handle SIGTERM.
 * Nothing is lost that another kill would not lose: whatever was acknowledged is in the database.
 */
function killWhenFrozen(child: ChildProcess, number: number): void {
  let missed = 0
  child.on('message', () => (missed = 0))
  // A start has no limit, because it can wait for its database.
  child.once('message', () => {
    const timer = setInterval(look, HEARTBEAT_MS)
    child.once('exit', () => clearInterval(timer))
  })
  function look(): void {
    if (++missed !== MISSED_LOOKS) return
    log.error('Worker {number} has not responded for {seconds} s and is killed', {
      number,
      seconds: (MISSED_LOOKS * HEARTBEAT_MS) / 1000,
    })
    if (child.pid !== undefined) sendSignal(child.pid, 'SIGKILL')
  }
}

/** Tells the parent that the event loop of this worker runs. */
export function sendHeartbeats(): void {
  const beat = () => process.send?.('alive', () => {})
  beat()
  setInterval(beat, HEARTBEAT_MS).unref()
}

function spawnWorker(config: Config, { number, port }: WorkerPlace): ChildProcess {
  const [command, ...words] = toSelfCommand()
  const metricsPort = config.metricsPort && config.metricsPort + number - 1
  return spawn(command, [...words, 'serve'], {
    env: overrideSettings(process.env, {
      DATA_DIR: config.dataDir,
      [WORKER_VARIABLE]: String(number),
      PORT: String(port),
      METRICS_PORT: metricsPort === undefined ? undefined : String(metricsPort),
    }),
    // Ctrl-C at the terminal must reach only this process, which stops the workers.
    detached: true,
    // Standard input ends with this process, even after SIGKILL. Workers then stop.
    // Heartbeats come as messages.
    stdio: ['pipe', 'inherit', 'inherit', 'ipc'],
  })
}

async function waitUntilHealthy(url: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const answer = await httpGet(`${url}/healthz`, { timeoutMs: RESPONSE_TIMEOUT_MS }).catch(
      () => undefined,
    )
    if (answer?.status === 200) return
    await sleep(POLL_MS)
  }
}
