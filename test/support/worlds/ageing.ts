import { parseId } from '../../../src/base/ids.ts'
import type { Queryable } from '../../../src/database/sql.ts'

/** Makes the stored answers of a project older by `interval`, like `24 hours`. */
export async function ageAnswers(
  sql: Queryable,
  projectId: string,
  interval: string,
): Promise<void> {
  await sql`
    update idempotency_keys set
      expires_at = (expires_at at time zone 'UTC' - ${interval}::interval) at time zone 'UTC'
    where project_id = ${projectId}
  `
}

/** Makes the rate window of a key (`key_…`) older by `interval`. */
export async function ageWindow(sql: Queryable, keyId: string, interval: string): Promise<void> {
  await sql`
    update rate_windows set started_at = started_at - ${interval}::interval
    where key_id = ${parseId('key', keyId) ?? null}
  `
}

/** Makes every sign-in failure older by `interval`: a database belongs to one test file. */
export async function ageFailures(sql: Queryable, interval: string): Promise<void> {
  await sql`update sign_in_failures set last_at = last_at - ${interval}::interval`
}

/** Sets the last failure of every lane to `interval` ago, regardless of the test's duration. */
export async function setLastFailures(sql: Queryable, interval: string): Promise<void> {
  await sql`update sign_in_failures set last_at = clock_timestamp() - ${interval}::interval`
}

/** Makes all sessions of an account older by `interval`: creation, last use and confirmation. */
export async function ageSessions(
  sql: Queryable,
  accountId: string,
  interval: string,
): Promise<void> {
  await sql`
    update sessions set
      created_at = created_at - ${interval}::interval,
      last_seen_at = last_seen_at - ${interval}::interval,
      verified_at = verified_at - ${interval}::interval
    where account_id = ${accountId}
  `
}

/** Makes the last password confirmation of an account older by `interval`. */
export async function ageVerification(
  sql: Queryable,
  sessionId: string,
  interval = '11 minutes',
): Promise<void> {
  await sql`
    update sessions set verified_at = verified_at - ${interval}::interval where id = ${sessionId}
  `
}

/** Makes an invite (`inv_…`) older by `interval`. */
export async function ageInvite(sql: Queryable, id: string, interval: string): Promise<void> {
  await sql`
    update invites set expires_at = expires_at - ${interval}::interval
    where id = ${parseId('inv', id) ?? null}
  `
}

/** Makes the deletions of a project's hidden events older by `interval`. */
export async function ageDeletion(
  sql: Queryable,
  projectId: string,
  interval: string,
): Promise<void> {
  await sql`
    update events set
      deleted_at = (deleted_at at time zone 'UTC' - ${interval}::interval) at time zone 'UTC'
    where project_id = ${projectId}
  `
}

/** Makes the events of a project up to `seq` older by `interval`. */
export async function ageEvents(
  sql: Queryable,
  projectId: string,
  { seq, interval }: { seq: number; interval: string },
): Promise<void> {
  await sql`
    update events set
      created_at = (created_at at time zone 'UTC' - ${interval}::interval) at time zone 'UTC'
    where project_id = ${projectId} and seq <= ${seq}
  `
  await sql`
    update threads set told_at = (told_at at time zone 'UTC' - ${interval}::interval) at time zone 'UTC'
    where project_id = ${projectId}
  `
}

/** Makes a membership older by `interval`. */
export async function ageMembership(
  sql: Queryable,
  accountId: string,
  interval: string,
): Promise<void> {
  await sql`
    update memberships set created_at = created_at - ${interval}::interval
    where account_id = ${accountId}
  `
}

/** Makes failures, pauses and secrets of a webhook (its uuid) older by `interval`. */
export async function ageWebhook(sql: Queryable, id: string, interval: string): Promise<void> {
  await sql`
    update webhooks set
      failing_since = failing_since - ${interval}::interval,
      previous_until = previous_until - ${interval}::interval,
      disabled_at = disabled_at - ${interval}::interval,
      tested_at = tested_at - ${interval}::interval
    where id = ${id}
  `
  await sql`
    update delivery_targets set
      paused_until = paused_until - ${interval}::interval, single_until = single_until - ${interval}::interval
    where kind = 'webhook' and id = ${id}
  `
}

/** Makes all pending deliveries of a project due: ends waits between attempts, and leases. */
export async function makeDeliveriesDue(sql: Queryable, projectId: string): Promise<void> {
  await sql`update outbox set available_at = now() where project_id = ${projectId}`
}
