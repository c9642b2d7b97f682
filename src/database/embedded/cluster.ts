import { createHash, createHmac, randomBytes } from 'node:crypto'
import { accessSync, chownSync, constants, existsSync, mkdtempSync, readdirSync } from 'node:fs'
import { readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type OsUser,
  checkDisk,
  findInaccessibleFolder,
  findPostgresUser,
  readMode,
  UPGRADED,
  finishSwap,
  listOldClusters,
} from './folders.ts'
import type { LaunchContext } from './launch.ts'
import { runInitdb } from './initdb.ts'
import { ensureFolder, syncFolder } from '../../base/private-files.ts'
import { readMajor } from './binaries.ts'
import { isClusterLocked } from './cluster-lock.ts'
import { listClusterProcesses, sendSignal } from './processes.ts'

/** The files of a database, their OS user, and the name in its process titles. */
export type Cluster = LaunchContext & {
  data: string
  clusterName: string
  superuser: Credentials
  serverRole: Credentials
}

/** A role of a cluster, with its password. */
export interface Credentials {
  role: string
  password: string
}

/** The role that initdb creates. Only the launcher and an upgrade use it. */
export const SUPERUSER = 'tidings'
/**
 * The role of all other connections. It owns the database. It is no superuser, so that no statement
 * reads a file, runs a program or creates a role.
 */
export const SERVER_ROLE = 'tidings_server'
/** The prefix of folders that do not contain a complete cluster yet. */
const PARTIAL_PREFIX = 'data.new-'
const GONE_MS = 5_000

/** Creates DATA_DIR/postgres when absent. Throws when the OS user of Postgres may not enter it. */
export function ensureHome(dataDir: string): string {
  const osUser = findPostgresUser(dataDir)
  const home = join(resolve(dataDir), 'postgres')
  const closed = osUser && findInaccessibleFolder(home, osUser)
  if (closed) throw new Error(toClosedMessage(dataDir, closed, osUser))
  // Postgres, which can be another user, must enter it.
  ensureFolder(home, 0o711)
  if (!canWrite(home)) throw new Error(toForeignMessage(dataDir, home))
  return realpathSync(home)
}

/**
 * Returns whether DATA_DIR has a cluster, or one that an upgrade has kept. Throws when this user
 * may not enter the folder.
 */
export function hasCluster(dataDir: string): boolean {
  const home = join(resolve(dataDir), 'postgres')
  try {
    if (!statSync(home, { throwIfNoEntry: false })) return false
  } catch {
    throw new Error(
      `${dataDir} cannot be entered. Run the command as the user of the server: sudo -u tidings tidings …`,
    )
  }
  return (
    ['data', UPGRADED].some(name => existsSync(join(home, name))) ||
    listOldClusters(home).length > 0
  )
}

/** Returns the cluster in `home`. Runs initdb if there is none. Requires the lock of `home`. */
export async function ensureCluster(home: string): Promise<Cluster> {
  const data = join(home, 'data')
  finishSwap(home)
  await removePartialClusters(home)
  const isNew = !existsSync(data)
  checkDisk(home, isNew)
  if (isNew) {
    const [old] = listOldClusters(home)
    if (old)
      throw new Error(
        `${data} is missing. To use ${old} instead, rename it to ${data} and start again.`,
      )
    createPassword(home)
    renameSync(await initialize(home), data)
    syncFolder(home)
  }
  const cluster = readCluster(home)
  if (cluster.osUser && statSync(cluster.data).uid === 0)
    throw new Error(toRootMessage(cluster.data, cluster.osUser))
  return cluster
}

/**
 * Creates a new cluster with the password of `home` in a temporary folder. The next start removes
 * it unless it is renamed before. Call `syncCluster` before renaming it.
 */
export async function createCluster(home: string): Promise<Cluster> {
  const data = await initialize(home, ['--no-sync'])
  return readCluster(home, data, data)
}

/** Returns the existing cluster in `home`. Throws if a part of it is missing. */
export function readCluster(
  home: string,
  data = realpathSync(join(home, 'data')),
  namedAfter = home,
): Cluster {
  for (const file of [join(home, 'password'), join(data, 'PG_VERSION')])
    if (!existsSync(file)) throw new Error(toMissingMessage(home, file))
  const password = readFileSync(join(home, 'password'), 'utf8').trim()
  return {
    ...toLaunchContext(home),
    // The working directory identifies a postmaster as soon as it starts.
    cwd: data,
    data,
    clusterName: toClusterName(namedAfter),
    major: readMajor(data),
    superuser: { role: SUPERUSER, password },
    serverRole: { role: SERVER_ROLE, password: deriveServerPassword(password) },
  }
}

