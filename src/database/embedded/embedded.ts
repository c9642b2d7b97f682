import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isTemporary, sqlState } from '../sql.ts'
import { DamagedFiles, toReason } from '../../base/errors.ts'
import { explainSystemError, isOutOfFiles } from '../../base/system-error.ts'
import { logger } from '../../base/log.ts'
import type { Cluster } from './cluster.ts'
import { findBundledMajor } from './binaries.ts'
import { type MajorVersions, upgradeCluster } from './upgrade.ts'
import { ensureCluster, ensureHome, readCluster } from './cluster.ts'
import type { FileLock } from './file-lock.ts'
import { tryLock, withLock } from './file-lock.ts'
import {
  type Postmaster,
  UnreachableError,
  attachPostmaster,
  ensurePostmaster,
  findPostmaster,
  stopIfMoved,
  stopPostmaster,
  toUrl,
} from './postmaster.ts'
import { findListening } from './socket-folder.ts'
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
  /** Aborts a start, and stops a Postgres that is not ready yet. */
  signal?: AbortSignal | undefined
}

const log = logger('db')
/** Another process can hold the lock while it starts Postgres, including crash recovery. */
const START_LOCK_MS = 150_000
const STOP_LOCK_MS = 10_000
const WATCH_MS = 500
const POLL_MS = 100
const BACKOFF_MAX_MS = 15_000
/** The time in which other users of a Postgres that has ended restart it. */
const RESTART_MS = 20_000

/**
 * Starts the embedded Postgres in DATA_DIR/postgres, and keeps it running until `stop`. Processes
 * with the same DATA_DIR share it, also those of other containers. Postgres keeps running when one
 * of these processes is killed. Throws when another process uses it, and it does not answer here.
 */
