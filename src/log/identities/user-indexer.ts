import { toReason } from '../../base/errors.ts'
import { pause } from '../../base/functions.ts'
import { NIL_UUID } from '../../base/ids.ts'
import { logger } from '../../base/log.ts'
import { startLoop } from '../../base/loop.ts'
import { createSemaphore } from '../../base/semaphore.ts'
import type { Pool } from '../../database/pool.ts'
import type { Queryable } from '../../database/sql.ts'

const log = logger('identities')
/** Identifies that arrive within this time share a step. */
const COLLECT_MS = 50
const STEP_MS = 25
/** The interval of the search for projects with users that another process has left unindexed. */
const SWEEP_EVERY_MS = 5_000
/** The number of users that are marked in one statement. */
const PAGE_SIZE = 1_000

export interface UserIndexer {
  /** Indexes the changed users of a project soon; uuids. */
  wake(projectId: string, organizationId: string): void
  /** Resolves after the current steps. Searches also find users who are not indexed. */
  stop(): Promise<void>
}

/**
 * Starts the indexer of users' search words, behind identify. It works in steps. Organizations take
 * turns. After each step a project pauses for as long as the step took, so that other work gets at
 * least half of the time.
 */
export function startUserIndexer(pool: Pool): UserIndexer {
  const steps = createSemaphore({ total: 1 })
  const stopped = new AbortController()
  const { signal } = stopped
  const running = new Map<string, Promise<void>>()

  async function index(projectId: string, organizationId: string): Promise<void> {
    await pause(COLLECT_MS, signal)
    try {
      let after = NIL_UUID
      for (let isMore = true; isMore && !signal.aborted;) {
        const startedMs = performance.now()
        const last = await steps.run(organizationId, () => runStep(pool, projectId, after))
        // At the end, it begins anew with users who have changed meanwhile.
        isMore = last !== null || after !== NIL_UUID
        after = last ?? NIL_UUID
        await pause(performance.now() - startedMs, signal)
      }
    } catch (error) {
      warn(toReason(error))
    }
    running.delete(projectId)
  }

  function wake(projectId: string, organizationId: string): void {
    if (signal.aborted || running.has(projectId)) return
    running.set(projectId, index(projectId, organizationId))
  }

  async function sweep(): Promise<void> {
    const rows = await pool.run(
      sql => sql<{ project_id: string; organization_id: string }[]>`
        select project_id, organization_id from list_unindexed_projects()
      `,
    )
    for (const row of rows) wake(row.project_id, row.organization_id)
  }

  const sweeping = startLoop({
    everyMs: SWEEP_EVERY_MS,
    runsAtOnce: true,
    round: sweep,
    onFailure: warn,
  })

  return {
    wake,
    async stop() {
      stopped.abort()
      await sweeping.stop()
      await Promise.all(running.values())
    },
  }
}

/** Marks all users of a project, in pages: the indexers of servers index them anew. */
export async function reindexUsers(sql: Queryable, projectId: string): Promise<void> {
  for (let after: string | null = NIL_UUID; after !== null;) {
    const [row]: { last: string | null }[] = await sql`
      with page as materialized (
        select id, updated_at
        from identities
        where project_id = ${projectId} and id > ${after}
        order by id
        limit ${PAGE_SIZE}
      ), marked as (
        insert into unindexed_users (project_id, id, changed_at)
        select ${projectId}::uuid, id, updated_at from page
        on conflict do nothing
      )
      select (select id from page order by id desc limit 1) as last
    `
    after = row?.last ?? null
  }
}

/**
 * Indexes users of a project after an id for some milliseconds. Returns the last one, or null if
 * there was none.
 */
async function runStep(pool: Pool, projectId: string, after: string): Promise<string | null> {
  const [row] = await pool.run(
    sql => sql<[{ last: string | null }]>`
      select index_users(${projectId}, ${after}, ${STEP_MS}) as last
    `,
  )
  return row.last
}

function warn(reason: string): void {
  log.warning('Indexing users failed, and will be retried: {reason}', { reason })
}
