import { createHash, randomBytes } from 'node:crypto'
import { accessSync, chownSync, constants, existsSync, mkdtempSync, readdirSync } from 'node:fs'
import { readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Account } from './folders.ts'
import { findClosedFolder, findAccount, makeFolder, readMode } from './folders.ts'
import type { Place } from './launch.ts'
import { launch } from './launch.ts'
import { readMajor } from './major.ts'
import { listWorkers, signal } from './processes.ts'
import { CARRIED, finishSwap, listOld } from './swap.ts'

/** The files of the database, their user, and the name that its processes carry. */
export type Cluster = Place & { data: string; mark: string; password: string }

export const SUPERUSER = 'tidings'
/** How the names of folders begin that are not clusters yet. */
const HALF = 'data.new-'
const GONE_MS = 5_000

/** DATA_DIR/postgres, made when absent and proven to be open to the user that Postgres runs as. */
export function ensureHome(dataDir: string): string {
  const account = findAccount(dataDir)
  const home = join(resolve(dataDir), 'postgres')
  const closed = account && findClosedFolder(home, account)
  if (closed) throw new Error(toClosedMessage(dataDir, closed, account))
  makeFolder(home)
  if (!account && !canWrite(home)) throw new Error(toForeignMessage(dataDir, home))
  return realpathSync(home)
}

/** The cluster in `home`, made by initdb when absent. Call it under the lock. */
export async function ensureCluster(home: string): Promise<Cluster> {
  const data = join(home, 'data')
  finishSwap(home)
  await removeHalf(home)
  if (!existsSync(data)) {
    const [old] = listOld(home)
    if (old)
      throw new Error(`There is no ${data}. Was it to be ${old}? Then rename that, and start again`)
    makePassword(home)
    renameSync(await initialize(home), data)
  }
  return toCluster(home, realpathSync(data))
}

/**
 * A new cluster with the password of `home`, in a folder of its own: it goes at the next start unless it is renamed, which
 * wants `syncCluster` before.
 */
export async function createCluster(home: string): Promise<Cluster> {
  const data = await initialize(home, ['--no-sync'])
  return toCluster(home, data, data)
}

function toCluster(home: string, data: string, markedBy = home): Cluster {
  return {
    ...toPlace(home),
    // From its first moment on, a postmaster is known by its working directory.
    cwd: data,
    data,
    mark: toMark(markedBy),
    major: readMajor(data),
    password: readFileSync(join(home, 'password'), 'utf8').trim(),
  }
}

function toPlace(home: string): Place {
  const account = findAccount(dirname(home))
  return { home, log: join(home, 'log'), cwd: home, account, major: undefined }
}

function toMark(folder: string): string {
  return `tidings-${createHash('sha256').update(folder).digest('hex').slice(0, 12)}`
}

function makePassword(home: string): void {
  const { account } = toPlace(home)
  const password = join(home, 'password')
  writeFileSync(password, `${randomBytes(24).toString('base64url')}\n`, { mode: 0o600 })
  if (account) chownSync(password, account.uid, account.gid)
}

/** Into a folder of its own, which is returned: a killed initdb leaves nothing half, nor do two mix. */
async function initialize(home: string, more: string[] = []): Promise<string> {
  const place = toPlace(home)
  const fresh = mkdtempSync(join(home, HALF))
  if (place.account) chownSync(fresh, place.account.uid, place.account.gid)
  await runInitdb(place, [
    ...['-D', fresh, '-U', SUPERUSER, '-A', 'scram-sha-256', '--pwfile', join(home, 'password')],
    // The builtin locale needs none of the machine's, and sorts the same everywhere.
    ...['-E', 'UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'],
    ...['--data-checksums', '--no-instructions', ...more],
  ])
  return fresh
}

/** Has every file of a cluster that does not run written to disk. */
export async function syncCluster({ home, data }: Cluster): Promise<void> {
  await runInitdb(toPlace(home), ['--sync-only', '-D', data])
}

async function runInitdb(place: Place, args: string[]): Promise<void> {
  const initdb = await launch(place, 'initdb', args)
  while (!initdb.ended()) await sleep(10)
  if (initdb.ended() !== 'exit 0') throw new Error(toInitdbMessage(initdb.explain()))
}

/** Removes what a kill has left half done. Nothing in there is of worth, so whoever works on it is ended. */
export async function removeHalf(home: string): Promise<void> {
  for (const name of readdirSync(home)) {
    if (!name.startsWith(HALF) && name !== CARRIED) continue
    const data = join(home, name)
    const left = { data, mark: toMark(data) }
    for (const pid of listWorkers(left)) signal(pid, 'SIGKILL')
    const deadline = performance.now() + GONE_MS
    while (listWorkers(left).length > 0 && performance.now() < deadline) await sleep(10)
    try {
      rmSync(data, { recursive: true })
    } catch {
      // An initdb that outlived its server is still writing there. It cannot hurt.
    }
  }
}

function canWrite(folder: string): boolean {
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

function toForeignMessage(dataDir: string, home: string): string {
  const { uid } = statSync(home)
  return `DATA_DIR=${dataDir} belongs to uid ${uid}: run as that user, or choose another folder`
}

function toInitdbMessage(cause: string): string {
  const message = `The database could not be created: ${cause}`
  if (!cause.includes('user does not exist')) return message
  return `${message}\nPostgres wants its user listed in /etc/passwd: add it, or set DATABASE_URL.`
}

function toClosedMessage(dataDir: string, closed: string, account: Account): string {
  return [
    `Postgres cannot work in DATA_DIR=${dataDir}. Tidings runs as root, Postgres refuses to, so it`,
    `runs as uid ${account.uid}, which may not enter ${closed} (mode ${readMode(closed)}).`,
    'Nothing was changed. Do one of these:',
    '  DATA_DIR=/var/lib/tidings           keep the data in a folder that is open to it',
    '  run Tidings as an ordinary user     then Postgres is that user, too',
    '  DATABASE_URL=postgres://user:password@host:5432/database     use a Postgres of your own',
  ].join('\n')
}
