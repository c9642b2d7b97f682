import { statfs } from 'node:fs/promises'
import { toReason } from '../base/errors.ts'
import { withTimeout } from '../base/functions.ts'
import { NIL_UUID } from '../base/ids.ts'
import { logger } from '../base/log.ts'
import { registerGauge } from '../base/metrics.ts'
import type { Pool } from '../database/pool.ts'
import type { Sql } from '../database/sql.ts'
import { readIndexLag } from '../log/events/search-index.ts'

/** A disconnected network disk never replies. */
const DISK_MS = 1_000
/** Scrapes within this time share one reading. */
const FRESH_MS = 5_000
/** A scrape waits no longer for the database. */
const WAIT_MS = 2_000
/** Counts stop here, so that a reading stays cheap. */
const MAX_COUNTED = 100_000
const MAX_STANDBYS = 20
/** The ids of deliveries follow their times, so the oldest is among the first of them. */
const FIRST_DELIVERIES = 100

const log = logger('metrics')

type ByName = Readonly<Record<string, number>>
/** Values by the names of gauges. With a label, a gauge has one for each value of the label. */
type Figures = Readonly<Record<string, number | ByName | null>>

/** Gauges of the whole installation, which are the same on every server. Times are in seconds. */
const FIGURES: readonly [name: string, help: string, label?: string][] = [
  ['tidings_database_size_bytes', 'Size of the database.'],
  ['tidings_database_wal_bytes', 'Size of the WAL of Postgres.'],
  ['tidings_database_connections', 'Connections to the database, of every program.'],
  ['tidings_database_max_connections', 'Connections that Postgres accepts.'],
  ['tidings_replication_lag_bytes', 'WAL that a standby has not replayed.', 'standby'],
  [
    'tidings_replication_lag_seconds',
    'How long the replay on a standby takes after the commit.',
    'standby',
  ],
  ['tidings_standby_synchronous', '1 if commits wait for a standby, else 0.', 'standby'],
  [
    'tidings_dead_letters',
    'Deliveries that were given up and can be replayed, counted up to 100,000.',
    'kind',
  ],
  [
    'tidings_outbox_oldest_age_seconds',
    'Time since the oldest pending delivery was requested.',
    'kind',
  ],
  [
    'tidings_push_refused_devices',
    'Devices refused by a push service that accepts no push of this server.',
    'service',
  ],
  ['tidings_search_unindexed_events', 'Events that could be indexed for search and are not.'],
  ['tidings_search_lag_seconds', 'How long the oldest of these events could have been indexed.'],
]

/** Registers the gauges of the installation. They are absent while the database does not reply. */
export function registerInstallationGauges(pool: Pool): void {
  const read = shareReadings(() => readFigures(pool))
  for (const [name, help, label] of FIGURES) {
    const readOne = async () => (await read())?.[name] ?? undefined
    registerGauge(
      name,
      `${help} The same on every server.`,
      label === undefined
        ? { read: readOne as () => Promise<number | undefined> }
        : { label, readEach: readOne as () => Promise<ByName | undefined> },
    )
  }
}

/** Returns `read` with shared results. They resolve to undefined on failure, or when it is slow. */
function shareReadings<Result>(read: () => Promise<Result>): () => Promise<Result | undefined> {
  let readMs = -Infinity
  let shared: Promise<Result | undefined> = Promise.resolve(undefined)
  return () => {
    if (performance.now() - readMs < FRESH_MS) return shared
    readMs = performance.now()
    const reading = read().catch((error: unknown) => {
      log.debug('The figures of the database could not be read: {reason}', {
        reason: toReason(error),
      })
      return undefined
    })
    return (shared = withTimeout(WAIT_MS, reading, () => undefined))
  }
}

/** Reads the figures. WAL and standbys need the rights of pg_monitor. */
async function readFigures(pool: Pool): Promise<Figures> {
  const row = await pool.run(readRow)
  const { events, seconds } = await pool.run(readIndexLag)
  return { ...row, tidings_search_unindexed_events: events, tidings_search_lag_seconds: seconds }
}

