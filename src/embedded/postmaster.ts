import type { ChildProcess } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SUPERUSER, type Cluster } from './cluster.ts'
import { launch } from './launch.ts'
import { listClusterProcesses, sendSignal, isClusterProcess } from './processes.ts'
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** The main process of a running Postgres. `child` is set when this process started it. */
export type Postmaster = { pid: number; port: number; ready: boolean; child?: ChildProcess }

export const HOST = '127.0.0.1'
/** Longer than a crash recovery takes. */
const READY_TIMEOUT_MS = 120_000
const ORPHAN_GRACE_MS = 500
const FAST_STOP_MS = 8_000
const HARD_STOP_MS = 6_000

const SETTINGS = {
  listen_addresses: HOST,
  unix_socket_directories: '',
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
  // Postgres writes line by line: the pid in line 1, the port in line 4, the status in line 8.
  const lines = readPidFile(cluster)
  const pid = Number(lines[0])
  if (!(pid > 0) || !isClusterProcess(pid, cluster)) return undefined
  return { pid, port: Number(lines[3]), ready: lines[7]?.trim() === 'ready' }
}

/**
 * Returns the ready postmaster of the cluster. Starts one on the port of `choosePort` when none is
 * running. `settings` override the defaults. Call it under the lock.
 */
export async function ensurePostmaster(
  cluster: Cluster,
  choosePort: () => Promise<number>,
  settings: Readonly<Record<string, string>> = {},
): Promise<Postmaster> {
  return (await awaitPostmaster(cluster)) ?? startPostmaster(cluster, await choosePort(), settings)
}

/** Stops the postmaster. Resolves when it is gone. After 8 s it stops without a checkpoint. */
export async function stopPostmaster(cluster: Cluster): Promise<void> {
  const postmaster = findPostmaster(cluster)
  if (!postmaster) return
  const isGone = (): boolean => !isClusterProcess(postmaster.pid, cluster)
  sendSignal(postmaster.pid, 'SIGINT')
  if (await waitUntil(isGone, FAST_STOP_MS)) return
  sendSignal(postmaster.pid, 'SIGQUIT')
  if (await waitUntil(isGone, HARD_STOP_MS)) return
  throw new Error(`Postgres (pid ${postmaster.pid}) did not stop.`)
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

async function startPostmaster(
  cluster: Cluster,
  port: number,
  more: Readonly<Record<string, string>>,
): Promise<Postmaster> {
  const settings = {
    ...SETTINGS,
    ...(Number(cluster.major) >= 18 && SETTINGS_SINCE_18),
    ...more,
    port: String(port),
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

/** Returns the connection URL for clients. */
export function toUrl({ password }: Cluster, { port }: Postmaster): string {
  return `postgres://${SUPERUSER}:${password}@${HOST}:${port}/postgres`
}

async function waitUntil(condition: () => boolean, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs
  while (!condition()) {
    if (performance.now() > deadline) return false
    await sleep(10)
  }
  return true
}

/** Returns the port in `file` if it is free. Otherwise writes a random free port to `file`. */
export async function chooseFreePort(file: string, host: string): Promise<number> {
  const saved = readPort(file)
  if (saved !== undefined && (await isFree(saved, host))) return saved
  const port = await findFreePort(host)
  writeFileSync(file, `${port}\n`)
  return port
}

/**
 * Returns a random free port below 32768. Outgoing connections use higher ports, and could take the
 * port while Postgres is down.
 */
export async function findFreePort(host: string): Promise<number> {
  for (let tries = 0; tries < 50; tries++) {
    const port = randomInt(20_000, 32_000)
    if (await isFree(port, host)) return port
  }
  throw new Error(`No free port was found on ${host}.`)
}

/** Returns the port in `file`. Undefined when there is none. */
export function readPort(file: string): number | undefined {
  try {
    return Number(readFileSync(file, 'utf8')) || undefined
  } catch {
    return undefined
  }
}

function isFree(port: number, host: string): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, host, () => server.close(() => resolve(true)))
  })
}
