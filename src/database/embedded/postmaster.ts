import type { ChildProcess } from 'node:child_process'
import { readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ClusterLock, tryLockCluster } from './cluster-lock.ts'
import type { Cluster, Credentials } from './cluster.ts'
import { logger } from '../../base/log.ts'
import { isOutOfFiles } from '../../base/system-error.ts'
import { launch } from './launch.ts'
import { isClusterProcess, listClusterProcesses, readOwnPid, sendSignal } from './processes.ts'
import {
  ensureSocketFolder,
  findListening,
  removeSocketFolder,
  SOCKET_FILE,
} from './socket-folder.ts'

// The socket tells whether Postgres runs, and the lock of the cluster whether it may be started. A
// pid tells neither: it belongs to one PID namespace, and the data folder to all of them.

const log = logger('db')

/** The main process of a running Postgres. */
export type Postmaster = {
  /** Undefined when it runs in a PID namespace that this process does not see. */
  pid: number | undefined
  /** The folder of its Unix socket. */
  socketFolder: string
  /** Set when this process started it. */
  child?: ChildProcess
}

/** The interval of log lines while Postgres is not ready. */
const REMIND_MS = 30_000
const ORPHAN_GRACE_MS = 500
const FAST_STOP_MS = 8_000
const HARD_STOP_MS = 6_000

const SETTINGS = {
  listen_addresses: '',
  unix_socket_permissions: '0700',
  // Enough for sixteen servers and a few tools.
  max_connections: '500',
  shared_buffers: '128MB',
  // Some containers have a small /dev/shm.
  dynamic_shared_memory_type: 'mmap',
  // Log only starts, stops and crashes. Clients receive the errors of statements.
  log_min_messages: 'log',
  log_checkpoints: 'off',
  // Each new WAL file stops all writes while it is filled and synchronized: 60 to 160 ms, measured.
  // Kept files are used again in the next burst.
  min_wal_size: '256MB',
}

/** Settings that older versions reject. io_uring is not available in every container. */
const SETTINGS_SINCE_18 = { io_method: 'sync' }

/**
 * Finds the postmaster of the cluster among the processes that this one sees, ready or not. Changes
 * nothing.
 */
export function findPostmaster(cluster: Cluster): (Postmaster & { pid: number }) | undefined {
  const { pid: ownPid, socketFolder } = readPidFile(cluster)
  // The file has the pid that the postmaster sees. Only a container has another one.
  const isIt = (pid: number) => readOwnPid(pid) === ownPid
  const pid =
    isClusterProcess(ownPid, cluster) && isIt(ownPid)
      ? ownPid
      : listClusterProcesses(cluster).find(isIt)
  return pid === undefined ? undefined : { pid, socketFolder }
}

/**
 * Returns the ready postmaster of the cluster. Undefined if none listens where this process looks.
 * Waits as long as a recovery takes, until the signal aborts the wait.
 */
export async function attachPostmaster(
  cluster: Cluster,
  signal?: AbortSignal,
  remind = createReminder(cluster),
): Promise<Postmaster | undefined> {
  for (;;) {
    const socketFolder = await findListening(cluster)
    if (socketFolder === undefined) return undefined
    // It accepts connections before it is ready, such as during a crash recovery.
    for (let polls = 0; polls < 10; polls++) {
      if (readPidFile(cluster).isReady) {
        return { pid: findPostmaster(cluster)?.pid, socketFolder }
      }
      remind()
      await sleep(20, undefined, { signal })
    }
  }
}

/**
 * Returns the ready postmaster of the cluster. Starts one when none is running. `settings` override
 * the defaults. Call it under the lock of `home`. The signal stops one that is not ready yet.
 * Throws an UnreachableError while processes of Postgres run that this one neither reaches nor
 * sees.
 */
export async function ensurePostmaster(
  cluster: Cluster,
  settings: Readonly<Record<string, string>> = {},
  signal?: AbortSignal,
): Promise<Postmaster> {
  const found = await attachOrLock(cluster, signal)
  if (!('fd' in found)) return found
  try {
    return await startPostmaster(cluster, settings, found, signal)
  } finally {
    found.release()
  }
}

/**
 * Stops the postmaster. Resolves when it is gone. After 8 s it stops without a checkpoint. Leaves a
 * postmaster alone that this process does not see.
 */
export async function stopPostmaster(cluster: Cluster): Promise<void> {
  const postmaster = findPostmaster(cluster)
  if (!postmaster) return
  const { pid } = postmaster
  const isGone = await stopProcess(
    name => sendSignal(pid, name),
    () => !isClusterProcess(pid, cluster),
  )
  if (!isGone) throw new Error(`Postgres (pid ${pid}) did not stop.`)
  removeSocketFolder(cluster)
}

/** Stops a Postgres, after 8 s without a checkpoint. Resolves to whether it is gone. */
async function stopProcess(
  send: (name: 'SIGINT' | 'SIGQUIT') => void,
  isGone: () => boolean,
): Promise<boolean> {
  send('SIGINT')
  if (await waitUntil(isGone, FAST_STOP_MS)) return true
  send('SIGQUIT')
  return waitUntil(isGone, HARD_STOP_MS)
}

/**
 * Stops a postmaster whose folder was moved, because it finds its libraries no more. Nobody may use
 * it.
 */
