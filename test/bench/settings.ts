import { readCluster, SERVER_ROLE, type Cluster } from '../../src/database/embedded/cluster.ts'
import { startEmbedded } from '../../src/database/embedded/embedded.ts'
import { ensurePostmaster, stopPostmaster, toUrl } from '../../src/database/embedded/postmaster.ts'
import { migrate } from '../../src/database/migrate.ts'
import { connect } from '../../src/database/sql.ts'
import { makeFolder } from '../support/scratch.ts'
import { withDatabase } from '../support/servers/postgres.ts'
import { join } from 'node:path'
import { openPostgresClock } from './processor-time.ts'
import { makeKey, startTidings, stopCandidates } from './server.ts'
import { interleaveFigures, SHARE } from './table.ts'
import { load, requireWrk } from './wrk.ts'

const ROUNDS = 3
const SECONDS = Math.ceil(5 * SHARE)

/** Each variant changes the shipped settings of the embedded Postgres in one respect. */
const VARIANTS: Record<string, Record<string, string>> = {
  'as shipped': {},
  'full_page_writes = off (unsafe)': { full_page_writes: 'off' },
  'wal_compression = pglz': { wal_compression: 'pglz' },
  'wal_sync_method = open_datasync': { wal_sync_method: 'open_datasync' },
  'wal_level = minimal': { wal_level: 'minimal', max_wal_senders: '0' },
  'wal_buffers = 16MB': { wal_buffers: '16MB' },
  'shared_buffers = 512MB': { shared_buffers: '512MB' },
  'max_wal_size = 64MB': { max_wal_size: '64MB' },
  'max_wal_size = 4GB': { max_wal_size: '4GB', checkpoint_timeout: '15min' },
  'commit_delay = 100': { commit_delay: '100', commit_siblings: '1' },
  'io_method = worker': { io_method: 'worker' },
}

/**
 * Compares settings of the embedded Postgres: processor time of all its processes and WAL per event
 * over HTTP, at 128 connections.
 */
export async function benchSettings(): Promise<void> {
  requireWrk()
  const cluster = await createTemplate()
  const measured = await interleaveFigures(
    Object.fromEntries(
      Object.entries(VARIANTS).map(([name, settings]) => [name, () => runRound(cluster, settings)]),
    ),
    ROUNDS,
  )
  console.log('| | Postgres, us per event | WAL, bytes per event | events/s | p99, ms |')
  console.log('| - | -: | -: | -: | -: |')
  for (const [name, { micros, walBytes, perSecond, p99Ms }] of Object.entries(measured)) {
    const figures = [micros.toFixed(1), walBytes.toFixed(0), perSecond.toFixed(0), p99Ms.toFixed(1)]
    console.log(`| ${name} | ${figures.join(' | ')} |`)
  }
}

/** Returns a stopped cluster with a database `template` at the current schema. */
async function createTemplate(): Promise<Cluster> {
  const dataDir = makeFolder()
  const embedded = await startEmbedded({ dataDir })
  const admin = connect(embedded.superuserUrl, {
    name: 'bench',
    max: 1,
    settings: { statement_timeout: 0 },
  })
  await admin.unsafe(`create database template owner ${SERVER_ROLE}`)
  await admin.end()
  await migrate(withDatabase(embedded.url, 'template'))
  await embedded.stop()
  return readCluster(join(dataDir, 'postgres'))
}

/** Measures one load on a new database of a new start of Postgres. */
async function runRound(cluster: Cluster, settings: Record<string, string>) {
  const postmaster = await ensurePostmaster(cluster, settings)
  const admin = connect(toUrl(cluster.superuser, postmaster), {
    name: 'bench',
    max: 1,
    settings: { statement_timeout: 0 },
  })
  await admin.unsafe(`create database round template template owner ${SERVER_ROLE}`)
  const url = withDatabase(toUrl(cluster.serverRole, postmaster), 'round')
  const server = await startTidings(url, await makeKey(url))
  const run = (seconds: number) =>
    load({ url: server.url, headers: server.headers, connections: 128, seconds, keyed: 0.3 })
  const readWal = async () => {
    const [row] = await admin<[{ bytes: number }]>`
      select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as bytes
    `
    return row.bytes
  }
  await run(1)
  const readMs = await openPostgresClock(admin)
  const [wal, ms] = [await readWal(), readMs()]
  const { acknowledged, perSecond, p99Ms } = await run(SECONDS)
  const micros = ((readMs() - ms) * 1000) / acknowledged
  const walBytes = ((await readWal()) - wal) / acknowledged
  await stopCandidates([server])
  await admin.unsafe('drop database round with (force)')
  await admin.end()
  await stopPostmaster(cluster)
  return { micros, walBytes, perSecond, p99Ms }
}
