import type { Pool } from '../db/pool.ts'
import { registerGauge } from '../metrics.ts'

type Batches = Record<'admission' | 'appender' | 'identityWriter', { readonly waiting: number }>
type Pools = Record<
  'admissions' | 'appends' | 'identifies' | 'reads' | 'searches' | 'sessions' | 'users',
  Pool
>

/** Registers gauges of waiting work and of connections in use. */
export function registerWorkGauges(
  { admission, appender, identityWriter }: Batches,
  { admissions, appends, identifies, reads, searches, sessions, users }: Pools,
): void {
  registerGauge('tidings_batch_queue_length', 'Requests that wait for the next batch.', {
    label: 'batch',
    readEach: {
      admission: () => admission.waiting,
      append: () => appender.waiting,
      identify: () => identityWriter.waiting,
    },
  })
  registerGauge('tidings_database_pool_waiting', 'Work that waits for a connection.', {
    label: 'pool',
    readEach: {
      api: () => reads.waiting,
      search: () => searches.waiting,
      session: () => sessions.waiting,
    },
  })
  registerGauge('tidings_database_pool_in_use', 'Connections in use.', {
    label: 'pool',
    readEach: {
      admission: () => admissions.running,
      append: () => appends.running,
      identify: () => identifies.running,
      api: () => reads.running,
      search: () => searches.running,
      session: () => sessions.running,
      users: () => users.running,
    },
  })
}