export async function stopIfMoved(cluster: Cluster): Promise<void> {
  if (!findPostmaster(cluster)) return
  const { data } = readPidFile(cluster)
  if (data === '') return
  const [found, own] = [statSync(data, { throwIfNoEntry: false }), statSync(cluster.data)]
  if (found?.ino !== own.ino || found.dev !== own.dev) await stopPostmaster(cluster)
}

/**
 * Returns the running postmaster once it is ready, or else the lock for a new one. Kills backends
 * that have outlived their postmaster, because a new one needs exclusive use of the files.
 */
async function attachOrLock(
  cluster: Cluster,
  signal: AbortSignal | undefined,
): Promise<Postmaster | ClusterLock> {
  const remind = createReminder(cluster)
  let lastSeenMs = performance.now()
  let lastOwnMs = lastSeenMs
  for (;;) {
    const running = await attachPostmaster(cluster, signal, remind)
    if (running) return running
    const pids = listClusterProcesses(cluster)
    const lock = tryLockCluster(cluster.data)
    if (lock && pids.length === 0) return lock
    // A Postgres that another program has started holds no lock.
    lock?.release()
    const nowMs = performance.now()
    // The kernel releases the lock of a process last, when it is no longer seen in the folder.
    if (pids.length > 0) lastOwnMs = nowMs
    else if (nowMs - lastOwnMs > ORPHAN_GRACE_MS) throw new UnreachableError(cluster)
    if (findPostmaster(cluster)) lastSeenMs = nowMs
    if (nowMs - lastSeenMs > ORPHAN_GRACE_MS) for (const pid of pids) sendSignal(pid, 'SIGKILL')
    remind()
    await sleep(20, undefined, { signal })
  }
}

/** Removes the socket that a killed Postgres has left. Returns the folder for a new one. */
function clearSocketFolder(cluster: Cluster): string {
  const folder = ensureSocketFolder(cluster)
  for (const name of [SOCKET_FILE, `${SOCKET_FILE}.lock`])
    rmSync(join(folder, name), { force: true })
  return folder
}

/** Removes what a dead postmaster has left, and starts a new one, which inherits the lock. */
async function startPostmaster(
  cluster: Cluster,
  more: Readonly<Record<string, string>>,
  lock: ClusterLock,
  signal: AbortSignal | undefined,
): Promise<Postmaster> {
  signal?.throwIfAborted()
  rmSync(join(cluster.data, 'postmaster.pid'), { force: true })
  const settings = {
    ...SETTINGS,
    ...(Number(cluster.major) >= 18 && SETTINGS_SINCE_18),
    unix_socket_directories: `"${clearSocketFolder(cluster).replaceAll('"', '""')}"`,
    ...more,
    cluster_name: cluster.clusterName,
  }
  const launched = await launch(
    cluster,
    'postgres',
    [
      ...['-D', cluster.data],
      ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ],
    { stdin: lock.fd },
  )
  // From here on, the lock ends with Postgres alone.
  lock.release()
  const { child } = launched
  const remind = createReminder(cluster)
  for (;;) {
    const { pid, socketFolder, isReady } = readPidFile(cluster)
    if (pid === child.pid && isReady) return { pid, socketFolder, child }
    if (launched.ended()) throw new Error(`Postgres did not start: ${launched.explain()}`)
    if (signal?.aborted) {
      // It may still recover from a crash.
      await stopProcess(
        name => child.kill(name),
        () => launched.ended() !== undefined,
      )
      signal.throwIfAborted()
    }
    remind()
    await sleep(10)
  }
}

/** The file of a postmaster, with its data folder under the path at which it has started. */
type PidFile = { pid: number; data: string; socketFolder: string; isReady: boolean }

/**
 * Postgres writes line by line: the pid in line 1, its folder in 2, the socket's folder in 5, the
 * status in 8.
 */
function readPidFile({ data }: Cluster): PidFile {
  const lines = readLines(join(data, 'postmaster.pid'))
  return {
    pid: Number(lines[0]) || 0,
    data: lines[1] ?? '',
    socketFolder: lines[4] ?? '',
    isReady: lines[7]?.trim() === 'ready',
  }
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n')
  } catch (error) {
    if (isOutOfFiles(error)) throw error
    return []
  }
}

/**
 * Returns a function that says at intervals that a Postgres is not ready. The wait has no limit: an
 * end of this process could end Postgres with it, and an interrupted recovery starts over.
 */
function createReminder({ log: file }: Cluster): () => void {
  const startedMs = performance.now()
  let remindedMs = startedMs
  return () => {
    const nowMs = performance.now()
    if (nowMs - remindedMs < REMIND_MS) return
    remindedMs = nowMs
    log.warning('Postgres is not ready after {seconds} s, and may be recovering. See {file}.', {
      seconds: Math.round((nowMs - startedMs) / 1000),
      file,
    })
  }
}

/** Postgres runs or is about to end, and this process does not see it. Says what to do. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError'

  constructor({ home, log }: Cluster) {
    super(
      `Another program uses ${home}, and its Postgres does not answer here. If a server in a container uses this folder, run the command there: docker exec CONTAINER tidings … Otherwise, stop that program first. The log of Postgres is ${log}.`,
    )
  }
}

/** Returns the connection URL for clients. `connect` takes the folder of the socket from `host`. */
export function toUrl({ role, password }: Credentials, { socketFolder }: Postmaster): string {
  return `postgres://${role}:${password}@localhost/postgres?host=${encodeURIComponent(socketFolder)}`
}

async function waitUntil(condition: () => boolean, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs
  while (!condition()) {
    if (performance.now() > deadline) return false
    await sleep(10)
  }
  return true
}
