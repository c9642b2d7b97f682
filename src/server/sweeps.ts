import { isExpired } from '../access/guard/sessions.ts'
import { startReaper } from '../access/organizations/deletion.ts'
import { auditExpiredLinks, type Link } from '../access/sign-in/reset-links.ts'
import { toReason } from '../base/errors.ts'
import { logger } from '../base/log.ts'
import { startLoop, type Loop } from '../base/loop.ts'
import { createClockCheck, moveWaits } from '../database/clock.ts'
import { transact, type Pool } from '../database/pool.ts'
import type { Fragment, Queryable, Tx } from '../database/sql.ts'
import { fillNameSlugs } from '../log/channels/channels.ts'
import { startRetention, type RetentionOptions } from '../log/events/retention.ts'
import { startAnalyzer } from './grown-tables.ts'

const log = logger('sweeps')
const EVERY_MS = 60_000
const CLOCK_MS = 5_000
/** The maximum number of rows that one statement deletes. */
const BATCH = 500
/** The rows of failed sign-ins that are kept. Each takes about 150 bytes. */
const MAX_SIGN_IN_FAILURES = 100_000

/** Selects the rows of a table to delete. Conditions refer to the table as `s`. */
export interface Sweep {
  table: string
  /** A function that deletes up to a number of rows, and returns how many. It replaces the rest. */
  by?: string
  where?(sql: Queryable): Fragment
  /** An indexed column. The rows with the lowest values are deleted first. */
  orderBy?: string
  join?(sql: Queryable): Fragment
  /** Runs in the transaction that deleted these rows. */
  afterDelete?(tx: Tx, rows: readonly unknown[]): Promise<void>
}

/** All sweeps, in the order of their execution. */
export const SWEEPS: readonly Sweep[] = [
  { table: 'idempotency_keys', by: 'delete_expired_keys' },
  { table: 'rate_windows', where: sql => sql`s.started_at < now() - interval '1 hour'` },
  { table: 'sessions', where: isExpired },
  { table: 'used_challenges', where: sql => sql`s.expires_at < now()` },
  { table: 'setup_links', where: sql => sql`not is_unexpired(s.expires_at, '30 minutes')` },
  {
    table: 'reset_links',
    where: sql => sql`not is_unexpired(s.expires_at, '1 hour')`,
    afterDelete: (tx, rows) => auditExpiredLinks(tx, rows as Link[]),
  },
  { table: 'openid_used', where: sql => sql`s.expires_at < now()`, orderBy: 'expires_at' },
  { table: 'invites', where: sql => sql`not is_unexpired(s.expires_at, '7 days')` },
  // The list shows an expired token for a while.
  { table: 'management_tokens', where: sql => sql`s.expires_at < now() - interval '30 days'` },
  // Browsers delete the cookie of a known device after this time.
  { table: 'known_devices', where: sql => sql`s.last_used_at < now() - interval '400 days'` },
  // Older failures no longer delay a sign-in.
  { table: 'sign_in_failures', where: sql => sql`s.last_at < now() - interval '1 day'` },
  {
    // Attempts at invented accounts make rows, too. Rows with more failures take longer to make.
    table: 'sign_in_failures',
    where: sql => sql`
      s.ctid = any(array(
        select ctid from sign_in_failures order by failures desc, last_at desc offset ${MAX_SIGN_IN_FAILURES}
      ))
    `,
  },
  { table: 'hook_requests', where: sql => sql`s.at < now() - interval '30 days'` },
  { table: 'key_usage', where: sql => sql`s.hour < now() - interval '90 days'` },
  { table: 'audit_log', where: sql => sql`s.at < now() - interval '1 year'` },
  { table: 'deliveries', where: sql => sql`s.at < now() - interval '30 days'`, orderBy: 'at' },
  {
    table: 'withheld_deliveries',
    where: sql => sql`s.at < now() - interval '30 days'`,
    orderBy: 'at',
  },
  { table: 'dead_letters', where: sql => sql`s.at < now() - interval '90 days'`, orderBy: 'at' },
  {
    table: 'view_pushes',
    where: sql => sql`s.created_at < now() - interval '2 days'`,
    orderBy: 'created_at',
  },
  {
    table: 'acknowledgements',
    where: sql => sql`
      s.at < now() - interval '90 days' and not exists (
        select from threads t where t.project_id = s.project_id and t.thread_seq = s.thread_seq and t.severity >= 0
      )
    `,
  },
  { table: 'shown_pushes', where: sql => sql`s.at < now() - interval '1 day'` },
  { table: 'push_bursts', where: sql => sql`s.touched_at < now() - interval '1 day'` },
  {
    table: 'notification_settings',
    where: sql => sql`s.mute_until < now() - interval '1 hour' and s.collapse is null`,
  },
  {
    table: 'webhook_attempts',
    where: sql => sql`s.started_at < now() - interval '30 days'`,
    orderBy: 'started_at',
  },
  {
    table: 'webhook_attempts',
    join: sql => sql`join webhooks w on w.project_id = s.project_id and w.id = s.webhook_id`,
    where: sql => sql`w.deleted_at is not null`,
  },
  {
    table: 'webhooks',
    // An attempt can still be in flight when its webhook is deleted.
    where: sql => sql`
      s.deleted_at not between now() - interval '1 hour' and now() + interval '1 hour' and not exists (
        select from webhook_attempts a where a.project_id = s.project_id and a.webhook_id = s.id
      )
    `,
  },
]

