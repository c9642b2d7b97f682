import { accessSync, chmodSync, constants, lstatSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'

export type FileLock = { release(): void }

// Garbage collection of a handle would close its file and release the lock.
const held = new Set<DatabaseSync>()

/**
 * Locks the file at `path`. Returns undefined when another process or caller holds a conflicting
 * lock. Throws when the disk is full or read-only. The kernel releases the lock when the process
 * ends. Nothing else may open the file, because POSIX releases the locks of a process when it
 * closes any handle of the file.
 */
export function tryLock(path: string, kind: 'shared' | 'exclusive'): FileLock | undefined {
  const file = openFile(path)
  try {
    makePrivate(path)
    file.exec(kind === 'exclusive' ? 'begin exclusive' : 'begin; select 1 from sqlite_schema')
  } catch (error) {
    file.close()
    const { message } = error as Error
    if (message.includes('locked')) return undefined
    if (message.includes('disk is full')) {
      throw new Error(`The disk of ${dirname(path)} is full. Free some space, and try again.`)
    }
    throw error
  }
  held.add(file)
  return {
    release() {
      if (held.delete(file)) file.close()
    },
  }
}

/** Opens a file that can be locked. SQLite also opens one that cannot be, and grants any lock. */
function openFile(path: string): DatabaseSync {
  const folder = dirname(path)
  try {
    accessSync(folder, constants.W_OK)
    const found = lstatSync(path, { throwIfNoEntry: false })
    // SQLite would follow a link, and create or lock its target.
    if (found && !found.isFile()) throw new Error(toIrregularMessage(path))
    if (found) accessSync(path, constants.W_OK)
    return new DatabaseSync(path)
  } catch (error) {
    const { code = '' } = error as { code?: string }
    if (code === 'EROFS')
      throw new Error(
        `${folder} is read-only here. Every command locks files in it: mount it writable.`,
        { cause: error },
      )
    if (code !== 'EACCES') throw error
    throw new Error(`${folder} cannot be written. Run the command as the user of the server.`, {
      cause: error,
    })
  }
}

/**
 * Runs `work` with an exclusive lock on `path`. Throws when the lock is not free in time, or when
 * the signal aborts the wait for it.
 */
export async function withLock<T>(
  path: string,
  timeoutMs: number,
  work: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const deadline = performance.now() + timeoutMs
  let lock = tryLock(path, 'exclusive')
  while (!lock) {
    signal?.throwIfAborted()
    if (performance.now() > deadline)
      throw new Error(
        `${path} is still locked after ${timeoutMs / 1000} s. Another process is starting or upgrading Postgres there. Try again when it has finished.`,
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

/** Sets mode 0600, because any user who can read the file could lock it and block every start. */
function makePrivate(path: string): void {
  const { mode, uid } = lstatSync(path)
  if ((mode & 0o077) !== 0 && uid === process.getuid?.()) chmodSync(path, 0o600)
}

function toIrregularMessage(path: string): string {
  return `${path} is a link or no file. Tidings locks only a file of its own. Remove it, and try again.`
}
