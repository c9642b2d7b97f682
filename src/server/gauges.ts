import type { Pool } from '../db/pool.ts'
import { registerGauge } from '../metrics.ts'

type Batches = Record<'admission' | 'appender' | 'identifier', { readonly waiting: number }>
type Pools = Record<'admissions' | 'appends' | 'reads', Pool>

/** Shows in the metrics what waits, and what is under way. */
export function registerWorkGauges(
  { admission, appender, identifier }: Batches,
  { admissions, appends, reads }: Pools,
): void {
  registerGauge('tidings_batch_queue_length', 'Requests that wait for the next batch.', {
    admission: () => admission.waiting,
    append: () => appender.waiting,
    identify: () => identifier.waiting,
    api: () => reads.waiting,
  })
  registerGauge('tidings_database_pool_in_use', 'Work under way in a pool of connections.', {
    admission: () => admissions.running,
    append: () => appends.running,
    api: () => reads.running,
  })
}
