-- One row is the head of a project's log. Every writer of the project locks it first. So seq is
-- dense and in commit order, and one transaction at a time writes the project's channels, aliases
-- and idempotency keys.
create table event_logs (
  project_id uuid primary key references projects,
  last_seq bigint not null default 0,
  -- The last seq that retention has deleted; 0 for none. A reader with an earlier cursor has missed
  -- events. A missing seq after it is an event that a member deleted.
  expired_seq bigint not null default 0
) with (fillfactor = 50);

-- One row is an event. user_ref is the user_id or alias as it was sent. Reads resolve it.
create table events (
  project_id uuid not null,
  id uuid not null,
  channel_id uuid not null,
  seq bigint not null check (seq > 0),
  occurred_at timestamptz not null,
  created_at timestamptz not null,
  title text not null,
  description text,
  icon text,
  tags text[] not null,
  -- json, not jsonb: stored and returned as it was sent.
  metadata json not null,
  user_ref text,
  source text not null,
  notify boolean not null,
  -- A deleted event is hidden from every read at once. It is purged later.
  deleted_at timestamptz,
  -- Serves every reader of the log.
  primary key (project_id, seq),
  -- Serves the lookup of an event by its id.
  unique (project_id, id),
  foreign key (project_id, channel_id) references channels (project_id, id)
);

-- Serves the list of a channel's events.
create index events_of_channel on events (project_id, channel_id, seq);

-- Serves the list of a user's events, and erasure.
create index events_of_user on events (project_id, user_ref, seq) where user_ref is not null;

-- Serves the filters from and to.
create index events_of_time on events (project_id, occurred_at);

-- Serves the purge of deleted events.
create index events_deleted on events (deleted_at) where deleted_at is not null;

-- Returns the start of the hour (UTC) of a time, whatever the session's time zone.
create function hour_of(ts timestamptz) returns timestamptz
language sql immutable parallel safe
return date_trunc('hour', ts at time zone 'UTC') at time zone 'UTC';

-- One row is the number of a channel's events within an hour (UTC), without deleted events. It is
-- exact: only a transaction that has locked the project's log writes it.
create table event_counts (
  project_id uuid not null,
  hour timestamptz not null,
  channel_id uuid not null,
  n bigint not null check (n > 0),
  -- Serves histograms by the hour and today's counts.
  primary key (project_id, hour, channel_id),
  foreign key (project_id, channel_id) references channels (project_id, id)
) with (fillfactor = 70);

-- One row is a segment of a log, with 4,096 seqs, and the bounds of its events' occurred_at in
-- whole hours. A list with a time range reads only the segments that can match. Bounds stay when
-- events are deleted.
create table event_segments (
  project_id uuid not null references projects,
  segment bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  primary key (project_id, segment)
);

