import { createHash, randomBytes } from 'node:crypto'
import { accessSync, chownSync, constants, existsSync, mkdtempSync, readdirSync } from 'node:fs'
import { readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Account } from './folders.ts'
import { findClosedFolder, findAccount, makeFolder, readMode } from './folders.ts'
import type { Place } from './launch.ts'
import { launch } from './launch.ts'

/** The files of the database, their user, and the name that its processes carry. */
export type Cluster = Place & { data: string; mark: string; password: string }

export const SUPERUSER = 'tidings'

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
  const place = { home, log: join(home, 'log'), cwd: home, account: findAccount(dirname(home)) }
  if (!existsSync(data)) await createCluster(place, data)
  const real = realpathSync(data)
  return {
    ...place,
    // From its first moment on, a postmaster is known by its working directory.
    cwd: real,
    data: real,
    mark: `tidings-${createHash('sha256').update(home).digest('hex').slice(0, 12)}`,
    password: readFileSync(join(home, 'password'), 'utf8').trim(),
  }
}

/** Into a folder of its own, then renamed: a killed initdb leaves nothing half, nor do two mix. */
async function createCluster(place: Place, data: string): Promise<void> {
  removeHalf(place.home)
  const fresh = mkdtempSync(join(place.home, 'data.new-'))
  const password = join(place.home, 'password')
  writeFileSync(password, `${randomBytes(24).toString('base64url')}\n`, { mode: 0o600 })
  if (place.account) {
    chownSync(fresh, place.account.uid, place.account.gid)
    chownSync(password, place.account.uid, place.account.gid)
  }
  const initdb = await launch(place, 'initdb', [
    ...['-D', fresh, '-U', SUPERUSER, '-A', 'scram-sha-256', '--pwfile', password],
    // The builtin locale needs none of the machine's, and sorts the same everywhere.
    ...['-E', 'UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'],
    ...['--data-checksums', '--no-instructions'],
  ])
  while (!initdb.ended()) await sleep(10)
  if (initdb.ended() !== 'exit 0') throw new Error(toInitdbMessage(initdb.explain()))
  renameSync(fresh, data)
}

function removeHalf(home: string): void {
  for (const name of readdirSync(home).filter(name => name.startsWith('data.new-'))) {
    try {
      rmSync(join(home, name), { recursive: true })
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
