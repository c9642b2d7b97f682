import type { Sql, Tx } from '../../src/database/sql.ts'
import { until } from './until.ts'

/** A lock that other connections wait for until it is released. */
export interface DatabaseLock extends AsyncDisposable {
  /** Resolves when `count` connections wait for a lock in this database. */
  untilBlocked(count?: number): Promise<void>
  /** Cancels the statements that wait for a lock, like a Postgres timeout. */
  cancelBlocked(): Promise<void>
  release(): Promise<void>
}

/** Locks the logs of projects, like a writer that stopped within its transaction. */
export function lockLog(sql: Sql, ...projectIds: string[]): Promise<DatabaseLock> {
  return hold(
    sql,
    tx => tx`select from event_logs where project_id in ${tx(projectIds)} for update`,
  )
}

/** Keeps new events of a project from being dispatched for pushes. */
export async function lockPushDispatch(sql: Sql, projectId: string): Promise<DatabaseLock> {
  // A new project has no cursor that could be locked.
  await sql`
    insert into delivery_cursors (project_id, kind, seq) values (${projectId}, 'push', 0)
    on conflict do nothing
  `
  return hold(
    sql,
    tx => tx`
      select from delivery_cursors where project_id = ${projectId} and kind = 'push' for update
    `,
  )
}

/** Locks the events: every reader and writer waits. */
export function lockEvents(sql: Sql): Promise<DatabaseLock> {
  return lockTable(sql, 'events')
}

/** Locks a table: every reader and writer waits. */
export function lockTable(sql: Sql, table: string): Promise<DatabaseLock> {
  return hold(sql, tx => tx`lock table ${tx(table)} in access exclusive mode`)
}

/** Returns the answer to a request that waits for an account, which `change` changes meanwhile. */
export async function sendWhile<Answer>(
  sql: Sql,
  accountId: string,
  change: (tx: Tx) => PromiseLike<unknown>,
  send: () => Promise<Answer>,
): Promise<Answer> {
  const lock = await hold(
    sql,
    tx => tx`select from accounts where id = ${accountId} for no key update`,
    change,
  )
  const answer = send()
  await lock.untilBlocked()
  await lock.release()
  return answer
}

/** Keeps the locks of a transaction until the release. */
export async function hold(
  sql: Sql,
  lock: (tx: Tx) => PromiseLike<unknown>,
  change?: (tx: Tx) => PromiseLike<unknown>,
): Promise<DatabaseLock> {
  const held = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const ended = sql.begin(async tx => {
    await lock(tx)
    held.resolve()
    await released.promise
    await change?.(tx)
  })
  await Promise.race([held.promise, ended])
  const release = async () => {
    released.resolve()
    await ended
  }
  return {
    async untilBlocked(count = 1) {
      await until(async () => (await listBlocked(sql)).length >= count)
    },
    async cancelBlocked() {
      for (const pid of await listBlocked(sql)) await sql`select pg_cancel_backend(${pid})`
    },
    release,
    [Symbol.asyncDispose]: release,
  }
}

/** Returns the process ids of the connections that wait for a lock in this database. */
export async function listBlocked(sql: Sql): Promise<number[]> {
  const rows = await sql<{ pid: number }[]>`
    select pid from pg_stat_activity
    where datname = current_database() and backend_type = 'client backend' and wait_event_type = 'Lock'
  `
  return rows.map(({ pid }) => pid)
}
