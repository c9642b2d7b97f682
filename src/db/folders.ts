import { chmodSync, existsSync, mkdirSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { CARRIED } from './swap.ts'

export type Account = { uid: number; gid: number }

const NOBODY: Account = { uid: 65534, gid: 65534 }

/**
 * Who Postgres, which refuses root, is to run as in DATA_DIR: nobody, or whoever owns the cluster
 * already. Undefined when we are not root: then it runs as we do.
 */
export function findAccount(dataDir: string): Account | undefined {
  if (process.getuid?.() !== 0) return undefined
  const owner = ['data', CARRIED]
    .map(name => statSync(join(dataDir, 'postgres', name), { throwIfNoEntry: false }))
    .find(found => found !== undefined)
  return owner && owner.uid !== 0 ? { uid: owner.uid, gid: owner.gid } : NOBODY
}

/**
 * The first folder on the way to `path` (DATA_DIR, or any), itself included, that Postgres may not
 * enter. Folders that do not exist yet are open, as `makeFolder` makes them. Always undefined when
 * we are not root.
 */
export function findClosedFolder(path: string, account = findAccount(path)): string | undefined {
  if (!account) return undefined
  const existing = toWay(resolve(path)).findLast(folder => existsSync(folder)) ?? '/'
  return toWay(realpathSync(existing)).find(folder => !isOpen(folder, account))
}

/** What the files in a folder and below take, in bytes. */
export function measure(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(({ parentPath, name }) => statSync(join(parentPath, name), { throwIfNoEntry: false }))
    .reduce((bytes, file) => bytes + (file?.size ?? 0), 0)
}

/** The folders from the root down to `path`. */
export function toWay(path: string): string[] {
  const parent = dirname(path)
  return parent === path ? [path] : [...toWay(parent), path]
}

/** `0700` of a folder with that mode. */
export function readMode(folder: string): string {
  return (statSync(folder).mode & 0o7777).toString(8).padStart(4, '0')
}

/** Makes a folder and its parents so that Postgres can pass; those that exist stay as they are. */
export function makeFolder(path: string, mode = 0o711): void {
  const first = mkdirSync(path, { recursive: true })
  if (first === undefined) return
  // The mode of mkdir is cut by the umask.
  for (let made = path; made.length >= first.length; made = dirname(made)) chmodSync(made, mode)
}

function isOpen(folder: string, account: Account): boolean {
  const { mode, uid, gid } = statSync(folder)
  const bit = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001
  return (mode & bit) !== 0
}