/** Derives the password of the server's role, which does not reveal that of the superuser. */
function deriveServerPassword(password: string): string {
  return createHmac('sha256', password).update(SERVER_ROLE).digest('base64url')
}

function toLaunchContext(home: string): LaunchContext {
  const osUser = findPostgresUser(dirname(home))
  return { home, log: join(home, 'log'), cwd: home, osUser, major: undefined }
}

function toClusterName(folder: string): string {
  return `tidings-${createHash('sha256').update(folder).digest('hex').slice(0, 12)}`
}

function createPassword(home: string): void {
  const { osUser } = toLaunchContext(home)
  const password = join(home, 'password')
  writeFileSync(password, `${randomBytes(24).toString('base64url')}\n`, {
    mode: 0o600,
    flush: true,
  })
  if (osUser) give(password, osUser)
}

/**
 * Runs initdb in a new temporary folder, which a killed initdb can leave incomplete. Returns it.
 */
async function initialize(home: string, more: string[] = []): Promise<string> {
  const place = toLaunchContext(home)
  const fresh = mkdtempSync(join(home, PARTIAL_PREFIX))
  if (place.osUser) give(fresh, place.osUser)
  await runInitdb(place, [
    ...['-D', fresh, '-U', SUPERUSER, '-A', 'scram-sha-256', '--pwfile', join(home, 'password')],
    // The builtin locale sorts identically on every machine.
    ...['-E', 'UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'],
    ...['--data-checksums', '--no-instructions', ...more],
  ])
  return fresh
}

/** Writes every file of a stopped cluster to disk. */
export async function syncCluster({ home, data }: Cluster): Promise<void> {
  await runInitdb(toLaunchContext(home), ['--sync-only', '-D', data])
}

/** Removes incomplete clusters that a kill has left. Kills the processes that still use them. */
export async function removePartialClusters(home: string): Promise<void> {
  for (const name of readdirSync(home)) {
    if (!name.startsWith(PARTIAL_PREFIX) && name !== UPGRADED) continue
    const data = join(home, name)
    const left = { data, clusterName: toClusterName(data) }
    for (const pid of listClusterProcesses(left)) sendSignal(pid, 'SIGKILL')
    const deadline = performance.now() + GONE_MS
    while (listClusterProcesses(left).length > 0 && performance.now() < deadline) await sleep(10)
    // Postgres of another container can have outlived an upgrade there.
    if (isInUse(data)) continue
    try {
      rmSync(data, { recursive: true })
    } catch {
      // An orphaned initdb is still writing there. The next start removes the folder.
    }
  }
}

function isInUse(data: string): boolean {
  try {
    return isClusterLocked(data)
  } catch {
    // An initdb that was killed has not come far.
    return false
  }
}

/** Makes the OS user of Postgres the owner of a file or folder. */
function give(path: string, { uid, gid }: OsUser): void {
  try {
    chownSync(path, uid, gid)
  } catch (error) {
    if ((error as { code?: string }).code !== 'EINVAL') throw error
    throw new Error(
      `This user namespace has no uid ${uid}, as which Postgres would run, because it refuses to run as root. Run Tidings as an ordinary user, or set DATABASE_URL.`,
      { cause: error },
    )
  }
}

function canWrite(folder: string): boolean {
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
    return true
  } catch (error) {
    // The lock says that the disk is read-only.
    return (error as { code?: string }).code === 'EROFS'
  }
}

function toForeignMessage(dataDir: string, home: string): string {
  const { uid } = statSync(home)
  return `DATA_DIR=${dataDir} belongs to uid ${uid}. Run Tidings as that user, or choose another folder.`
}

function toMissingMessage(home: string, file: string): string {
  return `${file} is missing. Restore the whole folder ${home}, with all of its files from one copy.`
}

function toRootMessage(data: string, { uid, gid }: OsUser): string {
  return `${data} belongs to root, as which Postgres refuses to run. Give it to the user of Postgres: chown -R ${uid}:${gid} ${data}`
}

function toClosedMessage(dataDir: string, closed: string, osUser: OsUser): string {
  return [
    `Postgres cannot use DATA_DIR=${dataDir}. Tidings runs as root. Postgres refuses to run as root,`,
    `so it runs as uid ${osUser.uid}, which may not enter ${closed} (mode ${readMode(closed)}).`,
    'Nothing was changed. Do one of these:',
    '  Keep the data in a folder that this user can enter:  DATA_DIR=/var/lib/tidings',
    '  Run Tidings as an ordinary user. Postgres then runs as the same user.',
    '  Use your own Postgres:  DATABASE_URL=postgres://user:password@host:5432/database',
  ].join('\n')
}
