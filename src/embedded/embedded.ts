import { join } from 'node:path'
import { toReason } from '../errors.ts'
import { logger } from '../log.ts'
import type { Cluster } from './cluster.ts'
import { findBundledMajor } from './binaries.ts'
import { upgradeCluster } from './upgrade.ts'
import { ensureCluster, ensureHome } from './cluster.ts'
import type { FileLock } from './file-lock.ts'
import { tryLock, withLock } from './file-lock.ts'
import {
  type Postmaster,
  ensurePostmaster,
  findPostmaster,
  stopPostmaster,
  toUrl,
} from './postmaster.ts'
import { ensureServerRole } from './server-role.ts'

export type EmbeddedPostgres = {
  /** The URL of the server's role. */
  url: string
  superuserUrl: string
  /** `attached` if Postgres was already running, in use or left behind by a killed process. */
  how: 'started' | 'attached'
  /** Stops Postgres unless another process uses it. */
  stop(): Promise<void>
}

export interface EmbeddedOptions {
  dataDir: string
  /** Upgrades data of an older major version. Without it, the older Postgres serves the data. */
  allowsUpgrade?: boolean
}

const log = logger('db')
/** Another process can hold the lock while it starts Postgres, including crash recovery. */
const START_LOCK_MS = 150_000
const STOP_LOCK_MS = 10_000
const WATCH_MS = 500
const BACKOFF_MAX_MS = 15_000

/**
 * Starts the embedded Postgres in DATA_DIR/postgres, and keeps it running until `stop`. Processes
 * with the same DATA_DIR share it. Postgres keeps running when one of these processes is killed.
 */
export async function startEmbedded({
  dataDir,
  allowsUpgrade = false,
}: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const home = ensureHome(dataDir)
  const lock = join(home, 'lock')
  const { cluster, postmaster, use } = await withLock(lock, START_LOCK_MS, () =>
    open(home, allowsUpgrade),
  )
  const watch = watchPostmaster(cluster, postmaster, lock)

  let stopped: Promise<void> | undefined
  return {
    url: toUrl(cluster.serverRole, postmaster),
    superuserUrl: toUrl(cluster.superuser, postmaster),
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
  allowsUpgrade: boolean,
): Promise<{ cluster: Cluster; postmaster: Postmaster; use: FileLock }> {
  const shared = hasUsers(home)
  const use = tryLock(join(home, 'users'), 'shared')
  if (!use)
    throw new Error(
      `${home} is locked by another program. Stop that program, or choose another DATA_DIR.`,
    )
  try {
    const cluster = allowsUpgrade
      ? await ensureCurrentCluster(home, shared)
      : await ensureCluster(home)
    const running = findPostmaster(cluster)
    if (shared && running?.ready && running.socketFolder === '') {
      throw new Error(`Tidings 0.1.0 uses ${home}. Stop it, and start again.`)
    }
    const postmaster = await ensurePostmaster(cluster)
    await ensureServerRole(toUrl(cluster.superuser, postmaster), cluster.serverRole.password)
    return { cluster, postmaster, use }
  } catch (error) {
    use.release()
    throw error
  }
}

/**
 * Returns the cluster in `home`. Upgrades it to the bundled version unless other processes use it.
 */
async function ensureCurrentCluster(home: string, shared: boolean): Promise<Cluster> {
  const cluster = await ensureCluster(home)
  const [from, to] = [Number(cluster.major), Number(findBundledMajor())]
  // An unknown version is NaN, and is not upgraded either. Postgres itself refuses newer data.
  if (!(from < to)) return cluster
  if (shared) {
    log.warning(
      'Your data stays on Postgres {from}, because other processes use it. Stop all of them and start again to upgrade it to {to}.',
      { from, to },
    )
    return cluster
  }
  await upgradeCluster(cluster, { from, to })
  return ensureCluster(home)
}

/** Returns true when a process uses this Postgres. Each user holds a shared lock until it ends. */
function hasUsers(home: string): boolean {
  const exclusive = tryLock(join(home, 'users'), 'exclusive')
  exclusive?.release()
  return !exclusive
}

/** Restarts Postgres with the same socket whenever it has ended. */
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
    const startedMs = performance.now()
    try {
      await withLock(lock, START_LOCK_MS, async () => {
        if (ended) return
        const { pid, child } = await ensurePostmaster(cluster)
        if (!child) return
        child.once('exit', check)
        log.warning('Postgres had ended and was restarted', {
          pid,
          tookMs: Math.round(performance.now() - startedMs),
        })
      })
      failures = 0
    } catch (error) {
      const waitMs = Math.min(WATCH_MS * 2 ** failures++, BACKOFF_MAX_MS)
      resumeAt = performance.now() + waitMs
      log.error('Postgres has ended and could not be restarted', {
        reason: toReason(error),
        waitMs,
      })
    }
  }

  return {
    end() {
      ended = true
      clearInterval(timer)
    },
  }
}
