import { writeAudit, type Actor } from '../../access/audit/audit.ts'
import { Fault, toReason } from '../../base/errors.ts'
import { pause, withTimeout } from '../../base/functions.ts'
import { toId } from '../../base/ids.ts'
import { logger } from '../../base/log.ts'
import { startLoop } from '../../base/loop.ts'
import { createSemaphore, tooManyAtOnce } from '../../base/semaphore.ts'
import { transact, type Pool } from '../../database/pool.ts'
import type { Queryable } from '../../database/sql.ts'
import { appendErasedNames, completeErasedFile } from './erased-file.ts'
import {
  findErasedUser,
  listNextNames,
  markListed,
  type ErasedUser,
  type ErasureKey,
} from './erased-users.ts'
import type { Erased } from './schema.ts'
import type { UserRef } from './users.ts'

const log = logger('identities')
const STEP_MS = 25
/** How long a request waits for the end of its erasure. */
const WAIT_MS = 5_000
/** How many erasures of an organization may be in progress. */
const MAX_PER_ORGANIZATION = 200
/** The interval of the search for erasures that another process has left unfinished. */
const SWEEP_EVERY_MS = 5_000
const SWEEP_PAGE_SIZE = 100
/** The interval at which the file gets the erasures of other servers. */
const FILE_EVERY_MS = 10 * 60_000

/** The state of an erasure. `events` are those so far from which the user was removed. */
export interface ErasureState extends ErasedUser {
  isDone: boolean
}

export interface Eraser {
  /**
   * Erases a user. Resolves after 5 s at the latest; unless `isDone`, the rest follows in the
   * background. The end is written to the audit log. A user who came back during an erasure is
   * erased again. For a user who was erased before, it returns that erasure. Throws `not_found`.
   * Throws `unavailable` when too many erasures of the organization wait.
   */
  erase(target: UserRef, author: Actor): Promise<ErasureState>
  /** Resolves after the current step. Another start continues what is left. */
  stop(): Promise<void>
}

interface EraserOptions {
  pool: Pool
  key: ErasureKey
  /** The file with the list of erased users. */
  file: string
  waitMs?: number | undefined
}

/**
 * Creates the only worker of erasures in this process. It works on one erasure of an organization
 * at a time, in steps. Erasures of several organizations take turns. After each step an erasure
 * pauses for as long as the step took, so that other work gets at least half of the time.
 */
export function createEraser({ pool, key, file, waitMs = WAIT_MS }: EraserOptions): Eraser {
  const turns = createSemaphore({ perKey: 1, maxWaiting: MAX_PER_ORGANIZATION - 1 })
  const begins = createSemaphore({ perKey: MAX_PER_ORGANIZATION, maxWaiting: 0 })
  const steps = createSemaphore({ total: 1 })
  const stopped = new AbortController()
  const { signal } = stopped
  // The work of this process, by project and user. It resolves to whether the erasures have ended.
  const running = new Map<string, Promise<boolean>>()

  /**
   * Works on the erasures of a user until they end or this process stops. Leaves them to a later
   * sweep while too many others wait.
   */
  function start(target: UserRef): Promise<boolean> {
    const name = toName(target)
    const started = running.get(name)
    if (started) return started
    if (!turns.hasRoom(target.organizationId)) return Promise.resolve(false)
    const ended = turns
      .run(target.organizationId, () => proceed(target))
      .finally(() => {
        if (running.get(name) === ended) running.delete(name)
      })
    // Without a waiting request, the sweep continues after an error.
    ended.catch(() => {})
    running.set(name, ended)
    return ended
  }

  /** Begins an erasure. Returns false if there is nothing to erase. */
  async function begin(target: UserRef, author: Actor): Promise<boolean> {
    const { projectId, userId } = target
    const [row] = await pool.run(
      sql => sql<[{ has_begun: boolean }]>`
        select begin_erasure(${projectId}, ${userId}, ${JSON.stringify(author)}::text::json) as has_begun
      `,
    )
    if (row.has_begun) await list(target)
    return row.has_begun
  }

  /** Adds the names of an erasure to the list, in the database and in the file. */
  async function list(target: UserRef): Promise<void> {
    for (;;) {
      const names = await pool.run(sql => listNextNames(sql, key, target))
      if (names.length === 0) return
      // Before they are marked: after a failure, the next try appends them again.
      await appendErasedNames(file, names).catch(warnOfFile)
      await pool.run(sql => markListed(sql, target.projectId, names))
    }
  }

  async function proceed(target: UserRef): Promise<boolean> {
    while (!signal.aborted) {
      const startedMs = performance.now()
      const hasEnded = await steps.run(target.organizationId, async () => {
        await list(target)
        const hasEnded = await runStep(pool, target)
        // Within the step: an erasure that begins after it needs a start.
        if (hasEnded) running.delete(toName(target))
        return hasEnded
      })
      if (hasEnded) return true
      // A step is shorter when it meets rows that another transaction has locked.
      await pause(Math.max(performance.now() - startedMs, STEP_MS), signal)
    }
    return false
  }

  /** Starts erasures that another process has left unfinished. */
  async function sweep(): Promise<void> {
    const targets = await pool.run(listStale)
    for (const target of targets) if (!signal.aborted) void start(target)
  }

  const loops = [
    startLoop({
      everyMs: SWEEP_EVERY_MS,
      runsAtOnce: true,
      round: sweep,
      onFailure: reason =>
        log.warning('Continuing erasures failed, and will be retried: {reason}', { reason }),
    }),
    // Adds to the file what the database alone has.
    startLoop({
      everyMs: FILE_EVERY_MS,
      runsAtOnce: true,
      round: () => completeErasedFile(pool, key, file),
      onFailure: warnOfFile,
    }),
  ]

  return {
    async erase(target, author) {
      const untilMs = performance.now() + waitMs
      const { organizationId } = target
      const beginInTurn = () => steps.run(organizationId, () => begin(target, author))
      const isRunning = running.has(toName(target))
      if (!isRunning && !turns.hasRoom(organizationId)) throw tooManyAtOnce()
      const hasBegun = await (isRunning ? beginInTurn() : begins.run(organizationId, beginInTurn))
      const leftMs = Math.max(untilMs - performance.now(), 0)
      const isDone = !hasBegun || (await withTimeout(leftMs, start(target), () => false))
      const erased = await pool.run(sql => findErasedUser(sql, key, target))
      if (!erased) throw new Fault('not_found', 'No user has this user_id')
      return { ...erased, isDone }
    },
    async stop() {
      stopped.abort()
      await Promise.all(loops.map(loop => loop.stop()))
      await Promise.allSettled(running.values())
    },
  }
}

