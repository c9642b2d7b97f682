import { chmodSync, chownSync, lstatSync, mkdirSync, readFileSync, rmdirSync } from 'node:fs'
import { rmSync, statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { MAX_SOCKET_PATH_BYTES } from '../../base/database-url.ts'
import type { Cluster } from './cluster.ts'

/** Postgres names its socket by its port, also when it does not listen on TCP. */
export const SOCKET_FILE = '.s.PGSQL.5432'
/** The same folder for every process, unlike TMPDIR and XDG_RUNTIME_DIR. */
const FALLBACK_PARENT = '/tmp'
/**
 * The file in a folder in /tmp that identifies the data folder. Namespaces that share /tmp can have
 * different data folders at the same path.
 */
const OWNER_FILE = 'data-folder'

/**
 * Returns the folder for the socket of a cluster: the data folder, which only the OS user of
 * Postgres may enter. If that path is too long for a socket, returns a folder with mode 0700 in
 * /tmp instead, and creates it. Throws when that folder belongs to another user.
 */
export function ensureSocketFolder(cluster: Cluster): string {
  const { osUser } = cluster
  const folder = toSocketFolder(cluster)
  if (folder === cluster.data) return folder
  try {
    mkdirSync(folder, 0o700)
  } catch (error) {
    if (toCode(error) !== 'EEXIST') throw error
  }
  checkOwner(folder, cluster)
  chmodSync(folder, 0o700)
  if (osUser) chownSync(folder, osUser.uid, osUser.gid)
  writeFileSync(join(folder, OWNER_FILE), toIdentity(cluster.data), { mode: 0o600 })
  return folder
}

/**
 * Returns the folder of the socket on which the postmaster of the cluster listens. Undefined when
 * nothing listens where this process looks. A socket in the data folder connects the processes of
 * one kernel, whatever their namespaces are and wherever the folder is mounted. Throws if the one
 * in /tmp is that of another data folder.
 */
export async function findListening(cluster: Cluster): Promise<string | undefined> {
  // The path that Postgres has stored can lead to another cluster here.
  const folder = toSocketFolder(cluster)
  if (folder !== cluster.data) {
    if (!lstatSync(folder, { throwIfNoEntry: false })) return undefined
    checkOwner(folder, cluster)
  }
  if (!(await isListening(join(folder, SOCKET_FILE)))) return undefined
  if (folder !== cluster.data && !isOwn(folder, cluster)) throw new Error(toForeignMessage(folder))
  return folder
}

/** Returns true also if an older version has made the folder, without the file. */
function isOwn(folder: string, { data }: Cluster): boolean {
  try {
    return readFileSync(join(folder, OWNER_FILE), 'utf8') === toIdentity(data)
  } catch (error) {
    if (toCode(error) !== 'ENOENT') throw error
    return true
  }
}

function toIdentity(data: string): string {
  const { dev, ino } = statSync(data)
  return `${dev}:${ino}\n`
}

function isListening(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', error => {
      const code = toCode(error)
      // A full queue of connections.
      if (code === 'EAGAIN') resolve(true)
      else if (code === 'ENOENT' || code === 'ECONNREFUSED') resolve(false)
      else reject(error)
    })
  })
}

function toSocketFolder({ data, clusterName }: Cluster): string {
  const isShort = Buffer.byteLength(join(data, SOCKET_FILE)) <= MAX_SOCKET_PATH_BYTES
  return isShort ? data : join(FALLBACK_PARENT, clusterName)
}

function checkOwner(folder: string, { osUser }: Cluster): void {
  const found = lstatSync(folder)
  const own = [process.getuid?.(), osUser?.uid]
  if (!found.isDirectory() || !own.includes(found.uid)) throw new Error(toTakenMessage(folder))
}

/** Removes the folder in /tmp of a stopped cluster, if it has one. */
export function removeSocketFolder(cluster: Cluster): void {
  const folder = join(FALLBACK_PARENT, cluster.clusterName)
  try {
    if (isOwn(folder, cluster)) rmSync(join(folder, OWNER_FILE), { force: true })
    rmdirSync(folder)
  } catch {
    // The socket is in the data folder.
  }
}

function toTakenMessage(folder: string): string {
  return `${folder} belongs to another user, and the path of DATA_DIR is too long for a socket. Choose a shorter DATA_DIR.`
}

function toForeignMessage(folder: string): string {
  return `The Postgres in ${folder} is that of another folder at the same path, and the path of DATA_DIR is too long for a socket of its own. Choose a shorter DATA_DIR.`
}

function toCode(error: unknown): string | undefined {
  return (error as { code?: string }).code
}
