import { setTimeout as sleep } from 'node:timers/promises'
import { describeHost, parseUrl, withHost } from '../base/database-url.ts'
import { toReason } from '../base/errors.ts'
import { withTimeout } from '../base/functions.ts'
import { logger } from '../base/log.ts'
import { startLoop } from '../base/loop.ts'
import { registerGauge } from '../base/metrics.ts'
import { createPool, type Pool, type PoolOptions } from './pool.ts'
import type { Sql } from './sql.ts'

/** A read replica: a standby that answers reads. */
export interface Replica {
  /** Its host, for messages. */
  name: string
  /** Opens a pool of connections to it. */
  open(options: PoolOptions): Pool
  /** Leaves it out for a while, after an error. */
  leaveOut(reason: string): void
}

export interface Replicas {
  readonly all: readonly Replica[]
  /**
   * Resolves to a replica that has everything that was committed before the call. Undefined if none
   * has it within 100 ms. Then the primary has to be read.
   */
  choose(): Promise<Replica | undefined>
  end(): Promise<void>
}

export interface ReplicasOptions {
  /** The URL of the replicas. Each host is one. */
  url: string
  /** Connections to the primary, which nothing slow uses. */
  primary: Pool
}

/** A place in the WAL. A promotion begins another timeline, whose places are others. */
interface Position {
  lsn: bigint
  timeline: number
}

const log = logger('db')
/** How long a read waits for a replica that lacks the latest commits. */
const WAIT_MS = 100
const PAUSES_MS = [2, 4, 8, 16, 32]
const CHECK_MS = 1_000
/** A replica that has lacked commits for so long is left out until it has them. */
const MAX_LAG_MS = 5_000
/** How long a replica is left out after it failed, or did not have the latest commits in time. */
const REST_MS = 1_000
const DEADLINE_MS = 3_000

/**
 * Opens the read replicas of a database. A reader sees everything that was committed before it
 * asked, on whatever server: each read asks the primary for its position in the WAL, and a replica
 * for its own. Reads that arrive together share these questions.
 */
export function openReplicas({ url, primary }: ReplicasOptions): Replicas {
  const members = parseUrl(url).hosts.map(host =>
    createMember(withHost(url, host), describeHost(host)),
  )
  let turn = 0
  const askPrimary = shareLater(() => primary.run(readPrimary))

  async function check(): Promise<void> {
    const position = await askPrimary().catch(() => undefined)
    if (position) await Promise.all(members.map(member => member.check(position)))
  }

  const checks = startLoop({
    everyMs: CHECK_MS,
    round: check,
    onFailure: reason => log.warning('The replicas could not be checked: {reason}', { reason }),
  })
  registerGauge('tidings_replica_lag_seconds', 'How long a read replica has lacked commits.', {
    label: 'replica',
    readEach: () => Object.fromEntries(members.map(({ name, lagMs }) => [name, lagMs() / 1_000])),
  })
  registerGauge('tidings_replica_used', '1 if a read replica is used, 0 if it is left out.', {
    label: 'replica',
    readEach: () => Object.fromEntries(members.map(({ name, isOut }) => [name, Number(!isOut())])),
  })
  return {
    all: members,
    async choose() {
      const first = turn++
      const candidates = members
        .map((_, nth) => members[(first + nth) % members.length])
        .filter(member => member !== undefined && !member.isOut())
      if (candidates.length === 0) return undefined
      const position = await askPrimary().catch(() => undefined)
      if (!position) return undefined
      for (const member of candidates) if (await member?.reaches(position)) return member
      return undefined
    },
    async end() {
      void checks.stop()
      await Promise.all(members.map(member => member.end()))
    },
  }
}

function createMember(url: string, name: string) {
  const pools: Pool[] = []
  const open = (options: PoolOptions) => {
    const pool = createPool(url, { ...options, deadlineMs: DEADLINE_MS })
    pools.push(pool)
    return pool
  }
  const positions = open({ name: 'replica position', max: 1 })
  const ask = shareLater(() => positions.run(readReplica))
  let known: Position | undefined
  let outUntilMs = -Infinity
  /** When it last had all commits. */
  let currentMs = performance.now()
  let isReported = false

  const has = (position: Position) =>
    known !== undefined && known.timeline === position.timeline && known.lsn >= position.lsn

  function leaveOut(reason: string): void {
    if (!isReported) log.warning('The replica {name} is left out: {reason}', { name, reason })
    isReported = true
    // It may come back as an earlier copy.
    known = undefined
    outUntilMs = performance.now() + REST_MS
  }

  /** Resolves to whether it has everything up to the position, in time. */
  async function isReached(position: Position): Promise<boolean> {
    for (const pauseMs of PAUSES_MS) {
      if (has(position)) return true
      known = await ask()
      if (has(position)) return true
      if (known.timeline !== position.timeline) return false
      await sleep(pauseMs)
    }
    return false
  }

  return {
    name,
    open,
    leaveOut,
    isOut: () => performance.now() < outUntilMs || performance.now() - currentMs > MAX_LAG_MS,
    lagMs: () => Math.max(0, performance.now() - currentMs - CHECK_MS),
    async reaches(position: Position): Promise<boolean> {
      try {
        const isThere = await withTimeout(WAIT_MS, isReached(position), () => false)
        if (!isThere) leaveOut('it does not have the latest commits')
        return isThere
      } catch (error) {
        leaveOut(toReason(error))
        return false
      }
    },
    /** Notes whether it has everything up to a position, for its lag. */
    async check(position: Position): Promise<void> {
      const startedMs = performance.now()
      known = undefined
      const isThere = await isReached(position).catch(() => false)
      if (!isThere) return
      currentMs = startedMs
      if (isReported && startedMs > outUntilMs) {
        isReported = false
        log.info('The replica {name} is used again', { name })
      }
    },
    async end() {
      await Promise.all(pools.map(pool => pool.end()))
    },
  }
}

interface PositionRow {
  lsn: string
  timeline: number
}

async function readPrimary(sql: Sql): Promise<Position> {
  const [row] = await sql<[PositionRow]>`
    select
      pg_current_wal_flush_lsn()::text as lsn,
      -- The first eight digits of the name of a WAL file are its timeline.
      ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::int as timeline
  `
  return toPosition(row)
}

/** Reads the position of a replica. A former primary that runs on has another timeline. */
async function readReplica(sql: Sql): Promise<Position> {
  const [row] = await sql<[PositionRow]>`
    select
      case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_flush_lsn() end::text as lsn,
      case when pg_is_in_recovery() then c.timeline_id
        else ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::int
      end as timeline
    from pg_control_checkpoint() c
  `
  return toPosition(row)
}

/** Parses an LSN such as `16/B374D848`. */
function toPosition({ lsn, timeline }: PositionRow): Position {
  const [high = '0', low = '0'] = lsn.split('/')
  return { lsn: (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`), timeline }
}

/**
 * Returns a function whose calls share the next reading. A reading that has already begun is not
 * shared, because it may be older than the call.
 */
function shareLater<Result>(read: () => Promise<Result>): () => Promise<Result> {
  let running: Promise<unknown> = Promise.resolve()
  let next: Promise<Result> | undefined
  return () =>
    (next ??= running.then(() => {
      next = undefined
      const reading = read()
      running = reading.catch(() => {})
      return reading
    }))
}
