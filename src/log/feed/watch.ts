import { toArray } from '../../database/arrays.ts'
import type { Pool } from '../../database/pool.ts'
import type { Queryable } from '../../database/sql.ts'
import { isExpired } from '../../access/guard/sessions.ts'
import { toId } from '../../base/ids.ts'
import { toMessage } from './messages.ts'
import { logFailure } from './read-events.ts'

const ROUND_MS = 1_000
/** How many rounds are left out while no hint comes. */
const QUIET_ROUNDS = 5
/** The sessions of one round. The others follow in the next ones. */
const MAX_SESSIONS = 200
/** The projects of an account that are watched, the oldest first. */
const MAX_WATCHED_PROJECTS = 100

/** A socket that watches all projects of its account. */
interface Watcher {
  readonly data: { readonly sessionId: string }
  send(text: string): void
}

interface WatchOptions {
  pool: Pool
  /** Returns true if hints from other processes arrive. */
  isListening(): boolean
}

export type Watch = ReturnType<typeof startWatch>

/**
 * Tells sockets the head of each log that their account may read, at most once a second. One
 * statement reads the heads of up to 200 sessions, together with the access of each. So it needs no
 * subscription, and costs the same however many events come.
 */
export function startWatch({ pool, isListening }: WatchOptions) {
  /** The heads that were sent, by the uuid of the project; undefined before the first message. */
  const watchers = new Map<Watcher, Map<string, number> | undefined>()
  let isHinted = false
  let quietRounds = 0
  let startedMs = -Infinity
  let running: Promise<void> | undefined

  async function round(): Promise<void> {
    const chosen = [...watchers.keys()].slice(0, MAX_SESSIONS)
    const heads = await pool.run(sql =>
      readHeads(
        sql,
        chosen.map(({ data }) => data.sessionId),
      ),
    )
    chosen.forEach((watcher, at) => {
      if (!watchers.has(watcher)) return
      const sent = watchers.get(watcher)
      const found = Object.entries(heads[at] ?? {})
      const changed = found.filter(([id, head]) => sent?.get(id) !== head)
      // The watchers that have waited go first in the next round.
      watchers.delete(watcher)
      watchers.set(watcher, new Map(found))
      if (sent && changed.length === 0) return
      const named = changed.map(([id, head]) => [toId('prj', id), head] as const)
      watcher.send(toMessage({ type: 'heads', heads: Object.fromEntries(named) }))
    })
  }

  function start(): void {
    isHinted = false
    quietRounds = 0
    startedMs = performance.now()
    running = round()
      .catch(error => logFailure('Reading the heads of watched projects failed', error))
      .finally(() => (running = undefined))
  }

  const timer = setInterval(() => {
    if (watchers.size === 0 || running) return
    const isDue = isHinted || !isListening() || ++quietRounds >= QUIET_ROUNDS
    if (isDue || watchers.size > MAX_SESSIONS) start()
  }, ROUND_MS)

  return {
    /** Starts telling a socket the heads, at once unless a round began within the last second. */
    add(watcher: Watcher): void {
      if (watchers.has(watcher)) return
      watchers.set(watcher, undefined)
      isHinted = true
      if (!running && performance.now() - startedMs >= ROUND_MS) start()
    },
    remove: (watcher: Watcher): boolean => watchers.delete(watcher),
    /** Says that some log has new events. */
    hint(): void {
      isHinted = true
    },
    async stop(): Promise<void> {
      clearInterval(timer)
      await running
    },
  }
}

/** Returns the heads by the uuid of each project that a session may read, for each session. */
async function readHeads(
  sql: Queryable,
  sessionIds: readonly string[],
): Promise<Record<string, number>[]> {
  const rows = await sql<{ heads: string }[]>`
    select coalesce(h.heads, '{}') as heads
    from unnest(${toArray(sessionIds)}::uuid[]) with ordinality as g (session_id, ord)
      cross join lateral (
        select json_object_agg(r.id, r.last_seq)::text as heads
        from (
          select p.id, l.last_seq
          from sessions s
            join memberships m on m.account_id = s.account_id
            join organizations o on o.id = m.organization_id and o.deleted_at is null
              and not lacks_second_factor(o.requires_second_factor, s.is_multi_factor)
            join projects p on p.organization_id = o.id and p.deleted_at is null
            cross join lateral log_of(p.id) l
          where s.id = g.session_id and not ${isExpired(sql)}
          order by p.id
          limit ${MAX_WATCHED_PROJECTS}
        ) r
      ) h
    order by g.ord
  `
  return rows.map(({ heads }) => JSON.parse(heads) as Record<string, number>)
}
