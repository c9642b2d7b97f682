import type { ChildProcess } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Cluster, Credentials } from './cluster.ts'
import { launch } from './launch.ts'
import { listClusterProcesses, sendSignal, isClusterProcess } from './processes.ts'
import { ensureSocketFolder, removeSocketFolder, SOCKET_FILE } from './socket-folder.ts'

/** The main process of a running Postgres. */
export type Postmaster = {
  pid: number
  /** The folder of its Unix socket. Empty for the Postgres of Tidings 0.1.0, which used TCP. */
  socketFolder: string
  ready: boolean
  /** Set when this process started it. */
  child?: ChildProcess
}

/** Longer than a crash recovery takes. */
const READY_TIMEOUT_MS = 120_000
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
}

/** Settings that older versions reject. io_uring is not available in every container. */
const SETTINGS_SINCE_18 = { io_method: 'sync' }

/** Finds the postmaster that runs on the cluster, ready or not. It changes nothing. */
export function findPostmaster(cluster: Cluster): Postmaster | undefined {
  // Postgres writes line by line: the pid in line 1, the socket's folder in 5, the status in 8.
  const lines = readPidFile(cluster)
  const pid = Number(lines[0])
  if (!(pid > 0) || !isClusterProcess(pid, cluster)) return undefined
  return { pid, socketFolder: lines[4] ?? '', ready: lines[7]?.trim() === 'ready' }
}

/**
 * Returns the ready postmaster of the cluster. Starts one when none is running. `settings` override
 * the defaults. Call it under the lock.
 */
export async function ensurePostmaster(
  cluster: Cluster,
  settings: Readonly<Record<string, string>> = {},
): Promise<Postmaster> {
  const running = await awaitPostmaster(cluster)
  if (running?.socketFolder) return running
  // A killed Tidings 0.1.0 has left it, and only TCP reaches it.
  if (running) await stopPostmaster(cluster)
  return startPostmaster(cluster, settings)
}

/** Stops the postmaster. Resolves when it is gone. After 8 s it stops without a checkpoint. */
export async function stopPostmaster(cluster: Cluster): Promise<void> {
  const postmaster = findPostmaster(cluster)
  if (!postmaster) return
  const isGone = (): boolean => !isClusterProcess(postmaster.pid, cluster)
  sendSignal(postmaster.pid, 'SIGINT')
  if (!(await waitUntil(isGone, FAST_STOP_MS))) {
    sendSignal(postmaster.pid, 'SIGQUIT')
    if (!(await waitUntil(isGone, HARD_STOP_MS))) {
      throw new Error(`Postgres (pid ${postmaster.pid}) did not stop.`)
    }
  }
  removeSocketFolder(cluster)
}

/**
 * Waits until a starting postmaster is ready, or a stopping one is gone. Kills orphaned backends
 * and removes a stale postmaster.pid, because a new postmaster needs exclusive use of the files.
 */
async function awaitPostmaster(cluster: Cluster): Promise<Postmaster | undefined> {
  const startedMs = performance.now()
  let lastSeenMs = startedMs
  for (;;) {
    const postmaster = findPostmaster(cluster)
    if (postmaster?.ready) return postmaster
    if (postmaster) lastSeenMs = performance.now()
    const pids = listClusterProcesses(cluster)
    if (pids.length === 0) break
    if (performance.now() - lastSeenMs > ORPHAN_GRACE_MS)
      for (const pid of pids) sendSignal(pid, 'SIGKILL')
    if (performance.now() - startedMs > READY_TIMEOUT_MS) throw new Error(toSlowMessage(cluster))
    await sleep(20)
  }
  rmSync(join(cluster.data, 'postmaster.pid'), { force: true })
  return undefined
}

/** Removes the socket that a killed Postgres has left. Returns the folder for a new one. */
function clearSocketFolder(cluster: Cluster): string {
  const folder = ensureSocketFolder(cluster)
  for (const name of [SOCKET_FILE, `${SOCKET_FILE}.lock`])
    rmSync(join(folder, name), { force: true })
  return folder
}

async function startPostmaster(
  cluster: Cluster,
  more: Readonly<Record<string, string>>,
): Promise<Postmaster> {
  const settings = {
    ...SETTINGS,
    ...(Number(cluster.major) >= 18 && SETTINGS_SINCE_18),
    unix_socket_directories: `"${clearSocketFolder(cluster).replaceAll('"', '""')}"`,
    ...more,
    cluster_name: cluster.clusterName,
  }
  const launched = await launch(cluster, 'postgres', [
    ...['-D', cluster.data],
    ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ])
  const startedMs = performance.now()
  for (;;) {
    const postmaster = findPostmaster(cluster)
    if (postmaster?.ready) return { ...postmaster, child: launched.child }
    if (!postmaster && launched.ended()) {
      throw new Error(`Postgres did not start: ${launched.explain()}`)
    }
    // A slow Postgres keeps running, because an interrupted recovery would start over.
    if (performance.now() - startedMs > READY_TIMEOUT_MS) throw new Error(toSlowMessage(cluster))
    await sleep(10)
  }
}

function readPidFile(cluster: Cluster): string[] {
  try {
    return readFileSync(join(cluster.data, 'postmaster.pid'), 'utf8').split('\n')
  } catch {
    return []
  }
}

function toSlowMessage(cluster: Cluster): string {
  return `Postgres was not ready within ${READY_TIMEOUT_MS / 1000} s. See ${cluster.log}.`
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
