import type { Fragment, Queryable } from '../../database/sql.ts'

/** The columns of a row `e` of `events` that `eventTextJoins` reads. */
export function storedColumns(sql: Queryable): Fragment {
  return sql`
    e.project_id, e.id, e.seq, e.channel_id, e.user_ref, e.occurred_at, e.created_at, e.title, e.description, e.icon,
    e.tags, e.metadata, e.source, e.notify
  `
}

/**
 * Joins a row `e` with its channel `c`, and with `t`, the row of the SQL function `event_text`. The
 * lateral join forces one look-up for each event, whatever the size of the table.
 */
export function eventTextJoins(sql: Queryable): Fragment {
  return sql`
    left join lateral (
      select c.public_id, c.name, c.slug, c.name_slug
      from channel_by_id(e.project_id, e.channel_id) c limit 1
    ) c on true
    cross join lateral event_text(
      e.project_id, e.id, e.seq, c.public_id, c.name, e.user_ref, e.occurred_at, e.created_at, e.title,
      e.description, e.icon, e.tags, e.metadata, e.source, e.notify
    ) t
  `
}
