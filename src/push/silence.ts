import type { Queryable } from '../db/sql.ts'
import { WITHHELD } from './reasons.ts'

/**
 * Why nobody was told of an event that has no record of a push: nobody had a device, for otherwise there would be one.
 * Undefined where records may have gone, or never were.
 */
export async function explainSilence(
  sql: Queryable,
  { projectId, eventId }: { projectId: string; eventId: string },
): Promise<{ reason: string; at: Date } | undefined> {
  const [row] = await sql<{ notify: boolean; created_at: Date }[]>`
    select e.notify, e.created_at
    from events e
      join delivery_kinds k on k.kind = 'push' and k.since <= e.created_at
    where e.project_id = ${projectId} and e.id = ${eventId} and e.deleted_at is null
      -- Records are kept for 30 days.
      and e.created_at > now() - interval '29 days'
  `
  const reason = row?.notify ? WITHHELD.noDevice : WITHHELD.notifyFalse
  return row && { reason, at: row.created_at }
}
