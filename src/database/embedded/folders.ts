import { existsSync, readdirSync, realpathSync, statfsSync, statSync, renameSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { logger } from '../../base/log.ts'
import { syncFolder } from '../../base/private-files.ts'

const log = logger('db')

export type OsUser = { uid: number; gid: number }

/** The user of Postgres when root starts it. */
export const NOBODY: OsUser = { uid: 65534, gid: 65534 }

/**
 * Returns the OS user of Postgres in DATA_DIR: the owner of the cluster, or else nobody. Postgres
 * refuses to run as root. Returns undefined when this process is not root, because Postgres then
 * runs as the same user.
 */
export function findPostgresUser(dataDir: string): OsUser | undefined {
  if (process.getuid?.() !== 0) return undefined
  const owner = ['data', UPGRADED]
    .map(name => statSync(join(dataDir, 'postgres', name), { throwIfNoEntry: false }))
    .find(found => found !== undefined)
  return owner && owner.uid !== 0 ? { uid: owner.uid, gid: owner.gid } : NOBODY
}

/**
 * Returns the first folder that the OS user of Postgres may not enter, from the root down to `path`
 * itself. Missing folders count as accessible, because `ensureHome` creates accessible folders.
 * Returns undefined when there is none, or when this process is not root.
 */
export function findInaccessibleFolder(
  path: string,
  osUser = findPostgresUser(path),
): string | undefined {
  if (!osUser) return undefined
  const existing = listAncestors(resolve(path)).findLast(folder => existsSync(folder)) ?? '/'
  return listAncestors(realpathSync(existing)).find(folder => !canEnter(folder, osUser))
}

/** Returns the free space on the disk of a folder, in bytes. */
export function readFreeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

/**
 * Network file systems by the type that Linux tells. FUSE, 9p and virtiofs are missing: they show
 * folders of the same machine, as Docker Desktop does.
 */
const NETWORK_DISKS: Record<number, string> = {
  0x6969: 'NFS',
  0x517b: 'SMB',
  0xfe534d42: 'SMB',
  0xff534d42: 'CIFS',
  0x5346414f: 'AFS',
  0x00c36400: 'CephFS',
  0x0bd00bd0: 'Lustre',
}

/**
 * Refuses a new data folder on a network file system, and warns of an existing one: its locks may
 * not exclude other machines.
 */
export function checkDisk(home: string, isNew: boolean, type = statfsSync(home).type): void {
  const disk = process.platform === 'linux' ? NETWORK_DISKS[type >>> 0] : undefined
  if (disk === undefined) return
  const why = `${home} is on ${disk}. Servers of two machines could use it at once, and destroy the data.`
  if (isNew) throw new Error(`${why} Choose a DATA_DIR on a local disk, or set DATABASE_URL.`)
  log.warning(`${why} Move the folder to a local disk while no server runs.`)
}

/** Returns the total size of the files in a folder and its subfolders, in bytes. */
export function measureFolder(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(({ parentPath, name }) => statSync(join(parentPath, name), { throwIfNoEntry: false }))
    .reduce((bytes, file) => bytes + (file?.size ?? 0), 0)
}

/** Lists the folders from the root down to `path` itself. */
export function listAncestors(path: string): string[] {
  const parent = dirname(path)
  return parent === path ? [path] : [...listAncestors(parent), path]
}

/** Returns the permissions of a file or folder, such as `0700`. */
export function readMode(folder: string): string {
  return (statSync(folder).mode & 0o7777).toString(8).padStart(4, '0')
}

function canEnter(folder: string, osUser: OsUser): boolean {
  const { mode, uid, gid } = statSync(folder)
  const bit = uid === osUser.uid ? 0o100 : gid === osUser.gid ? 0o010 : 0o001
  return (mode & bit) !== 0
}

/** The name of the new, complete cluster during a swap. */
export const UPGRADED = 'data.upgraded'
const OLD = 'data.old-'

/**
 * Replaces `data`, the cluster of Postgres `major`, with the complete cluster `fresh`. Returns the
 * new path of the old cluster. If the process is killed, `data` is the old cluster, the new one, or
 * missing. `finishSwap` repairs the last case.
 */
export function swapClusters(home: string, fresh: string, major: string): string {
  const data = join(home, 'data')
  const upgraded = join(home, UPGRADED)
  const old = findFree(join(home, `${OLD}${major}`))
  move(home, fresh, upgraded)
  move(home, data, old)
  move(home, upgraded, data)
  return old
}

/** Finishes a swap that was interrupted while `data` was missing. */
export function finishSwap(home: string): void {
  const data = join(home, 'data')
  const upgraded = join(home, UPGRADED)
  if (!existsSync(data) && existsSync(upgraded)) move(home, upgraded, data)
}

/** Lists the paths of the old clusters that swaps have kept. */
export function listOldClusters(home: string): string[] {
  if (!existsSync(home)) return []
  return readdirSync(home)
    .filter(name => name.startsWith(OLD))
    .map(name => join(home, name))
}

/** Renames a folder, and flushes its parent to disk. */
function move(home: string, from: string, to: string): void {
  renameSync(from, to)
  syncFolder(home)
  log.debug('Moved {from} to {to}', { from, to })
}

function findFree(path: string): string {
  for (let times = 1; ; times++) {
    const free = times === 1 ? path : `${path}-${times}`
    if (!existsSync(free)) return free
  }
}
