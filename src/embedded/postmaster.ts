import type { ChildProcess } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SUPERUSER, type Cluster } from './cluster.ts'
import { launch } from './launch.ts'
import { listClusterProcesses, sendSignal, isClusterProcess } from './processes.ts'
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** The first process of a running Postgres. `child` when this process started it. */
export type Postmaster = { pid: number; port: number; ready: boolean; child?: ChildProcess }

export const HOST = '127.0.0.1'
/** Longer than the recovery after a crash takes. */
const READY_TIMEOUT_MS = 120_000
const ORPHAN_GRACE_MS = 500
const FAST_STOP_MS = 8_000
const HARD_STOP_MS = 6_000

const SETTINGS = {
  listen_addresses: HOST,
  unix_socket_directories: '',
  // Enough for sixteen servers and some tools.
  max_connections: '500',
  shared_buffers: '128MB',
  // Not every container has a large /dev/shm.
  dynamic_shared_memory_type: 'mmap',
  // The log is for starts, stops and crashes. Errors of statements go to the client.
  log_min_messages: 'log',
  log_checkpoints: 'off',
}

/** Settings that older versions refuse. io_uring is not available in every container. */
const SETTINGS_SINCE_18 = { io_method: 'sync' }

/** The postmaster that runs on the cluster, ready or not. It only reads. */
export function findPostmaster(cluster: Cluster): Postmaster | undefined {
  // Lines 1, 4 and 8: pid, port and status. Written by Postgres, line by line.
  const lines = readPidFile(cluster)
  const pid = Number(lines[0])
  if (!(pid > 0) || !isClusterProcess(pid, cluster)) return undefined
  return { pid, port: Number(lines[3]), ready: lines[7]?.trim() === 'ready' }
}

/**
 * Returns the ready postmaster of the cluster: the running one, else a new one on the port of
 * `choosePort`, with `settings` over the common ones. Call it under the lock.
 */
export async function ensurePostmaster(
  cluster: Cluster,
  choosePort: () => Promise<number>,
  settings: Readonly<Record<string, string>> = {},
): Promise<Postmaster> {
  return (await awaitPostmaster(cluster)) ?? startPostmaster(cluster, await choosePort(), settings)
}

/** Stops the postmaster; resolves when it is gone. A slow one is stopped without a checkpoint. */
export async function stopPostmaster(cluster: Cluster): Promise<void> {
  const postmaster = findPostmaster(cluster)
  if (!postmaster) return
  const isGone = (): boolean => !isClusterProcess(postmaster.pid, cluster)
  sendSignal(postmaster.pid, 'SIGINT')
  if (await waitUntil(isGone, FAST_STOP_MS)) return
  sendSignal(postmaster.pid, 'SIGQUIT')
  if (await waitUntil(isGone, HARD_STOP_MS)) return
  throw new Error(`Postgres (pid ${postmaster.pid}) does not stop`)
}

/**
 * Waits until a starting postmaster is ready, or a stopping one is gone. Kills backends that outlived
 * theirs and removes a stale postmaster.pid: another postmaster may open the files only when no
 * process works on them.
 */
async function awaitPostmaster(cluster: Cluster): Promise<Postmaster | undefined> {
  const begun = performance.now()
  let lastSeen = begun
  for (;;) {
    const postmaster = findPostmaster(cluster)
    if (postmaster?.ready) return postmaster
    if (postmaster) lastSeen = performance.now()
    const workers = listClusterProcesses(cluster)
    if (workers.length === 0) break
    if (performance.now() - lastSeen > ORPHAN_GRACE_MS)
      for (const pid of workers) sendSignal(pid, 'SIGKILL')
    if (performance.now() - begun > READY_TIMEOUT_MS) throw new Error(toSlowMessage(cluster))
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
  const begun = performance.now()
  for (;;) {
    const postmaster = findPostmaster(cluster)
    if (postmaster?.ready) return { ...postmaster, child: launched.child }
    if (!postmaster && launched.ended()) {
      throw new Error(`Postgres did not start: ${launched.explain()}`)
    }
    // Left alone: a recovery that is interrupted begins again.
    if (performance.now() - begun > READY_TIMEOUT_MS) throw new Error(toSlowMessage(cluster))
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
  return `Postgres is still not ready after ${READY_TIMEOUT_MS / 1000} s (log: ${cluster.log})`
}

/** The URL for clients. */
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

/** Returns the port in `file` while it is free, else a random free one, which is written to `file`. */
export async function chooseFreePort(file: string, host: string): Promise<number> {
  const kept = readPort(file)
  if (kept !== undefined && (await isFree(kept, host))) return kept
  const port = await findFreePort(host)
  writeFileSync(file, `${port}\n`)
  return port
}

/**
 * Returns a random free port below 32768. Higher ones are given to outgoing connections, which could take the port while
 * Postgres is down.
 */
export async function findFreePort(host: string): Promise<number> {
  for (let tries = 0; tries < 50; tries++) {
    const port = randomInt(20_000, 32_000)
    if (await isFree(port, host)) return port
  }
  throw new Error(`No free port on ${host}`)
}

/** Returns the port in `file`. */
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
