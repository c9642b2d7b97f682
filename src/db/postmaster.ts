import type { ChildProcess } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SUPERUSER, type Cluster } from './cluster.ts'
import { launch } from './launch.ts'
import { listWorkers, signal, worksOn } from './processes.ts'

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
  // For sixteen servers, and whoever looks on.
  max_connections: '500',
  shared_buffers: '128MB',
  // A large /dev/shm is not to be had in every container.
  dynamic_shared_memory_type: 'mmap',
  // Its log is for starts, stops and crashes. An error is the business of the client that made it.
  log_min_messages: 'log',
  log_checkpoints: 'off',
}

/** What older ones do not know. Nor is io_uring to be had in every container. */
const SETTINGS_SINCE_18 = { io_method: 'sync' }

/** The postmaster that runs on the cluster, ready or not. It only reads. */
export function findPostmaster(cluster: Cluster): Postmaster | undefined {
  // Lines 1, 4 and 8: pid, port and status. Written by Postgres, line by line.
  const lines = readPidFile(cluster)
  const pid = Number(lines[0])
  if (!(pid > 0) || !worksOn(pid, cluster)) return undefined
  return { pid, port: Number(lines[3]), ready: lines[7]?.trim() === 'ready' }
}

/**
 * The postmaster of the cluster, ready: the one that runs, else a new one on the port that
 * `choosePort` gives, with `settings` over those that all have. Call it under the lock.
 */
export async function ensurePostmaster(
  cluster: Cluster,
  choosePort: () => Promise<number>,
  settings: Readonly<Record<string, string>> = {},
): Promise<Postmaster> {
  return (await settle(cluster)) ?? startPostmaster(cluster, await choosePort(), settings)
}

/** Ends the postmaster and returns when it is gone. At worst, without a checkpoint. */
export async function stopPostmaster(cluster: Cluster): Promise<void> {
  const postmaster = findPostmaster(cluster)
  if (!postmaster) return
  const isGone = (): boolean => !worksOn(postmaster.pid, cluster)
  signal(postmaster.pid, 'SIGINT')
  if (await until(isGone, FAST_STOP_MS)) return
  signal(postmaster.pid, 'SIGQUIT')
  if (await until(isGone, HARD_STOP_MS)) return
  throw new Error(`Postgres (pid ${postmaster.pid}) does not stop`)
}

/**
 * Waits until a postmaster that starts is ready, or one that stops is gone. Backends that outlive
 * theirs are ended, and what is left of postmaster.pid removed: only when nothing works on the
 * files any more may another postmaster open them.
 */
async function settle(cluster: Cluster): Promise<Postmaster | undefined> {
  const begun = performance.now()
  let lastSeen = begun
  for (;;) {
    const postmaster = findPostmaster(cluster)
    if (postmaster?.ready) return postmaster
    if (postmaster) lastSeen = performance.now()
    const workers = listWorkers(cluster)
    if (workers.length === 0) break
    if (performance.now() - lastSeen > ORPHAN_GRACE_MS)
      for (const pid of workers) signal(pid, 'SIGKILL')
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
    cluster_name: cluster.mark,
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

/** Where clients reach it. */
export function toUrl({ password }: Cluster, { port }: Postmaster): string {
  return `postgres://${SUPERUSER}:${password}@${HOST}:${port}/postgres`
}

async function until(condition: () => boolean, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs
  while (!condition()) {
    if (performance.now() > deadline) return false
    await sleep(10)
  }
  return true
}
