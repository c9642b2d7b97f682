import type { Queryable } from '../db/sql.ts'

/** Why no webhook was told of an event, where the project has some: a sentence for the page of the event. */
export const LEFT_OUT =
  'No webhook was for it: each is for other channels, was switched off, or was made later'

/** Undefined where there is no webhook, where records may have gone, or never were. */
export async function explainSilence(
  sql: Queryable,
  { projectId, eventId }: { projectId: string; eventId: string },
): Promise<{ reason: string; at: Date } | undefined> {
  const [row] = await sql<{ created_at: Date }[]>`
    select e.created_at
    from events e
      join delivery_kinds k on k.kind = 'webhook' and k.since <= e.created_at
    where e.project_id = ${projectId} and e.id = ${eventId} and e.deleted_at is null
      -- Records are kept for 30 days.
      and e.created_at > now() - interval '29 days'
      and exists (select from webhooks w where w.project_id = e.project_id and w.deleted_at is null)
  `
  return row && { reason: LEFT_OUT, at: row.created_at }
}
