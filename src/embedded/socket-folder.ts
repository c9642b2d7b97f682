import { chmodSync, chownSync, lstatSync, mkdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Cluster } from './cluster.ts'

/** Postgres names its socket by its port, also when it does not listen on TCP. */
export const SOCKET_FILE = '.s.PGSQL.5432'
/** The longest path of a Unix socket in bytes. Linux allows more than macOS and the BSDs. */
const MAX_PATH_BYTES = process.platform === 'linux' ? 107 : 103
/** The same folder for every process, unlike TMPDIR and XDG_RUNTIME_DIR. */
const FALLBACK_PARENT = '/tmp'

/**
 * Returns the folder for the socket of a cluster: the data folder, which only the OS user of
 * Postgres may enter. If that path is too long for a socket, returns a folder with mode 0700 in
 * /tmp instead, and creates it. Throws when that folder belongs to another user.
 */
export function ensureSocketFolder({ data, clusterName, osUser }: Cluster): string {
  if (Buffer.byteLength(join(data, SOCKET_FILE)) <= MAX_PATH_BYTES) return data
  const folder = join(FALLBACK_PARENT, clusterName)
  try {
    mkdirSync(folder, 0o700)
  } catch (error) {
    if ((error as { code?: string }).code !== 'EEXIST') throw error
  }
  const found = lstatSync(folder)
  const own = [process.getuid?.(), osUser?.uid]
  if (!found.isDirectory() || !own.includes(found.uid)) throw new Error(toTakenMessage(folder))
  chmodSync(folder, 0o700)
  if (osUser) chownSync(folder, osUser.uid, osUser.gid)
  return folder
}

/** Removes the folder in /tmp of a stopped cluster, if it has one. */
export function removeSocketFolder({ clusterName }: Cluster): void {
  try {
    rmdirSync(join(FALLBACK_PARENT, clusterName))
  } catch {
    // The socket is in the data folder.
  }
}

function toTakenMessage(folder: string): string {
  return `${folder} belongs to another user, and the path of DATA_DIR is too long for a socket. Choose a shorter DATA_DIR.`
}
