import { statSync, statfsSync } from 'node:fs'
import { toReason } from '../errors.ts'
import { logger } from '../log.ts'
import { removeUnusedCopies } from './binaries.ts'
import { copyDatabase } from './copy-database.ts'
import { createCluster, removePartialClusters, syncCluster, type Cluster } from './cluster.ts'
import { measureFolder, swapClusters } from './folders.ts'
import { findFreePort, ensurePostmaster, HOST, stopPostmaster, toUrl } from './postmaster.ts'

const log = logger('db')
const MB = 1024 * 1024
/** The size of an empty cluster, and of its log while rows come in. */
const EMPTY_BYTES = 256 * MB
const PROGRESS_MS = 5_000

/**
 * Settings for a fast load: rows of tables that are filled in the transaction that empties them are not logged, but
 * written to disk at the commit.
 */
const LOADING = { wal_level: 'minimal', max_wal_senders: '0', autovacuum: 'off' }

/** The major versions of Postgres before and after. */
export interface MajorVersions {
  from: number
  to: number
}

/**
 * Copies the data of an older major version of Postgres into a new cluster, which takes the old one's place. The old one
 * is kept beside it. Call it under the lock while no other process uses the cluster. An interrupted upgrade starts over at
 * the next start. Throws with a sentence for people, and then nothing was changed.
 */
export async function upgradeCluster(old: Cluster, way: MajorVersions): Promise<void> {
  const { home } = old
  const begun = performance.now()
  log.info('Carrying your data over from Postgres {from} to {to}', { ...way })
  const { fresh, rows } = await copyToNewCluster(old, way).catch(async (error: unknown) => {
    await removePartialClusters(home)
    throw new Error(
      `Your data could not be carried over from Postgres ${way.from} to ${way.to}: ${toReason(error)}. Nothing was changed.`,
      { cause: error },
    )
  })
  const kept = swapClusters(home, fresh.data, String(way.from))
  removeUnusedCopies(home)
  log.info(
    'Your data is carried over from Postgres {from} to {to}. What was there before is kept in {kept} ({megabytes} MB): delete it when all is well',
    {
      ...way,
      rows,
      seconds: Math.round((performance.now() - begun) / 1000),
      kept,
      megabytes: toMegabytes(measureFolder(kept)),
    },
  )
}

/** Fills a new cluster. Both clusters are stopped when it returns. */
async function copyToNewCluster(
  old: Cluster,
  way: MajorVersions,
): Promise<{ fresh: Cluster; rows: number }> {
  checkFreeSpace(old)
  // First, because its binaries may be missing.
  const from = await ensurePostmaster(old, () => findFreePort(HOST))
  try {
    const fresh = await createCluster(old.home)
    const to = await ensurePostmaster(fresh, () => findFreePort(HOST), LOADING)
    const rows = await copyDatabase(toUrl(old, from), toUrl(fresh, to), createProgressLogger(way))
    await stopPostmaster(fresh)
    await syncCluster(fresh)
    return { fresh, rows }
  } finally {
    await stopPostmaster(old)
  }
}

function createProgressLogger(way: MajorVersions): (done: number, all: number) => void {
  let shownAt = performance.now()
  return (done, all) => {
    if (performance.now() - shownAt < PROGRESS_MS) return
    shownAt = performance.now()
    log.info('Carrying your data over from Postgres {from} to {to}: {done} of {all} rows', {
      ...way,
      done,
      all,
    })
  }
}

function checkFreeSpace({ home, data }: Cluster): void {
  if (statSync(home).dev !== statSync(data).dev) {
    throw new Error(`${data} is on another disk than ${home}, and would have to be on the same one`)
  }
  const needed = measureFolder(data) + EMPTY_BYTES
  const { bavail, bsize } = statfsSync(home)
  if (bavail * bsize >= needed) return
  throw new Error(
    `it takes ${toMegabytes(needed)} MB, and ${toMegabytes(bavail * bsize)} MB are left in ${home}: make room`,
  )
}

function toMegabytes(bytes: number): number {
  return Math.ceil(bytes / MB)
}
