import { join } from 'node:path'
import { toReason } from '../errors.ts'
import { logger } from '../log.ts'
import type { Cluster } from './cluster.ts'
import { findCarriedMajor } from './binaries.ts'
import { carryOver } from './carry.ts'
import { ensureCluster, ensureHome } from './cluster.ts'
import type { FileLock } from './file-lock.ts'
import { tryLock, withLock } from './file-lock.ts'
import { chooseFreePort, readPort } from './port.ts'
import type { Postmaster } from './postmaster.ts'
import { ensurePostmaster, findPostmaster, HOST, stopPostmaster, toUrl } from './postmaster.ts'

export { findClosedFolder } from './folders.ts'

export type Embedded = {
  url: string
  host: string
  port: number
  password: string
  /** `attached`: it ran already, for another process or since one was killed. */
  how: 'started' | 'attached'
  /** Gives it up, and stops Postgres unless another process uses it. */
  stop(): Promise<void>
}

export interface EmbeddedOptions {
  dataDir: string
  carriesOver?: boolean
}

const log = logger('db')
/** A start may wait for another's, which may wait for a recovery. */
const START_LOCK_MS = 150_000
const STOP_LOCK_MS = 10_000
const WATCH_MS = 500
const BACKOFF_MAX_MS = 15_000

/**
 * A Postgres of our own in DATA_DIR/postgres, kept running until `stop`. All processes with the
 * same DATA_DIR share one; it outlives those that are killed. Data of an older major version of Postgres is carried over
 * to ours where `carriesOver`; else it is served by what made it.
 */
export async function startEmbedded({
  dataDir,
  carriesOver = false,
}: EmbeddedOptions): Promise<Embedded> {
  const home = ensureHome(dataDir)
  const lock = join(home, 'lock')
  const { cluster, postmaster, use } = await withLock(lock, START_LOCK_MS, () =>
    open(home, carriesOver),
  )
  const { port } = postmaster
  const watch = watchPostmaster(cluster, postmaster, lock)

  let stopped: Promise<void> | undefined
  return {
    url: toUrl(cluster, postmaster),
    host: HOST,
    port,
    password: cluster.password,
    how: postmaster.child ? 'started' : 'attached',
    stop: () => (stopped ??= stop()),
  }

  async function stop(): Promise<void> {
    watch.end()
    await withLock(lock, STOP_LOCK_MS, async () => {
      use.release()
      if (!hasUsers(home)) await stopPostmaster(cluster)
    })
  }
}

async function open(
  home: string,
  carriesOver: boolean,
): Promise<{ cluster: Cluster; postmaster: Postmaster; use: FileLock }> {
  const portFile = join(home, 'port')
  // The others know Postgres by its port.
  const shared = hasUsers(home)
  const use = tryLock(join(home, 'users'), 'shared')
  if (!use) throw new Error(`${home} is locked by a stranger`)
  try {
    const cluster = carriesOver ? await ensureCurrent(home, shared) : await ensureCluster(home)
    const postmaster = await ensurePostmaster(cluster, async () => {
      return (shared && readPort(portFile)) || chooseFreePort(portFile, HOST)
    })
    return { cluster, postmaster, use }
  } catch (error) {
    use.release()
    throw error
  }
}

/** The cluster in `home`, carried over to our major version of Postgres unless others use it. */
async function ensureCurrent(home: string, shared: boolean): Promise<Cluster> {
  const cluster = await ensureCluster(home)
  const [from, to] = [Number(cluster.major), Number(findCarriedMajor())]
  // Also where one of them cannot be told. A newer one is refused when it is to be started.
  if (!(from < to)) return cluster
  if (shared) {
    log.warning(
      'Your data stays with Postgres {from} while others use it: a start without them carries it over to {to}',
      { from, to },
    )
    return cluster
  }
  await carryOver(cluster, { from, to })
  return ensureCluster(home)
}

/** Whether a process uses this Postgres: each holds the file shared until it stops or is killed. */
function hasUsers(home: string): boolean {
  const last = tryLock(join(home, 'users'), 'exclusive')
  last?.release()
  return !last
}

/** Starts Postgres again on its port whenever it is gone, whoever had started it. */
function watchPostmaster(cluster: Cluster, first: Postmaster, lock: string): { end(): void } {
  let ended = false
  let busy = false
  let failures = 0
  let resumeAt = 0
  const timer = setInterval(check, WATCH_MS)
  timer.unref()
  first.child?.once('exit', check)

  function check(): void {
    if (ended || busy || performance.now() < resumeAt) return
    if (findPostmaster(cluster)) return
    busy = true
    void restart().finally(() => (busy = false))
  }

  async function restart(): Promise<void> {
    const begun = performance.now()
    try {
      await withLock(lock, START_LOCK_MS, async () => {
        if (ended) return
        const { pid, child } = await ensurePostmaster(cluster, async () => first.port)
        if (!child) return
        child.once('exit', check)
        log.warning('Postgres was gone and has been started again', {
          pid,
          port: first.port,
          tookMs: Math.round(performance.now() - begun),
        })
      })
      failures = 0
    } catch (error) {
      const waitMs = Math.min(WATCH_MS * 2 ** failures++, BACKOFF_MAX_MS)
      resumeAt = performance.now() + waitMs
      log.error('Postgres is gone and could not be started', { reason: toReason(error), waitMs })
    }
  }

  return {
    end() {
      ended = true
      clearInterval(timer)
    },
  }
}
