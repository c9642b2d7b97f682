import { statSync, statfsSync } from 'node:fs'
import { toReason } from '../errors.ts'
import { logger } from '../log.ts'
import { removeCopies } from './binaries.ts'
import { copyDatabase } from './carry-rows.ts'
import { createCluster, removeHalf, syncCluster, type Cluster } from './cluster.ts'
import { measure } from './folders.ts'
import { findFreePort } from './port.ts'
import { ensurePostmaster, HOST, stopPostmaster, toUrl } from './postmaster.ts'
import { swap } from './swap.ts'

const log = logger('db')
const MB = 1024 * 1024
/** What a cluster takes in which there is nothing yet, and its log while rows come in. */
const EMPTY_BYTES = 256 * MB
const PROGRESS_MS = 5_000

/**
 * A log with nothing about rows of tables that are filled as they are made: what is there at the commit is on disk, what
 * is not there is thrown away.
 */
const LOADING = { wal_level: 'minimal', max_wal_senders: '0', autovacuum: 'off' }

/** The major versions of Postgres that data comes from and goes to. */
export interface Way {
  from: number
  to: number
}

/**
 * Puts all that an older Postgres keeps into a new cluster of ours, and that in its place; what was there stays beside it.
 * All of it is done under the lock while nobody else uses the cluster, and from the beginning when it was cut short. Throws
 * with a sentence for people, and then nothing was changed.
 */
export async function carryOver(old: Cluster, way: Way): Promise<void> {
  const { home } = old
  const begun = performance.now()
  log.info('Carrying your data over from Postgres {from} to {to}', { ...way })
  const { fresh, rows } = await fill(old, way).catch(async (error: unknown) => {
    await removeHalf(home)
    throw new Error(
      `Your data could not be carried over from Postgres ${way.from} to ${way.to}: ${toReason(error)}. Nothing was changed.`,
      { cause: error },
    )
  })
  const kept = swap(home, fresh.data, String(way.from))
  removeCopies(home)
  log.info(
    'Your data is carried over from Postgres {from} to {to}. What was there before is kept in {kept} ({megabytes} MB): delete it when all is well',
    {
      ...way,
      rows,
      seconds: Math.round((performance.now() - begun) / 1000),
      kept,
      megabytes: toMegabytes(measure(kept)),
    },
  )
}

/** Neither cluster runs any more when it returns. */
async function fill(old: Cluster, way: Way): Promise<{ fresh: Cluster; rows: number }> {
  checkRoom(old)
  // First, because it is what may be missing.
  const from = await ensurePostmaster(old, () => findFreePort(HOST))
  try {
    const fresh = await createCluster(old.home)
    const to = await ensurePostmaster(fresh, () => findFreePort(HOST), LOADING)
    const rows = await copyDatabase(toUrl(old, from), toUrl(fresh, to), showProgress(way))
    await stopPostmaster(fresh)
    await syncCluster(fresh)
    return { fresh, rows }
  } finally {
    await stopPostmaster(old)
  }
}

function showProgress(way: Way): (done: number, all: number) => void {
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

function checkRoom({ home, data }: Cluster): void {
  if (statSync(home).dev !== statSync(data).dev) {
    throw new Error(`${data} is on another disk than ${home}, and would have to be on the same one`)
  }
  const needed = measure(data) + EMPTY_BYTES
  const { bavail, bsize } = statfsSync(home)
  if (bavail * bsize >= needed) return
  throw new Error(
    `it takes ${toMegabytes(needed)} MB, and ${toMegabytes(bavail * bsize)} MB are left in ${home}: make room`,
  )
}

function toMegabytes(bytes: number): number {
  return Math.ceil(bytes / MB)
}
