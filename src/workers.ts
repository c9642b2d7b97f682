import { spawn, type ChildProcess } from 'node:child_process'
import { createServer, type AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { httpGet } from './http-get.ts'
import type { Config } from './config.ts'
import { openDatabase } from './embedded/database.ts'
import { migrate } from './db/migrate.ts'
import { sendSignal } from './embedded/processes.ts'
import { waitUntilReachable, connect } from './db/sql.ts'
import { bootstrap, type BootstrapSecrets } from './server/bootstrap.ts'
import { toListenError, toLocalUrl } from './listener.ts'
import { logger } from './log.ts'
import { once } from './functions.ts'
import { toSelfCommand } from './platform.ts'

/** Tells a process that it is one of several, by its number. Its end is the end of its standard input. */
export const WORKER_VARIABLE = 'TIDINGS_WORKER'

/** Several servers as processes of their own, on one port and one database. */
export interface Workers extends BootstrapSecrets {
  url: string
  /** Stops them all as each of them stops; bounded at 25 s. Returns whether each has ended in good order. */
  stop(): Promise<boolean>
}

const log = logger('workers')
const STOP_MS = 25_000
const ASK_MS = 50
const ANSWER_MS = 1_000
const BACKOFF_MIN_MS = 250
const BACKOFF_MAX_MS = 15_000
/** A worker that has run for so long did not fail at its start. */
const STEADY_MS = 30_000

/**
 * Starts `config.workers` servers, and starts anew each that ends by itself. The database is opened here first, and let
 * go last. Throws with a sentence for people when they cannot serve.
 */
export async function startWorkers(config: Config, signal?: AbortSignal): Promise<Workers> {
  if (process.platform !== 'linux') {
    throw new Error('Several workers on one port need Linux: leave WORKERS out.')
  }
  const database = await openDatabase(config, { allowsUpgrade: true })
  const supervisor = createSupervisor(config)
  try {
    await waitUntilReachable(database.url, signal)
    await migrate(database.url)
    const port = await findFreePort(config)
    const url = config.baseUrl ?? `http://localhost:${port}`
    await supervisor.start(port)
    const sql = connect(database.url, { name: 'workers', max: 1 })
    // Last, so that a start that fails does not use up the one time that the key is shown.
    const first = await bootstrap(sql, config).finally(() => sql.end({ timeout: 1 }))
    log.info('{workers} workers are listening on {url}', { workers: config.workers, url })
    const stop = once(async () => {
      log.info('Stopping')
      const isGood = await supervisor.stop()
      await database.close()
      return isGood
    })
    return { url, ...first, stop }
  } catch (error) {
    await supervisor.stop()
    await database.close()
    throw error
  }
}

function createSupervisor(config: Config) {
  const workers: SupervisedWorker[] = []
  let isStopping = false

  return {
    /** Resolves when the port answers; rejects when a worker ends before. */
    async start(port: number): Promise<void> {
      for (let number = 1; number <= config.workers; number++) {
        workers.push(startSupervisedWorker(() => spawnWorker(config, { number, port }), number))
      }
      const failed = Promise.race(
        workers.map(async worker => {
          const how = await worker.firstExit
          throw new Error(`Worker ${worker.number} has ended at its start (${how}): see above.`)
        }),
      )
      await Promise.race([
        waitUntilHealthy(toLocalUrl({ host: config.host, port }), () => isStopping),
        failed,
      ])
      failed.catch(() => {})
      for (const worker of workers) worker.supervise()
    },
    async stop(): Promise<boolean> {
      isStopping = true
      return (await Promise.all(workers.map(worker => worker.stop()))).every(isGood => isGood)
    },
  }
}

interface SupervisedWorker {
  number: number
  firstExit: Promise<string>
  /** From now on it is started anew when it ends. */
  supervise(): void
  stop(): Promise<boolean>
}

function startSupervisedWorker(launch: () => ChildProcess, number: number): SupervisedWorker {
  const firstExit = Promise.withResolvers<string>()
  const stopping = new AbortController()
  let isSupervised = false
  let backoffMs = BACKOFF_MIN_MS
  let child = start()

  function start(): ChildProcess {
    const next = launch()
    const startedMs = performance.now()
    log.info('Worker {number} started', { number, pid: next.pid })
    next.once('error', error => void end(error.message))
    next.once('exit', (code, name) => void end(name ?? `exit code ${code}`))

    async function end(how: string): Promise<void> {
      firstExit.resolve(how)
      if (!isSupervised || stopping.signal.aborted) return
      if (performance.now() - startedMs > STEADY_MS) backoffMs = BACKOFF_MIN_MS
      log.error('Worker {number} has ended ({how}), and is started again in {backoffMs} ms', {
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
        // Only a worker that has not set up its handler yet is ended by the signal itself.
        child.once('exit', (code, name) => resolve(code === 0 || name === 'SIGTERM'))
      })
      // By its id: Deno takes every signal that it sends to a child of its own for the child's end.
      const { pid } = child
      sendSignal(pid, 'SIGTERM')
      const timer = setTimeout(() => sendSignal(pid, 'SIGKILL'), STOP_MS)
      return exited.finally(() => clearTimeout(timer))
    },
  }
}

function spawnWorker(config: Config, { number, port }: { number: number; port: number }) {
  const [command, ...words] = toSelfCommand()
  const { PORT_FILE: _, METRICS_PORT_FILE: __, ...env } = process.env
  const metricsPort = config.metricsPort && config.metricsPort + number - 1
  return spawn(command, [...words, 'serve'], {
    env: {
      ...env,
      [WORKER_VARIABLE]: String(number),
      PORT: String(port),
      METRICS_PORT: String(metricsPort ?? ''),
    },
    // A Ctrl-C at the terminal is for us, who pass it on.
    detached: true,
    stdio: ['pipe', 'inherit', 'inherit'],
  })
}

/** No other program may listen there: with SO_REUSEPORT it would get a part of the requests. */
function findFreePort({ host, port }: Config): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', error => reject(toListenError(error, { host, port })))
    server.listen({ host, port, exclusive: true }, () => {
      const found = (server.address() as AddressInfo).port // A TCP server has no other kind.
      server.close(() => resolve(found))
    })
  })
}

async function waitUntilHealthy(url: string, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const answer = await httpGet(`${url}/healthz`, { timeoutMs: ANSWER_MS }).catch(() => undefined)
    if (answer?.status === 200) return
    await sleep(ASK_MS)
  }
}
