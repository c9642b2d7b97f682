import { writeAudit, type Actor } from '../audit/audit.ts'
import { transact, type Pool } from '../db/pool.ts'
import { Fault, toReason } from '../errors.ts'
import { pause, withTimeout } from '../functions.ts'
import { toId } from '../ids.ts'
import { logger } from '../log.ts'
import { createSemaphore } from '../semaphore.ts'
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

/** The progress of an erasure in this process. */
interface ErasureProgress {
  isDone: boolean
  /** The number of events so far from which the user was removed. */
  events: number
}

/** The state of an erasure. */
export interface ErasureState extends ErasedUser {
  isDone: boolean
}

export interface Eraser {
  /**
   * Erases a user. Resolves after 5 s at the latest; unless `isDone`, the rest follows in the
   * background. The end is written to the audit log. For a user who was erased before, it returns
   * that erasure. Throws `not_found`. Throws `unavailable` when too many erasures of the
   * organization wait.
   */
  erase(target: ErasureTarget, author: Actor): Promise<ErasureState>
  /** Resolves after the current step. Another start continues what is left. */
  stop(): Promise<void>
}

interface Erasure {
  organizationId: string
  progress: ErasureProgress
  /** Settles when the identity is deleted. */
  begun: Promise<void>
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

  /** Begins an erasure, unless `hasBegun`, and works on it until it ends or this process stops. */
  function start(target: ErasureTarget, author?: Actor, hasBegun = false): Erasure {
    const name = toName(target)
    const progress = { isDone: false, events: 0 }
    const begun = hasBegun
      ? Promise.resolve()
      : steps.run(target.organizationId, async () => {
          await begin(pool, key, target, author)
          await list(target)
        })
    const ended = begun
      .then(() => turns.run(target.organizationId, () => proceed(target, progress)))
      .finally(() => running.delete(name))
    // Without a waiting request, the sweep continues after an error.
    ended.catch(() => {})
    const started = { organizationId: target.organizationId, progress, begun, ended }
    running.set(name, started)
    return started
  }

  function isFull(organizationId: string): boolean {
    const own = running.values().filter(erasure => erasure.organizationId === organizationId)
    return own.toArray().length >= MAX_PER_ORGANIZATION
  }

  /** Adds the names of an erasure to the list, in the database and in the file. */
  async function list(target: ErasureTarget): Promise<void> {
    for (;;) {
      const names = await pool.run(sql => listNextNames(sql, key, target))
      if (names.size === 0) return
      // Before they are marked: after a failure, the next try appends them again.
      await appendErasedNames(file, [...names.values()]).catch(warnOfFile)
      await pool.run(sql => markListed(sql, target, names.keys()))
    }
  }

  async function proceed(target: ErasureTarget, progress: ErasureProgress): Promise<void> {
    while (!signal.aborted) {
      const startedMs = performance.now()
      const row = await steps.run(target.organizationId, async () => {
        await list(target)
        return runStep(pool, target)
      })
      // Without a row, another process has ended it.
      if (row) progress.events = Number(row.events)
      if (!row || row.is_done) {
        progress.isDone = true
        return
      }
      await pause(performance.now() - startedMs, signal)
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
          where e.touched_at < now() - interval '10 s'
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
      start(target, undefined, true)
    }
  }

  let completedMs = -Infinity

  /** Adds to the file what the database alone has. */
  async function completeFile(): Promise<void> {
    if (performance.now() < completedMs + FILE_EVERY_MS) return
    completedMs = performance.now()
    await pool.run(sql => completeErasedFile(sql, key, file)).catch(warnOfFile)
  }

  const sweeping = (async () => {
    do {
      await completeFile()
      await sweep().catch((error: unknown) => {
        log.warning('Continuing erasures failed, and will be retried: {reason}', {
          reason: toReason(error),
        })
      })
    } while (await pause(SWEEP_EVERY_MS, signal))
  })()

  return {
    async erase(target, author) {
      const untilMs = performance.now() + waitMs
      const known = running.get(toName(target))
      if (!known && isFull(target.organizationId)) {
        throw new Fault('unavailable', 'Too many users are being erased. Try again shortly.')
      }
      const { progress, begun, ended } = known ?? start(target, author)
      const isFound = await begun
        .then(() => withTimeout(Math.max(untilMs - performance.now(), 0), ended, () => {}))
        .then(
          () => true,
          (error: unknown) => {
            if (!(error instanceof Fault) || error.code !== 'not_found') throw error
            return false
          },
        )
      const erased = await pool.run(sql => findErasedUser(sql, key, target))
      if (!erased) throw userNotFound()
      return isFound ? { ...erased, ...progress } : { ...erased, isDone: true }
    },
    async stop() {
      stopped.abort()
      await sweeping
      await Promise.allSettled(running.values().map(({ ended }) => ended))
    },
  }
}

/** Returns the state of an erasure as responses show it. */
export function toErased(userId: string, { events, erasedAt, key }: ErasureState): Erased {
  return {
    userId,
    events,
    erasedAt: erasedAt.toISOString(),
    erasedBy: key && { id: toId('key', key.id), name: key.name },
  }
}

/**
 * Deletes the identity and its aliases. A name without anything in the database can be that of a
 * user in the archive. Throws `not_found` if there is nothing to erase.
 */
async function begin(
  pool: Pool,
  key: ErasureKey,
  { projectId, userId }: ErasureTarget,
  author: Actor | undefined,
): Promise<void> {
  const text = author ? JSON.stringify(author) : null
  const [row] = await pool.run(
    sql => sql<[{ has_begun: boolean }]>`
      select begin_erasure(${projectId}, ${userId}, ${text}::text::json) as has_begun
    `,
  )
  if (row.has_begun) return
  const last = await pool.run(sql => findErasedUser(sql, key, { projectId, userId }))
  const [archived] = await pool.run(
    sql => sql<[{ has_begun: boolean }]>`
      select begin_archive_erasure(
        ${projectId}, ${userId}, ${text}::text::json, ${last?.erasedAt ?? null}
      ) as has_begun
    `,
  )
  if (!archived.has_begun) throw userNotFound()
}

/** Runs one step. The last one writes the audit log. Undefined if the erasure has ended before. */
function runStep(
  pool: Pool,
  { organizationId, projectId, userId }: ErasureTarget,
): Promise<StepRow | undefined> {
  return transact(pool, async tx => {
    const [row] = await tx<StepRow[]>`
      select is_done, events, identity_id, author
      from continue_erasure(${projectId}, ${userId}, ${STEP_MS})
    `
    if (row?.is_done && row.author) {
      // Without the user_id, because the audit log outlives the erasure.
      await writeAudit(tx, row.author, {
        action: 'user.erased',
        organizationId,
        projectId,
        target: row.identity_id ?? undefined,
        details: { events: Number(row.events) },
      })
    }
    return row
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