export async function startEmbedded({
  dataDir,
  ...options
}: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const home = ensureHome(dataDir)
  const lock = join(home, 'lock')
  const { cluster, postmaster, use } = await openWhenReachable(home, lock, options)
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

type OpenOptions = Omit<EmbeddedOptions, 'dataDir'>

interface Opened {
  cluster: Cluster
  postmaster: Postmaster
  use: FileLock
}

/** Opens the cluster. Waits for a Postgres that is about to end, or that other users restart. */
async function openWhenReachable(
  home: string,
  lock: string,
  options: OpenOptions,
): Promise<Opened> {
  const deadline = performance.now() + RESTART_MS
  for (;;) {
    const isLate = performance.now() > deadline
    try {
      return await withLock(lock, START_LOCK_MS, () => open(home, options), options.signal)
    } catch (error) {
      // It can also end after it has answered.
      const mayEnd = error instanceof UnreachableError || isTemporary(error)
      // Postgres says itself why it refuses a statement.
      const isSilent = isTemporary(error) && sqlState(error) === undefined
      if (isLate && isSilent) throw new Error(toSilentMessage(home, error), { cause: error })
      if (isLate || !mayEnd) throw error
    }
    // The other users need the lock.
    await sleep(POLL_MS, undefined, { signal: options.signal })
  }
}

function toSilentMessage(home: string, error: unknown): string {
  return `The Postgres in ${home} runs, but does not answer (${toReason(error)}). The machine may be too busy: try again. The log of Postgres is ${join(home, 'log')}.`
}

async function open(home: string, options: OpenOptions): Promise<Opened> {
  const isShared = hasUsers(home)
  const use = tryLock(join(home, 'users'), 'shared')
  if (!use)
    throw new Error(
      `${home} is locked by another program. Stop that program, or choose another DATA_DIR.`,
    )
  try {
    const { cluster, postmaster } = isShared
      ? await attach(home, options)
      : await start(home, options)
    await ensureServerRole(toUrl(cluster.superuser, postmaster), cluster.serverRole.password)
    return { cluster, postmaster, use }
  } catch (error) {
    use.release()
    // Every cluster has this database.
    if (sqlState(error) === NO_DATABASE) throw new DamagedFiles('', { cause: error })
    if (sqlState(error) !== WRONG_PASSWORD) throw error
    throw new Error(toPasswordMessage(home), { cause: error })
  }
}

/** The SQLSTATE of a refused password. */
const WRONG_PASSWORD = '28P01'
/** The SQLSTATE of a database that does not exist. */
const NO_DATABASE = '3D000'

function toPasswordMessage(home: string): string {
  return `The password in ${join(home, 'password')} is that of another folder. Restore the whole folder ${home}, with all of its files from one copy.`
}

/** Attaches to a cluster that other processes use. It changes, starts and removes nothing. */
async function attach(
  home: string,
  { allowsUpgrade = false, signal }: OpenOptions,
): Promise<Omit<Opened, 'use'>> {
  const cluster = readCluster(home)
  const postmaster = await attachPostmaster(cluster, signal)
  if (!postmaster) throw new UnreachableError(cluster)
  const versions = findUpgrade(cluster)
  if (allowsUpgrade && versions) {
    log.warning(
      'Your data stays on Postgres {from}, because other processes use it. Stop all of them and start again to upgrade it to {to}.',
      { ...versions },
    )
  }
  return { cluster, postmaster }
}

/** Opens a cluster that no other process uses: creates, upgrades and starts it as needed. */
async function start(
  home: string,
  { allowsUpgrade = false, signal }: OpenOptions,
): Promise<Omit<Opened, 'use'>> {
  let cluster = await ensureCluster(home)
  await stopIfMoved(cluster)
  const versions = allowsUpgrade && findUpgrade(cluster)
  if (versions) {
    await upgradeCluster(cluster, versions, signal)
    cluster = await ensureCluster(home)
  }
  return { cluster, postmaster: await ensurePostmaster(cluster, {}, signal) }
}

/** Returns the version of the data and the bundled one. Undefined unless the latter is newer. */
function findUpgrade(cluster: Cluster): MajorVersions | undefined {
  const [from, to] = [Number(cluster.major), Number(findBundledMajor())]
  // An unknown version is NaN, and is not upgraded either. Postgres itself refuses newer data.
  return from < to ? { from, to } : undefined
}

/** Returns true when a process uses this Postgres. Each user holds a shared lock until it ends. */
function hasUsers(home: string): boolean {
  const exclusive = tryLock(join(home, 'users'), 'exclusive')
  exclusive?.release()
  return !exclusive
}

/** Restarts Postgres with the same socket whenever it has ended. */
function watchPostmaster(cluster: Cluster, first: Postmaster, lock: string): { end(): void } {
  const ended = new AbortController()
  const { signal } = ended
  let isBusy = false
  let failures = 0
  let resumeAt = 0
  const timer = setInterval(() => void check(), WATCH_MS)
  timer.unref()
  first.child?.once('exit', () => void check())

  async function check(): Promise<void> {
    if (signal.aborted || isBusy || performance.now() < resumeAt) return
    isBusy = true
    try {
      if (!(await isRunning(cluster))) await restart()
      failures = 0
    } catch (error) {
      if (signal.aborted) return
      const waitMs = Math.min(WATCH_MS * 2 ** failures++, BACKOFF_MAX_MS)
      resumeAt = performance.now() + waitMs
      if (isOutOfFiles(error)) {
        log.error(`${explainSystemError(error)} Until then it is unknown whether Postgres runs.`)
        return
      }
      log.error('Postgres has ended and could not be restarted', {
        reason: toReason(error),
        waitMs,
      })
    } finally {
      isBusy = false
    }
  }

  async function restart(): Promise<void> {
    const startedMs = performance.now()
    const ensure = async () => {
      signal.throwIfAborted()
      const { pid, child } = await ensurePostmaster(cluster, {}, signal)
      if (!child) return
      child.once('exit', () => void check())
      log.warning('Postgres had ended and was restarted', {
        pid,
        tookMs: Math.round(performance.now() - startedMs),
      })
    }
    await withLock(lock, START_LOCK_MS, ensure, signal)
  }

  return {
    end() {
      ended.abort()
      clearInterval(timer)
    },
  }
}

async function isRunning(cluster: Cluster): Promise<boolean> {
  return findPostmaster(cluster) !== undefined || (await findListening(cluster)) !== undefined
}
