import { writeAudit, type Actor } from '../../access/audit/audit.ts'
import { Fault, toReason } from '../../base/errors.ts'
import { pause, withTimeout } from '../../base/functions.ts'
import { toId } from '../../base/ids.ts'
import { logger } from '../../base/log.ts'
import { startLoop } from '../../base/loop.ts'
import { createSemaphore } from '../../base/semaphore.ts'
import { transact, type Pool } from '../../database/pool.ts'
import { appendErasedNames, completeErasedFile } from './erased-file.ts'
import {
  findErasedUser,
  listNextNames,
  markListed,
  type ErasedUser,
  type ErasureKey,
} from './erased-users.ts'
import type { Erased } from './schema.ts'

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

/** A user to erase, by the exact user_id; the other ids are uuids. */
interface ErasureTarget {
  organizationId: string
  projectId: string
  userId: string
}

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
  erase(target: ErasureTarget, author: Actor): Promise<ErasureState>
  /** Resolves after the current step. Another start continues what is left. */
  stop(): Promise<void>
}

/** The erasures of a user that this process works on, one after the other. */
interface Erasure {
  target: ErasureTarget
  /** Another one can have begun since the start of the last step. */
  hasMore: boolean
  isDone: boolean
  ended: Promise<void>
}

interface StepRow {
  is_done: boolean
  events: string
  identity_id: string | null
  author: Actor | null
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
  const turns = createSemaphore({ perKey: 1 })
  const steps = createSemaphore({ total: 1 })
  const stopped = new AbortController()
  const { signal } = stopped
  // The erasures of this process, by project and user.
  const running = new Map<string, Erasure>()
  // The users whose erasure begins.
  const beginning = new Set<ErasureTarget>()

  /** Works on the erasures of a user until they end or this process stops. */
  function start(target: ErasureTarget): Erasure {
    const erasure: Erasure = { target, hasMore: false, isDone: false, ended: Promise.resolve() }
    running.set(toName(target), erasure)
    erasure.ended = turns
      .run(target.organizationId, () => proceed(erasure))
      .finally(() => remove(erasure))
    // Without a waiting request, the sweep continues after an error.
    erasure.ended.catch(() => {})
    return erasure
  }

  function remove(erasure: Erasure): void {
    const name = toName(erasure.target)
    if (running.get(name) === erasure) running.delete(name)
  }

  /** Begins an erasure, and starts it in this process. Throws `not_found`. */
  async function ask(target: ErasureTarget, author: Actor): Promise<Erasure> {
    beginning.add(target)
    try {
      await steps.run(target.organizationId, async () => {
        await begin(pool, target, author)
        await list(target)
      })
    } finally {
      beginning.delete(target)
    }
    const erasure = running.get(toName(target)) ?? start(target)
    erasure.hasMore = true
    return erasure
  }

  function isFull(organizationId: string): boolean {
    const targets = [...beginning, ...running.values().map(({ target }) => target)]
    return (
      targets.filter(target => target.organizationId === organizationId).length >=
      MAX_PER_ORGANIZATION
    )
  }

  /** Adds the names of an erasure to the list, in the database and in the file. */
  async function list(target: ErasureTarget): Promise<void> {
    for (;;) {
      const names = await pool.run(sql => listNextNames(sql, key, target))
      if (names.length === 0) return
      // Before they are marked: after a failure, the next try appends them again.
      await appendErasedNames(file, names).catch(warnOfFile)
      await pool.run(sql => markListed(sql, target.projectId, names))
    }
  }

  async function proceed(erasure: Erasure): Promise<void> {
    const { target } = erasure
    while (!signal.aborted) {
      const startedMs = performance.now()
      const hasEnded = await steps.run(target.organizationId, async () => {
        erasure.hasMore = false
        await list(target)
        return runStep(pool, target)
      })
      if (hasEnded && !erasure.hasMore) {
        erasure.isDone = true
        // At once: an erasure that begins from now on needs a start.
        remove(erasure)
        return
      }
      // A step is shorter when it meets rows that another transaction has locked.
      await pause(Math.max(performance.now() - startedMs, STEP_MS), signal)
    }
  }

