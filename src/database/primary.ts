import type { Socket } from 'node:net'
import postgres from 'postgres'
import { toReason } from '../base/errors.ts'
import { withTimeout } from '../base/functions.ts'
import { logger } from '../base/log.ts'
import { CONNECTION_REFUSALS } from './explanation.ts'
import { toDriverOptions } from './session.ts'
import { openOrFail, openSocket } from './socket.ts'
import { describeHost, parseUrl, withHost, type Host } from '../base/database-url.ts'

/** Finds the primary among the hosts of a database URL. */
export interface Primary {
  /** The primary that was found last. Undefined before the first search. */
  readonly host: Host | undefined
  /** Searches the primary. Rejects if no host is one. Concurrent calls share a search. */
  find(): Promise<Host>
  /** Calls `leave` when another host has become the primary. Returns a function that ends this. */
  onMove(leave: () => void): () => void
  /** Makes the next connection search the primary. */
  forget(): void
  /** Resolves to a socket for postgres.js. It is connected, or fails with the reason. */
  open(): Promise<Socket>
}

const log = logger('db')
/** Connections that are opened within this time share a search. */
const FRESH_MS = 1_000
const PROBE_S = 2
/** After the first primary, a search waits so long for another one with a later timeline. */
const GRACE_MS = 250

const primaries = new Map<string, Primary>()

/** Returns the primary of a database URL. Undefined for a URL with a single host. */
export function primaryOf(url: string): Primary | undefined {
  if (parseUrl(url).hosts.length < 2) return undefined
  const primary = primaries.get(url) ?? createPrimary(url)
  primaries.set(url, primary)
  return primary
}

function createPrimary(url: string): Primary {
  const { hosts, tls } = parseUrl(url)
  let found: Host | undefined
  let foundMs = -Infinity
  let latestTimeline = 0
  let finding: Promise<Host> | undefined
  const followers = new Set<() => void>()

  async function search(): Promise<Host> {
    const probes = hosts.map(host => probe(url, host))
    const { host: best, timeline } = await findBest(probes, latestTimeline)
    const hasMoved = found !== undefined && found !== best
    latestTimeline = timeline
    found = best
    foundMs = performance.now()
    if (hasMoved) {
      log.warning('The primary of the database is now {host}', { host: describeHost(best) })
      for (const leave of followers) leave()
    }
    return best
  }

  const find = () => (finding ??= search().finally(() => (finding = undefined)))
  const forget = () => void (foundMs = -Infinity)
  return {
    get host() {
      return found
    },
    find,
    forget,
    onMove(leave) {
      followers.add(leave)
      return () => void followers.delete(leave)
    },
    open: () =>
      openOrFail(async () => {
        try {
          const isFresh = performance.now() - foundMs < FRESH_MS
          const opened = found && isFresh && (await openSocket(found, tls).catch(() => undefined))
          return opened || (await openSocket(await find(), tls))
        } catch (error) {
          forget()
          throw error
        }
      }),
  }
}

/** The role of a host now. */
export interface HostRole {
  host: Host
  role: 'the primary' | 'a standby' | 'unreachable'
  /** Why it is unreachable. */
  reason?: string
}

/** Asks all hosts of a database URL for their role. */
export function listHosts(url: string): Promise<HostRole[]> {
  return Promise.all(
    parseUrl(url).hosts.map(host =>
      probe(url, host).then(
        ({ isPrimary }): HostRole => ({ host, role: isPrimary ? 'the primary' : 'a standby' }),
        (error: unknown): HostRole => ({ host, role: 'unreachable', reason: toReason(error) }),
      ),
    ),
  )
}

/** The state of a host. */
export interface State {
  host: Host
  isPrimary: boolean
  isWritable: boolean
  timeline: number
}

/**
 * Returns the primary to use; undefined if there is none. A promotion begins a new timeline, so a
 * former primary that still runs is not chosen: it has an earlier one than another host, or than
 * the primary that was found before.
 */
export function choosePrimary(states: readonly State[], latestTimeline: number): State | undefined {
  const [best] = states
    .filter(({ isPrimary, timeline }) => isPrimary && timeline >= latestTimeline)
    .toSorted((a, b) => b.timeline - a.timeline || Number(b.isWritable) - Number(a.isWritable))
  return best
}

/** Returns the primary of hosts that are being asked. Throws why none of them is one. */
export async function findBest(probes: Promise<State>[], latestTimeline: number): Promise<State> {
  const states: State[] = []
  const enough = Promise.withResolvers<void>()
  let timer: ReturnType<typeof setTimeout> | undefined
  const all = Promise.allSettled(
    probes.map(async pending => {
      const state = await pending
      states.push(state)
      if (!choosePrimary([state], latestTimeline)) return state
      timer ??= setTimeout(enough.resolve, GRACE_MS)
      return state
    }),
  )
  const results = await Promise.race([all, enough.promise])
  clearTimeout(timer)
  // If all hosts reply, none of them has taken over: pg_upgrade has begun with timeline 1 again.
  const haveAllReplied = results?.every(({ status }) => status === 'fulfilled')
  const best = choosePrimary(states, haveAllReplied ? 0 : latestTimeline)
  if (best) return best
  throw toNoPrimary(results ?? [])
}

/** Returns the error of a search without a result. A wrong password is not a matter of waiting. */
function toNoPrimary(results: readonly PromiseSettledResult<State>[]): Error {
  const errors = results.flatMap(one => (one.status === 'rejected' ? [one.reason as unknown] : []))
  for (const error of errors)
    if (error instanceof postgres.PostgresError && CONNECTION_REFUSALS[error.code]) return error
  const reasons = results.map(one =>
    one.status === 'fulfilled'
      ? `${describeHost(one.value.host)} is a ${one.value.isPrimary ? 'former primary' : 'standby'}`
      : toReason(one.reason),
  )
  return Object.assign(new Error(`No host of the database is a primary: ${reasons.join('; ')}`), {
    code: 'CONNECTION_NO_PRIMARY',
  })
}

async function probe(url: string, host: Host): Promise<State> {
  const address = parseUrl(withHost(url, host))
  const { tls, path } = address
  const sql = postgres({
    ...toDriverOptions(address, 'probe', { statement_timeout: PROBE_S * 1_000 }),
    max: 1,
    prepare: false,
    connect_timeout: PROBE_S,
    ...(path === undefined && {
      socket: () => openOrFail(() => openSocket(host, tls, PROBE_S * 1_000)),
    }),
  })
  try {
    // A frozen host accepts the connection, and never replies.
    const asked = sql<[Omit<State, 'host'>]>`
      select
        not pg_is_in_recovery() as "isPrimary",
        not pg_is_in_recovery() and not current_setting('default_transaction_read_only')::boolean
          as "isWritable",
        case when pg_is_in_recovery() then 0
          -- The first eight digits of the name of a WAL file are its timeline.
          else ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int
        end as timeline
    `
    const [row] = await withTimeout(PROBE_S * 1_000, asked, () => {
      throw new Error(`${describeHost(host)} does not respond`)
    })
    return { host, ...row }
  } finally {
    void sql.end({ timeout: 0 }).catch(() => {})
  }
}