async function readRow(sql: Sql): Promise<Figures> {
  const [{ canMonitor }] = await sql<[{ canMonitor: boolean }]>`
    select pg_has_role(current_user, 'pg_monitor', 'usage') as "canMonitor"
  `
  const [row] = await sql<[Figures]>`
    with standbys as materialized (
      select
        application_name as name,
        bool_or(sync_state in ('sync', 'quorum'))::int as synchronous,
        max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn))::float8 as bytes,
        -- A standby that has replayed everything has no lag.
        coalesce(max(extract(epoch from replay_lag)), 0)::float8 as seconds
      from pg_stat_replication
      where replay_lsn is not null
      group by application_name
      order by application_name
      limit ${MAX_STANDBYS}
    ), kinds as materialized (
      select
        k.kind, coalesce(d.n, 0) as dead_letters,
        coalesce((
          select extract(epoch from now() - min(first.requested_at))
          from (
            select o.requested_at from outbox o
            -- Not the summaries of quiet hours.
            where o.kind = k.kind and o.project_id <> ${NIL_UUID} order by o.id limit ${FIRST_DELIVERIES}
          ) as first
        ), 0)::float8 as seconds
      from delivery_kinds k
        left join (
          select counted.kind, count(*) as n
          from (select kind from dead_letters limit ${MAX_COUNTED}) as counted
          group by counted.kind
        ) d on d.kind = k.kind
    )
    select
      database_bytes()::float8 as tidings_database_size_bytes,
      (select numbackends from pg_stat_database where datname = current_database()) as tidings_database_connections,
      current_setting('max_connections')::int as tidings_database_max_connections,
      ${canMonitor ? sql`(select sum(size)::float8 from pg_ls_waldir())` : sql`null`} as tidings_database_wal_bytes,
      (select json_object_agg(kind, dead_letters) from kinds) as tidings_dead_letters,
      (select json_object_agg(kind, seconds) from kinds) as tidings_outbox_oldest_age_seconds,
      (select json_object_agg(service, device_count) from refusing_push_services()) as tidings_push_refused_devices,
      (select json_object_agg(name, synchronous) from standbys) as tidings_standby_synchronous,
      (select json_object_agg(name, bytes) from standbys) as tidings_replication_lag_bytes,
      (select json_object_agg(name, seconds) from standbys) as tidings_replication_lag_seconds
  `
  return row
}

type Batches = Record<'admission' | 'appender' | 'identityWriter', { readonly waiting: number }>

/** Registers gauges of waiting requests. */
export function registerWorkGauges({ admission, appender, identityWriter }: Batches): void {
  registerGauge('tidings_batch_queue_length', 'Requests that wait for the next batch.', {
    label: 'batch',
    readEach: () => ({
      admission: admission.waiting,
      append: appender.waiting,
      identify: identityWriter.waiting,
    }),
  })
}

/** Registers gauges of the disk that has the embedded Postgres. They are absent if it is silent. */
export function registerDiskGauges(dataDir: string): void {
  registerGauge('tidings_data_disk_free_bytes', 'Free bytes on the disk of DATA_DIR.', {
    read: async () => (await readDiskUsage(dataDir))?.freeBytes,
  })
  registerGauge('tidings_data_disk_size_bytes', 'Bytes of the disk of DATA_DIR.', {
    read: async () => (await readDiskUsage(dataDir))?.totalBytes,
  })
}

interface DiskUsage {
  folder: string
  freeBytes: number
  totalBytes: number
}

/** Returns the space on the disk of a folder. Null when it is missing or silent for a second. */
export async function readDiskUsage(folder: string): Promise<DiskUsage | null> {
  const found = statfs(folder).then(
    ({ bsize, bavail, blocks }) => ({
      folder,
      freeBytes: bsize * bavail,
      totalBytes: bsize * blocks,
    }),
    () => null,
  )
  return withTimeout(DISK_MS, found, () => null)
}
