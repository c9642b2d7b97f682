import { chmodSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'

export type FileLock = { release(): void }

// Garbage collection of a handle closes its file and releases the lock.
const held = new Set<DatabaseSync>()

/**
 * Locks the file at `path`, or returns undefined when another process or caller holds it. Many can
 * hold it shared, one exclusively. The kernel releases it at the end of the process. Nothing else may
 * open the file: POSIX drops the locks at any close of it.
 */
export function tryLock(path: string, kind: 'shared' | 'exclusive'): FileLock | undefined {
  const file = new DatabaseSync(path)
  closeToOthers(path)
  try {
    file.exec(kind === 'exclusive' ? 'begin exclusive' : 'begin; select 1 from sqlite_schema')
  } catch (error) {
    file.close()
    if (error instanceof Error && error.message.includes('locked')) return undefined
    throw error
  }
  held.add(file)
  return {
    release() {
      if (held.delete(file)) file.close()
    },
  }
}

/** Runs `work` while holding `path` exclusively; throws when it does not come free in time. */
export async function withLock<T>(
  path: string,
  timeoutMs: number,
  work: () => Promise<T>,
): Promise<T> {
  const deadline = performance.now() + timeoutMs
  let lock = tryLock(path, 'exclusive')
  while (!lock) {
    if (performance.now() > deadline)
      throw new Error(
        `${path} is still locked after ${timeoutMs / 1000} s: another process starts Postgres there, or carries its data over to another version. Try again when it is done`,
      )
    await sleep(20)
    lock = tryLock(path, 'exclusive')
  }
  try {
    return await work()
  } finally {
    lock.release()
  }
}

/** Makes the file private: a user who can read it could also lock it and block every start. */
function closeToOthers(path: string): void {
  const { mode, uid } = statSync(path)
  if ((mode & 0o077) !== 0 && uid === process.getuid?.()) chmodSync(path, 0o600)
}
