import {
  chmodSync,
  closeSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  mkdirSync,
  openSync,
  statSync,
} from 'node:fs'
import { dirname } from 'node:path'

// Files with secrets or backups. They are private, belong to the right user, and survive a loss of
// power.

/** A user and a group of the operating system. */
export interface Owner {
  uid: number
  gid: number
}

const ROOT = 0

/**
 * Returns the first owner of the paths other than root. Undefined if there is none, or if this
 * process is not root, because only root can give files to others.
 */
export function findOwner(...paths: readonly string[]): Owner | undefined {
  if (process.getuid?.() !== ROOT) return undefined
  const owner = paths
    .map(path => statSync(path, { throwIfNoEntry: false }))
    .find(stat => stat !== undefined && stat.uid !== ROOT)
  return owner && { uid: owner.uid, gid: owner.gid }
}

/** Gives an open file the mode 0600, whatever the umask is, and the owner if there is one. */
export function makePrivate(fd: number, owner: Owner | undefined): void {
  fchmodSync(fd, 0o600)
  try {
    if (owner) fchownSync(fd, owner.uid, owner.gid)
  } catch (error) {
    // The root of a container may lack the right, and is then the user of the server itself.
    if (!NO_OWNER.has(toCode(error))) throw error
  }
}

const NO_OWNER = new Set(['EPERM', 'EINVAL'])

/** Waits until the names in a folder are on disk. */
export function syncFolder(folder: string): void {
  const fd = openSync(folder, 'r')
  try {
    fsyncSync(fd)
  } catch (error) {
    // Some file systems, such as those of network disks, write names at once.
    if (!NO_SYNC.has(toCode(error))) throw error
  } finally {
    closeSync(fd)
  }
}

const NO_SYNC = new Set(['EINVAL', 'ENOTSUP', 'EOPNOTSUPP'])

function toCode(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? ''
}

/**
 * Creates a folder with its missing parents, and waits until their names are on disk. They get
 * `mode` whatever the umask is.
 */
export function ensureFolder(path: string, mode?: number): void {
  const first = mkdirSync(path, { recursive: true })
  if (first === undefined) return
  for (let made = path; made.length >= first.length; made = dirname(made)) {
    if (mode !== undefined) chmodSync(made, mode)
    syncFolder(dirname(made))
  }
}
