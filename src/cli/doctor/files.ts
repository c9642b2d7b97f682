import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '../../embedded/database.ts'
import { measureFolder, readFreeBytes, readMode, listOldClusters } from '../../embedded/folders.ts'
import { toSecretFile } from '../../secrets/open-secrets.ts'
import { failed, ok, warning, type Finding } from './finding.ts'

const MB = 1024 * 1024
const GB = 1024 * MB
const LOW_BYTES = 2048 * MB
const FULL_BYTES = 256 * MB

type Place = Pick<Database, 'dataDir' | 'kind'>

/** Checks that files in DATA_DIR are private, and that there is free space. */
export function checkFiles({ dataDir, kind }: Place): Finding[] {
  if (!existsSync(dataDir)) return []
  const findings = [checkFolder(dataDir)]
  if (kind === 'external') return findings
  const old = listOldClusters(join(dataDir, 'postgres')).map(checkOldCluster)
  return [...findings, checkFreeSpace(dataDir, readFreeBytes(dataDir)), ...old]
}

function checkFolder(dataDir: string): Finding {
  const check = 'DATA_DIR'
  const open = [toSecretFile(dataDir), join(dataDir, 'postgres', 'password')].filter(
    file => existsSync(file) && (statSync(file).mode & 0o077) !== 0,
  )
  if (open.length > 0) {
    const modes = open.map(file => `${file} (mode ${readMode(file)})`).join(' and ')
    return failed(check, `other users may read ${modes}: chmod 600 ${open.join(' ')}`)
  }
  try {
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK)
    return ok(check, `${dataDir}, and its secrets are for its owner alone`)
  } catch {
    return failed(check, `${dataDir} cannot be written to: give it to the user who runs Tidings`)
  }
}

/** Data that an upgrade of Postgres has kept. */
function checkOldCluster(folder: string): Finding {
  const room = `${Math.ceil(measureFolder(folder) / MB)} MB`
  return warning(
    'old data',
    `${folder} (${room}) is your data before an upgrade: delete it when all is well`,
  )
}

/** Judges the free space on the disk of the embedded database. */
export function checkFreeSpace(dataDir: string, freeBytes: number): Finding {
  const room = `${toRoom(freeBytes)} are left in ${dataDir}`
  const remedy = 'make room, or keep events for fewer days'
  if (freeBytes < FULL_BYTES) {
    return failed('disk', `${room}: events are refused when it is full. At once: ${remedy}`)
  }
  return freeBytes < LOW_BYTES ? warning('disk', `${room}: ${remedy}`) : ok('disk', room)
}

function toRoom(bytes: number): string {
  return bytes < 10 * GB ? `${Math.floor(bytes / MB)} MB` : `${Math.floor(bytes / GB)} GB`
}
