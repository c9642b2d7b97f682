import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { toReason } from '../../base/errors.ts'
import { once } from '../../base/functions.ts'
import { lockFile } from '../../base/platform.ts'

/** The right to start Postgres on a cluster, and to remove what a dead one has left. */
export interface ClusterLock {
  /** The locked file. Each process that inherits it holds the lock until it ends. */
  fd: number
  /** Gives the lock up in this process. Postgres keeps it if it has inherited the file. */
  release(): void
}

/**
 * Locks the cluster for a new postmaster. Returns undefined while another one holds the lock, with
 * or without its postmaster: in any container or namespace of this kernel, under any path.
 */
export function tryLockCluster(data: string): ClusterLock | undefined {
  const fd = openLockFile(data)
  try {
    if (lock(fd, data, 'exclusive')) return { fd, release: once(() => closeSync(fd)) }
  } catch (error) {
    closeSync(fd)
    throw error
  }
  closeSync(fd)
  return undefined
}

/** Returns true while a process of Postgres holds the lock of the cluster. */
export function isClusterLocked(data: string): boolean {
  const fd = openLockFile(data)
  try {
    return !lock(fd, data, 'shared')
  } finally {
    closeSync(fd)
  }
}

/**
 * Opens the file that is locked. Each cluster has it from its first moment on, and Postgres never
 * replaces it. NFS requires write access for an exclusive lock.
 */
function openLockFile(data: string): number {
  return openSync(join(data, 'PG_VERSION'), 'r+')
}

function lock(fd: number, data: string, kind: 'shared' | 'exclusive'): boolean {
  try {
    return lockFile(fd, kind)
  } catch (error) {
    throw new Error(
      `The disk of ${data} cannot lock files (${toReason(error)}). Choose a DATA_DIR on a local disk.`,
      { cause: error },
    )
  }
}