  async function sweep(): Promise<void> {
    const rows = await pool.run(
      sql => sql<{ organization_id: string; project_id: string; user_id: string }[]>`
        with stale as materialized (
          select e.project_id, e.user_id, e.touched_at
          from erasures e
            -- A deleted project has no log.
            join event_logs l on l.project_id = e.project_id
          where e.touched_at not between now() - interval '10 s' and now() + interval '10 s'
          order by e.touched_at
          limit ${SWEEP_PAGE_SIZE}
        )
        select p.organization_id, e.project_id, e.user_id
        from stale e
          join projects p on p.id = e.project_id
        order by e.touched_at
      `,
    )
    for (const row of rows) {
      const target = {
        organizationId: row.organization_id,
        projectId: row.project_id,
        userId: row.user_id,
      }
      if (signal.aborted || running.has(toName(target)) || isFull(target.organizationId)) continue
      start(target)
    }
  }

  let completedMs = -Infinity

  /** Adds to the file what the database alone has. */
  async function completeFile(): Promise<void> {
    if (performance.now() < completedMs + FILE_EVERY_MS) return
    completedMs = performance.now()
    await pool.run(sql => completeErasedFile(sql, key, file)).catch(warnOfFile)
  }

  const sweeping = startLoop({
    everyMs: SWEEP_EVERY_MS,
    runsAtOnce: true,
    async round() {
      await completeFile()
      await sweep()
    },
    onFailure: reason =>
      log.warning('Continuing erasures failed, and will be retried: {reason}', { reason }),
  })

  return {
    async erase(target, author) {
      const untilMs = performance.now() + waitMs
      if (!running.has(toName(target)) && isFull(target.organizationId)) {
        throw new Fault('unavailable', 'Too many users are being erased. Try again shortly.')
      }
      const erasure = await ask(target, author).catch((error: unknown) => {
        if (error instanceof Fault && error.code === 'not_found') return undefined
        throw error
      })
      if (erasure)
        await withTimeout(Math.max(untilMs - performance.now(), 0), erasure.ended, () => {})
      const isDone = erasure?.isDone ?? true
      const erased = await pool.run(sql => findErasedUser(sql, key, target))
      if (!erased) throw userNotFound()
      return { ...erased, isDone }
    },
    async stop() {
      stopped.abort()
      await sweeping.stop()
      await Promise.allSettled(running.values().map(({ ended }) => ended))
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

/** Deletes the identity and its aliases. Throws `not_found` if there is nothing to erase. */
async function begin(
  pool: Pool,
  { projectId, userId }: ErasureTarget,
  author: Actor | undefined,
): Promise<void> {
  const text = author ? JSON.stringify(author) : null
  const [row] = await pool.run(
    sql => sql<[{ has_begun: boolean }]>`
      select begin_erasure(${projectId}, ${userId}, ${text}::text::json) as has_begun
    `,
  )
  if (!row.has_begun) throw userNotFound()
}

/**
 * Runs one step. The last one of an erasure writes the audit log. Returns whether no erasure of the
 * user is left.
 */
function runStep(
  pool: Pool,
  { organizationId, projectId, userId }: ErasureTarget,
): Promise<boolean> {
  return transact(pool, async tx => {
    const [row] = await tx<StepRow[]>`
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
    const left = await tx`
      select from erasures where project_id = ${projectId} and user_id = ${userId} limit 1
    `
    return left.count === 0
  })
}

function warnOfFile(error: unknown): void {
  log.warning('The list of erased users could not be written, and will be retried: {reason}', {
    reason: toReason(error),
  })
}

function toName({ projectId, userId }: ErasureTarget): string {
  return `${projectId} ${userId}`
}

function userNotFound(): Fault {
  return new Fault('not_found', 'No user has this user_id')
}
