import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '../../database/embedded/database.ts'
import {
  listOldClusters,
  measureFolder,
  NOBODY,
  readFreeBytes,
  readMode,
  type OsUser,
} from '../../database/embedded/folders.ts'
import { toSecretFile } from '../../database/secrets/open-secrets.ts'
import { toErasedFile } from '../../log/identities/erased-file.ts'
import { findZoneFolder } from '../../base/zone-rules.ts'
import { failed, ok, warning, type Finding } from './finding.ts'

/** exFAT, FAT, and NTFS by the kernel, as statfs(2) names them. */
const WITHOUT_MODES = [0x2011bab0, 0x4d44, 0x7366746e]
const MB = 1024 * 1024
const GB = 1024 * MB
const LOW_BYTES = 2048 * MB
const FULL_BYTES = 256 * MB

/** Checks that the system has rules of time zones. */
export function checkZones(): Finding {
  const folder = findZoneFolder()
  return folder === undefined
    ? warning(
        'time zones',
        'The system has no rules of time zones, so those of this program are used. They can be out of date for quiet hours and BACKUP_AT. Install tzdata.',
      )
    : ok('time zones', `The rules of the system in ${folder}`)
}

type Place = Pick<Database, 'dataDir' | 'kind'>

/** Checks that the secrets in DATA_DIR are private, and that the disk has free space. */
export function checkFiles({ dataDir, kind }: Place): Finding[] {
  if (!existsSync(dataDir)) return []
  const closed = [dataDir, ...(kind === 'external' ? [] : [join(dataDir, 'postgres')])]
    .filter(folder => existsSync(folder))
    .find(folder => !canUse(folder))
  if (closed !== undefined) return [failed('DATA_DIR', toClosedMessage(closed))]
  const findings = [checkFolder(dataDir)]
  if (kind === 'external') return findings
  const old = listOldClusters(join(dataDir, 'postgres')).map(checkOldCluster)
  return [...findings, checkFreeSpace(dataDir, readFreeBytes(dataDir)), ...old]
}

function checkFolder(dataDir: string): Finding {
  const check = 'DATA_DIR'
  const files = [
    toSecretFile(dataDir),
    toErasedFile(dataDir),
    join(dataDir, 'postgres', 'password'),
  ].filter(file => existsSync(file))
  const readable = files.filter(file => (statSync(file).mode & 0o077) !== 0)
  if (readable.length > 0) {
    const modes = readable.map(file => `${file} (mode ${readMode(file)})`).join(' and ')
    const remedy = WITHOUT_MODES.includes(statfsSync(dataDir).type)
      ? `The file system of ${dataDir} has no permissions: move the folder to another disk, or mount this one with umask=077.`
      : `Run: chmod 600 ${readable.join(' ')}`
    return failed(check, `Other users can read ${modes}. ${remedy}`)
  }
  const unreadable = files.filter(file => !canServerRead(file, dataDir))
  if (unreadable.length > 0) {
    const { uid, gid } = findServerUser(dataDir)
    const names = unreadable.join(' ')
    return failed(check, `The server cannot read ${names}. Run: chown ${uid}:${gid} ${names}`)
  }
  return ok(check, `${dataDir}, and its secrets are private`)
}

function toClosedMessage(folder: string): string {
  return `This user may not use ${folder}. Run the command as the user of the server, or make the user who runs Tidings its owner.`
}

function canUse(folder: string): boolean {
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Returns whether the server can read one of its files. This process can be root in its place. */
function canServerRead(file: string, dataDir: string): boolean {
  const server = findServerUser(dataDir).uid
  if (process.getuid?.() === 0) return server === 0 || statSync(file).uid === server
  try {
    accessSync(file, constants.R_OK)
    return true
  } catch {
    return false
  }
}

/** Returns the user of the server: the owner of the embedded Postgres, or else of DATA_DIR. */
function findServerUser(dataDir: string): OsUser {
  const cluster = statSync(join(dataDir, 'postgres', 'data'), { throwIfNoEntry: false })
  // Postgres of a server that runs as root.
  if (cluster?.uid === NOBODY.uid) return { uid: 0, gid: 0 }
  const { uid, gid } = cluster ?? statSync(dataDir)
  return { uid, gid }
}

/** Reports the old data that an upgrade of Postgres has kept. */
function checkOldCluster(folder: string): Finding {
  const size = `${Math.ceil(measureFolder(folder) / MB)} MB`
  return warning(
    'old data',
    `${folder} (${size}) is your data from before an upgrade. Delete it once everything works.`,
  )
}

/** Checks the free space on the disk of the embedded database. */
export function checkFreeSpace(dataDir: string, freeBytes: number): Finding {
  const free = `${toSize(freeBytes)} free in ${dataDir}`
  const remedy = 'Free some space, or keep events for fewer days.'
  if (freeBytes < FULL_BYTES) {
    return failed('disk', `${free}. Events are refused when the disk is full. ${remedy}`)
  }
  return freeBytes < LOW_BYTES ? warning('disk', `${free}. ${remedy}`) : ok('disk', free)
}

function toSize(bytes: number): string {
  return bytes < 10 * GB ? `${Math.floor(bytes / MB)} MB` : `${Math.floor(bytes / GB)} GB`
}
