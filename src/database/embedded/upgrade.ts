import { statSync } from 'node:fs'
import { toReason } from '../../base/errors.ts'
import { logger } from '../../base/log.ts'
import { removeUnusedCopies } from './binaries.ts'
import { copyDatabase } from './copy-database.ts'
import { createCluster, removePartialClusters, syncCluster, type Cluster } from './cluster.ts'
import { measureFolder, readFreeBytes, swapClusters } from './folders.ts'
import { ensurePostmaster, stopPostmaster, toUrl } from './postmaster.ts'
import { ensureServerRole } from './server-role.ts'

const log = logger('db')
const MB = 1024 * 1024
/** The size of an empty cluster, and of its WAL during the load. */
const EMPTY_BYTES = 256 * MB
const PROGRESS_MS = 5_000

/**
 * Settings for a fast load. Tables that are truncated and filled in one transaction skip the WAL,
 * and are written to disk at the commit.
 */
const LOAD_SETTINGS = { wal_level: 'minimal', max_wal_senders: '0', autovacuum: 'off' }

/** The major versions of Postgres before and after the upgrade. */
export interface MajorVersions {
  from: number
  to: number
}

/**
 * Copies the data of an older major version of Postgres into a new cluster, which replaces the old
 * one. The old cluster is kept beside it. Call this under the lock, while no other process uses the
 * cluster. The next start repeats an interrupted upgrade. When it throws, nothing was changed.
 */
export async function upgradeCluster(
  old: Cluster,
  versions: MajorVersions,
  signal?: AbortSignal,
): Promise<void> {
  const { home } = old
  const begun = performance.now()
  log.info('Upgrading your data from Postgres {from} to {to}', { ...versions })
  const { fresh, rows } = await copyToNewCluster(old, versions, signal).catch(
    async (error: unknown) => {
      await removePartialClusters(home)
      throw new Error(
        `Nothing was changed. Your data could not be upgraded from Postgres ${versions.from} to ${versions.to}: ${toReason(error)}`,
        { cause: error },
      )
    },
  )
  const kept = swapClusters(home, fresh.data, String(versions.from))
  removeUnusedCopies(home)
  log.info(
    'Upgraded your data from Postgres {from} to {to}. The old data is kept in {kept} ({megabytes} MB). Delete it once everything works.',
    {
      ...versions,
      rows,
      seconds: Math.round((performance.now() - begun) / 1000),
      kept,
      megabytes: toMegabytes(measureFolder(kept)),
    },
  )
}

/** Copies the data into a new cluster. Both clusters are stopped when it returns. */
async function copyToNewCluster(
  old: Cluster,
  versions: MajorVersions,
  signal: AbortSignal | undefined,
): Promise<{ fresh: Cluster; rows: number }> {
  checkFreeSpace(old)
  // Starts first, because the binaries of the old version can be missing.
  const from = await ensurePostmaster(old, {}, signal)
  if (from.pid === undefined) {
    throw new Error(
      `Postgres ${versions.from} runs in another container, and cannot be stopped from here. Stop that container first.`,
    )
  }
  try {
    const fresh = await createCluster(old.home)
    const to = await ensurePostmaster(fresh, LOAD_SETTINGS, signal)
    const freshUrl = toUrl(fresh.superuser, to)
    // The roles of both clusters are compared. The next open transfers the tables to this role.
    await ensureServerRole(freshUrl, fresh.serverRole.password)
    const rows = await copyDatabase(
      toUrl(old.superuser, from),
      freshUrl,
      createProgressLogger(versions, signal),
    )
    await stopPostmaster(fresh)
    await syncCluster(fresh)
    return { fresh, rows }
  } finally {
    await stopPostmaster(old)
  }
}

/** Returns a function that logs the progress. It throws when the signal has aborted the upgrade. */
function createProgressLogger(
  versions: MajorVersions,
  signal: AbortSignal | undefined,
): (done: number, all: number) => void {
  let shownAt = performance.now()
  return (done, all) => {
    signal?.throwIfAborted()
    if (performance.now() - shownAt < PROGRESS_MS) return
    shownAt = performance.now()
    log.info('Upgrading your data from Postgres {from} to {to}: {done} of {all} rows', {
      ...versions,
      done,
      all,
    })
  }
}

function checkFreeSpace({ home, data }: Cluster): void {
  if (statSync(home).dev !== statSync(data).dev) {
    throw new Error(`${data} and ${home} are on different disks. Move them to the same one.`)
  }
  const needed = measureFolder(data) + EMPTY_BYTES
  const freeBytes = readFreeBytes(home)
  if (freeBytes >= needed) return
  throw new Error(
    `The upgrade needs ${toMegabytes(needed)} MB, and ${home} has ${toMegabytes(freeBytes)} MB free. Free some space.`,
  )
}

function toMegabytes(bytes: number): number {
  return Math.ceil(bytes / MB)
}
