import { createPool, type Pool } from './pool.ts'

export interface PoolSettings {
  /** Server settings of each connection. */
  settings?: Record<string, string | number>
  /** The longest that this pool waits for an answer, if it is less than what all of them do. */
  deadlineMs?: number
}

/** The pools of one program to one database: what one of them finds dead, the others give up, too. */
export interface Pools {
  open(name: string, max: number, more?: PoolSettings): Pool
  end(): Promise<void>
}

export interface PoolsOptions {
  deadlineMs?: number | undefined
  /** Told with the pools when one has found its connections dead. */
  onSilence(): void
}

export function createPools(url: string, { deadlineMs, onSilence }: PoolsOptions): Pools {
  const pools: Pool[] = []
  return {
    open(name, max, { settings = {}, deadlineMs: own = Infinity } = {}) {
      const least = Math.min(own, deadlineMs ?? Infinity)
      const pool = createPool(url, {
        name,
        max,
        settings,
        deadlineMs: least === Infinity ? undefined : least,
        onSilence() {
          for (const other of pools) if (other !== pool) other.renew()
          onSilence()
        },
      })
      pools.push(pool)
      return pool
    },
    async end() {
      await Promise.all(pools.map(pool => pool.end()))
    },
  }
}
