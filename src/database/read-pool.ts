import { Counter } from 'prom-client'
import { Fault, toReason } from '../base/errors.ts'
import { registry } from '../base/metrics.ts'
import type { Pool, PoolOptions } from './pool.ts'
import type { Replica, Replicas } from './replicas.ts'
import { isUnavailable, QUERY_CANCELED, sqlState } from './sql.ts'

const reads = new Counter({
  name: 'tidings_reads_total',
  help: 'Reads that replicas may answer, by the server that answered: replica or primary.',
  labelNames: ['server'],
  registers: [registry],
})

/**
 * Returns a pool for work that only reads. It runs on a replica that has everything committed
 * before, and on the primary if none has it. If a replica fails, the primary does the work.
 */
export function createReadPool(
  primary: Pool,
  replicas: Replicas | undefined,
  options: PoolOptions,
): Pool {
  if (!replicas) return primary
  const pools = new Map(replicas.all.map(replica => [replica, replica.open(options)]))
  return toReadPool(primary, replicas, pools)
}

function toReadPool(primary: Pool, replicas: Replicas, pools: ReadonlyMap<Replica, Pool>): Pool {
  return {
    get sql() {
      return primary.sql
    },
    get running() {
      return primary.running
    },
    get waiting() {
      return primary.waiting
    },
    of: share =>
      toReadPool(
        primary.of(share),
        replicas,
        new Map([...pools].map(([replica, pool]) => [replica, pool.of(share)])),
      ),
    async run(work) {
      const replica = await replicas.choose()
      const pool = replica && pools.get(replica)
      if (replica && pool) {
        try {
          const result = await pool.run(work)
          reads.inc({ server: 'replica' })
          return result
        } catch (error) {
          if (!isFailure(error)) throw error
          replica.leaveOut(toReason(error))
        }
      }
      reads.inc({ server: 'primary' })
      return primary.run(work)
    },
    reconnect: primary.reconnect,
    leave: primary.leave,
    end: primary.end,
  }
}

/** Returns true for an error of a replica. A search that takes too long would do so anywhere. */
function isFailure(error: unknown): boolean {
  if (error instanceof Fault) return isUnavailable(error)
  const state = sqlState(error)
  return state === undefined ? isUnavailable(error) : state !== QUERY_CANCELED
}
