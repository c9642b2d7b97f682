import type { Fragment, Queryable } from '../db/sql.ts'

/** The columns of a row `e` of `events` that `eventColumns` and `eventJoins` read. */
export function storedColumns(sql: Queryable): Fragment {
  return sql`
    e.project_id, e.id, e.seq, e.channel_id, e.user_ref, e.occurred_at, e.created_at, e.title, e.description, e.icon,
    e.tags, e.metadata, e.source, e.notify
  `
}

/** The columns of an `EventRow`, from a row `e` and its `eventJoins`. */
export function eventColumns(sql: Queryable): Fragment {
  return sql`
    e.id, e.seq, c.public_id as channel_public_id, c.name as channel_name,
    coalesce(u.user_id, a.user_id, e.user_ref) as user_id,
    e.occurred_at, e.created_at, e.title, e.description, e.icon, to_json(e.tags)::text as tags,
    e.metadata::text as metadata, e.source, e.notify
  `
}

/**
 * Joins a row `e` with its channel `c`, and with the identity `u` or the alias `a` that
 * `e.user_ref` names. Lateral joins force one look-up for each event, whatever the sizes of the
 * tables.
 */
export function eventJoins(sql: Queryable): Fragment {
  return sql`
    left join lateral (
      select c.public_id, c.name, c.slug
      from channels c where c.project_id = e.project_id and c.id = e.channel_id limit 1
    ) c on true
    left join lateral (
      select u.user_id
      from identities u where u.project_id = e.project_id and u.user_id = e.user_ref limit 1
    ) u on true
    left join lateral (
      select a.user_id
      from aliases a where a.project_id = e.project_id and a.alias = e.user_ref limit 1
    ) a on true
  `
}