-- Appends events to the logs of their projects, in order. Returns one row for each; no row for a
-- deleted project.
--
-- Each event has one of two forms of its channel:
--   * channel_slug is null, and channel_id is the channel. Its public id and name are only needed
--     with an Idempotency-Key.
--   * channel_slug is set. The channel is looked up, or created from the other columns, and the
--     result contains it.
-- response_heads, response_tails and fingerprints are only needed with an Idempotency-Key.
--
-- Each statement of a volatile function has its own snapshot. So the second statement sees what
-- other transactions committed while the first one waited for the lock.
--
-- The settings pin one plan. Planning each time costs more than the work, and a plan made on empty
-- tables would scan them.
create function append_events(
  project_ids uuid[], ids uuid[], occurred_ats timestamptz[],
  channel_ids uuid[], channel_public_ids text[], channel_slugs text[], channel_names text[],
  titles text[], descriptions text[], icons text[], tag_lists text[], metadatas text[], user_refs text[],
  sources text[], notifies boolean[],
  keys text[], fingerprints bytea[], response_heads text[], response_tails text[]
) returns table (
  ord int, outcome text, seq bigint, at_ms bigint, channel_id uuid, channel_public_id text, channel_name text,
  user_id text, body text
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  at timestamptz;
  at_text text;
  -- The positions of keys that another transaction has locked. Their outcome is 'running'; this
  -- never waits for them.
  running bigint[] := lock_idempotency_keys(project_ids, keys);
  -- The projects of the other events.
  free_ids uuid[] := case when running = '{}' then project_ids else remove_positions(project_ids, running) end;
begin
  perform from event_logs l
    where l.project_id = any(free_ids)
    order by l.project_id
    for update;
  -- Read after the lock, so that created_at and seq have the same order.
  at := date_trunc('milliseconds', clock_timestamp());
  at_text := to_iso(at);

  return query
  with input as (
    select *
    from unnest(
      project_ids, ids, occurred_ats, channel_ids, channel_public_ids, channel_slugs, channel_names,
      titles, descriptions, icons, tag_lists, metadatas, user_refs, sources, notifies,
      keys, fingerprints, response_heads, response_tails
    ) with ordinality as i (
      project_id, id, occurred_at, channel_id, channel_public_id, channel_slug, channel_name,
      title, description, icon, tags, metadata, user_ref, source, notify,
      key, fingerprint, response_head, response_tail, ord
    )
    where i.ord <> all(running)
  ), resolved as (
    select
      i.project_id, i.id, i.occurred_at, i.channel_slug, i.title, i.description, i.icon, i.tags, i.metadata,
      i.user_ref, i.source, i.notify, i.key, i.fingerprint, i.response_head, i.response_tail, i.ord,
      l.last_seq,
      k.fingerprint as known_fingerprint, k.body as known_body,
      coalesce(k.expires_at > at, false) as is_repeat,
      i.channel_slug is not null and c.id is null as is_new_channel,
      coalesce(c.id, i.channel_id) as channel_id,
      coalesce(c.public_id, i.channel_public_id) as channel_public_id,
      coalesce(c.name, i.channel_name) as channel_name,
      coalesce(u.user_id, a.user_id, i.user_ref) as user_id
    from input i
      join lateral (
        select l.last_seq from event_logs l where l.project_id = i.project_id limit 1
      ) l on true
      left join lateral (
        select k.fingerprint, k.body, k.expires_at
        from idempotency_keys k where k.project_id = i.project_id and k.key = i.key limit 1
      ) k on i.key is not null
      left join lateral (
        select c.id, c.public_id, c.name
        from channels c where c.project_id = i.project_id and c.slug = i.channel_slug limit 1
      ) c on i.channel_slug is not null
      left join lateral (
        select u.user_id
        from identities u where u.project_id = i.project_id and u.user_id = i.user_ref limit 1
      ) u on i.user_ref is not null
      left join lateral (
        select a.user_id
        from aliases a where a.project_id = i.project_id and a.alias = i.user_ref limit 1
      ) a on i.user_ref is not null
  ), numbered as (
    select *,
      last_seq + count(*) filter (where not is_repeat) over (partition by project_id order by ord) as seq,
      hour_of(coalesce(occurred_at, at)) as hour
    from resolved
  ), ready as materialized (
    select *, case
        when is_repeat then known_body
        when key is not null then
          response_head || seq || ',"channelId":"' || channel_public_id || '","channelName":' || to_json(channel_name)::text
          || ',"userId":' || coalesce(to_json(user_id)::text, 'null') || ',"timestamp":"'
          || coalesce(to_iso(occurred_at), at_text) || '","createdAt":"' || at_text || response_tail
      end as body
    from numbered
  ), new_channels as (
    insert into channels (project_id, id, public_id, slug, name, icon, created_at)
    select distinct on (project_id, channel_slug)
      project_id, channel_id, channel_public_id, channel_slug, channel_name, icon, at
    from ready
    where is_new_channel and not is_repeat
    order by project_id, channel_slug, ord
  ), new_events as (
    insert into events (
      project_id, id, channel_id, seq, occurred_at, created_at, title, description, icon, tags, metadata,
      user_ref, source, notify
    )
    select
      project_id, id, channel_id, seq, coalesce(occurred_at, at), at, title, description, icon, tags::text[],
      metadata::json, user_ref, source, notify
    from ready
    where not is_repeat
  ), updated_counts as (
    insert into event_counts as n (project_id, hour, channel_id, n)
    select project_id, hour, channel_id, count(*)
    from ready
    where not is_repeat
    group by project_id, hour, channel_id
    order by project_id, hour, channel_id
    on conflict (project_id, hour, channel_id) do update set n = n.n + excluded.n
  ), updated_segments as (
    insert into event_segments as s (project_id, segment, first_at, last_at)
    select r.project_id, r.segment, r.first_at, r.last_at
    from (
      select
        project_id, seq >> 12 as segment, min(hour) as first_at, max(hour) + interval '1 hour' as last_at
      from ready
      where not is_repeat
      group by project_id, seq >> 12
    ) r
      left join lateral (
        select s.first_at, s.last_at
        from event_segments s where s.project_id = r.project_id and s.segment = r.segment limit 1
      ) s on true
    where s.first_at is null or r.first_at < s.first_at or r.last_at > s.last_at
    order by r.project_id, r.segment
    on conflict (project_id, segment) do update set
      first_at = least(s.first_at, excluded.first_at), last_at = greatest(s.last_at, excluded.last_at)
  ), stored_responses as (
    insert into idempotency_keys as k (project_id, key, fingerprint, status, user_id, body, expires_at)
    select project_id, key, fingerprint, 201, user_id, body, at + interval '24 hours'
    from ready
    where not is_repeat and key is not null
    on conflict (project_id, key) do update set
      fingerprint = excluded.fingerprint, status = excluded.status, user_id = excluded.user_id,
      body = excluded.body, expires_at = excluded.expires_at
  ), advanced_heads as (
    -- The rows exist, so this always updates. Unlike an update with a join, it finds each row by
    -- its key.
    insert into event_logs (project_id, last_seq)
    select project_id, max(seq) from ready where not is_repeat group by project_id
    on conflict (project_id) do update set last_seq = excluded.last_seq
  )
  select
    ord::int,
    case when not is_repeat then 'done' when known_fingerprint = fingerprint then 'replayed' else 'reused' end,
    seq, (extract(epoch from at) * 1000)::bigint,
    case when channel_slug is not null then channel_id end,
    case when channel_slug is not null then channel_public_id end,
    case when channel_slug is not null then channel_name end,
    user_id, body
  from ready;

  if running <> '{}' then
    return query
    select r.ord::int, 'running', null::bigint, null::bigint, null::uuid, null, null, null, null
    from unnest(running) as r (ord);
  end if;
end
$$;