/** Deletes one batch. Returns the number of deleted rows. */
export async function sweep(pool: Pool, one: Sweep): Promise<number> {
  const { afterDelete, by } = one
  if (by !== undefined) {
    const [row] = await pool.run(sql => sql<[{ n: number }]>`select ${sql(by)}(${BATCH}) as n`)
    return row.n
  }
  if (!afterDelete) return (await pool.run(sql => deleteBatch(sql, one))).count
  return transact(pool, async tx => {
    const rows = await deleteBatch(tx, one)
    await afterDelete(tx, rows)
    return rows.length
  })
}

/** Deletes one batch. Returns its rows if `afterDelete` needs them. */
async function deleteBatch(sql: Queryable, { table, where, orderBy, join, afterDelete }: Sweep) {
  return await sql`
    delete from ${sql(table)}
    where ctid = any(array(
      select s.ctid
      from ${sql(table)} s ${join?.(sql) ?? sql``}
      where ${where?.(sql) ?? sql`true`}
      ${orderBy === undefined ? sql`` : sql`order by s.${sql(orderBy)}`}
      limit ${BATCH}
      for update of s skip locked
    ))
    ${afterDelete ? sql`returning *` : sql``}
  `
}

/**
 * Starts deleting expired rows, events past their retention, and the rows of deleted projects,
 * checking the clock, analyzing tables that have grown, and filling in the slugs of channel names.
 */
export function startMaintenance(pool: Pool, options: RetentionOptions): Loop {
  const isClockUntrusted = createClockCheck(pool)
  const parts = [
    startSweeper(pool, isClockUntrusted),
    startLoop({
      everyMs: CLOCK_MS,
      runsAtOnce: true,
      async round(signal) {
        await isClockUntrusted()
        await moveWaits(pool, signal)
      },
      onFailure: warn,
    }),
    startLoop({
      everyMs: EVERY_MS,
      runsAtOnce: true,
      async round(signal) {
        while (!signal.aborted && (await pool.run(fillNameSlugs)));
      },
      onFailure: warn,
    }),
    startReaper(pool),
    startRetention(pool, options, isClockUntrusted),
    startAnalyzer(pool),
  ]
  return {
    async stop() {
      await Promise.all(parts.map(part => part.stop()))
    },
  }
}

/** Runs all sweeps every minute, in small batches. Runs none while the clock is untrusted. */
function startSweeper(pool: Pool, isClockUntrusted: () => Promise<boolean>): Loop {
  return startLoop({
    everyMs: EVERY_MS,
    async round(signal) {
      if (await isClockUntrusted()) return
      for (const one of SWEEPS) {
        try {
          while (!signal.aborted && (await sweep(pool, one)) === BATCH);
        } catch (error) {
          warn(toReason(error))
        }
      }
    },
    onFailure: warn,
  })
}

function warn(reason: string): void {
  log.warning('A sweep failed and will be retried in a minute: {reason}', { reason })
}
