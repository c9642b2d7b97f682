import { chmodSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'

export type FileLock = { release(): void }

// A handle that is collected closes its file, and with it the lock.
const held = new Set<DatabaseSync>()

/**
 * Locks the file at `path` against every other process and caller, or returns undefined when it is
 * taken. Many can hold it shared, one exclusively. Whatever ends the process releases it: SQLite's
 * locks are the kernel's. Nobody else may open the file: POSIX drops the locks at any close of it.
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

/** Whoever may read the file may lock it, too, and hold up every start. */
function closeToOthers(path: string): void {
  const { mode, uid } = statSync(path)
  if ((mode & 0o077) !== 0 && uid === process.getuid?.()) chmodSync(path, 0o600)
}