/** Returns the state of an erasure as responses show it. */
export function toErased(
  userId: string,
  { events, erasedAt, key, exportedMonths }: ErasureState,
): Erased {
  return {
    userId,
    events,
    erasedAt: erasedAt.toISOString(),
    erasedBy: key && { id: toId('key', key.id), name: key.name },
    ...(exportedMonths.length > 0 && { exportedMonths }),
  }
}

/** Lists erasures that no process has worked on lately. */
async function listStale(sql: Queryable): Promise<UserRef[]> {
  const rows = await sql<{ organization_id: string; project_id: string; user_id: string }[]>`
    with stale as materialized (
      select e.project_id, e.user_id, e.touched_at
      from erasures e
        -- A deleted project has no log.
        join event_logs l on l.project_id = e.project_id
      where e.touched_at not between now() - interval '10 s' and now() + interval '10 s'
    )
    select p.organization_id, e.project_id, e.user_id
    from stale e
      join projects p on p.id = e.project_id
    -- Organizations take turns.
    order by row_number() over (partition by p.organization_id order by e.touched_at), e.touched_at
    limit ${SWEEP_PAGE_SIZE}
  `
  return rows.map(row => ({
    organizationId: row.organization_id,
    projectId: row.project_id,
    userId: row.user_id,
  }))
}

/**
 * Runs one step. The last one of an erasure writes the audit log. Returns whether no erasure of the
 * user is left.
 */
function runStep(pool: Pool, { organizationId, projectId, userId }: UserRef): Promise<boolean> {
  return transact(pool, async tx => {
    const [row] = await tx<
      { is_done: boolean; events: string; identity_id: string | null; author: Actor | null }[]
    >`
      select is_done, events, identity_id, author
      from continue_erasure(${projectId}, ${userId}, ${STEP_MS})
    `
    // Another process has ended it.
    if (!row) return true
    if (!row.is_done) return false
    if (row.author) {
      // Without the user_id, because the audit log outlives the erasure.
      await writeAudit(tx, row.author, {
        action: 'user.erased',
        organizationId,
        projectId,
        target: row.identity_id ?? undefined,
        details: { events: Number(row.events) },
      })
    }
    // A request to a hook can name anybody.
    await tx`delete from hook_requests where project_id = ${projectId}`
    const left = await tx`
      select from erasures where project_id = ${projectId} and user_id = ${userId} limit 1
    `
    return left.count === 0
  })
}

function warnOfFile(reason: unknown): void {
  log.warning('The list of erased users could not be written, and will be retried: {reason}', {
    reason: toReason(reason),
  })
}

function toName({ projectId, userId }: UserRef): string {
  return `${projectId} ${userId}`
}
