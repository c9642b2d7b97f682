import { connect, type Fragment, type Queryable } from './sql.ts'

/**
 * The classes of advisory locks. A lock of the server has two keys: its class, and a number within
 * the class. Locks of names that callers choose have one key, and never meet these. Functions of
 * /sql repeat the numbers.
 */
export const LOCKS = {
  /** Held while a migration is applied. */
  migrations: 71_342_001,
  /** Held by the process that removes deleted projects. */
  reaper: 71_342_002,
  /** Held by the server that makes a scheduled backup. */
  backups: 71_342_003,
  /** Held by a rotation of APP_SECRET, and by a reset of secrets. */
  secrets: 71_342_004,
  /** Held by an export. */
  export: 71_342_005,
  /** Held by a cleanup of events; the second key is a hash of the project. */
  cleanup: 71_342_006,
  /** Held by the indexer of users; the second key is a hash of the project. */
  userIndex: 71_342_007,
  /** Held by a process that matches the bells of an organization, the second key. */
  bells: 71_342_008,
  /** Held by a dispatch that creates a cursor; the second key is a hash of kind and project. */
  cursors: 71_342_009,
} as const

/** Returns the arguments of the lock of a class, or of a part of it. */
export function toLock(sql: Queryable, name: keyof typeof LOCKS, part?: string): Fragment {
  return sql`${LOCKS[name]}::int, ${part === undefined ? sql`0` : sql`hashtext(${part})`}`
}

/**
 * Runs `work`, and holds the lock of a class meanwhile, unless another session holds it. Calls
 * `onLost` when the connection ends, which releases the lock.
 */
export async function withLock<Result>(
  url: string,
  name: keyof typeof LOCKS,
  onLost: () => void,
  work: (isHeld: boolean) => Promise<Result>,
): Promise<Result> {
  // The work can take longer than connections live.
  const listener = { onNotify() {}, onClose: onLost }
  const holder = connect(url, { name: `${name} lock`, max: 1, listener })
  try {
    const [row] = await holder<[{ is_held: boolean }]>`
      select pg_try_advisory_lock(${toLock(holder, name)}) as is_held
    `
    return await work(row.is_held)
  } finally {
    await holder.end({ timeout: 1 })
  }
}

/** Returns whether a session holds the lock of a class. */
export async function isLockHeld(sql: Queryable, name: keyof typeof LOCKS): Promise<boolean> {
  const [row] = await sql<[{ is_held: boolean }]>`
    select exists (
      select from pg_locks
      where locktype = 'advisory' and granted and classid::bigint = ${LOCKS[name]} and objid = 0
        and database = (select oid from pg_database where datname = current_database())
    ) as is_held
  `
  return row.is_held
}

/** Returns the argument of the lock of a name that a caller has chosen. */
export function toNameLock(sql: Queryable, purpose: 'push endpoint', name: string): Fragment {
  return sql`lock_digest(${purpose}, ${name})`
}
