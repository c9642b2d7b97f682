-- Returns the text of an event for readers: its uuid, and then its JSON from the end of the id on.
-- Only the process can write the public form of an id. Every read of events uses this function,
-- which the planner inlines.
--
-- user_id is the identity or the owner of the alias that user_ref names, or user_ref itself. Scalar
-- subqueries force one look-up for each event, whatever the sizes of the tables. In place of
-- `exists`, the planner could hash all identities.
create function event_text(
  project uuid, id uuid, seq bigint, channel_public_id text, channel_name text, user_ref text,
  occurred_at timestamptz, created_at timestamptz, title text, description text, icon text, tags text[],
  metadata json, source text, notify boolean
) returns table (text text, user_id text)
language sql stable parallel safe
begin atomic
  select
    concat(
      event_text.id, '","seq":', event_text.seq, ',"channelId":"', event_text.channel_public_id,
      '","channelName":', to_json(event_text.channel_name),
      ',"userId":', coalesce(to_json(u.user_id)::text, 'null'),
      ',"timestamp":"', to_iso(event_text.occurred_at), '","createdAt":"', to_iso(event_text.created_at),
      '","title":', to_json(event_text.title),
      ',"description":', coalesce(to_json(event_text.description)::text, 'null'),
      ',"icon":', coalesce(to_json(event_text.icon)::text, 'null'),
      ',"tags":', to_json(event_text.tags), ',"metadata":', event_text.metadata,
      ',"source":', to_json(event_text.source), ',"notify":', to_json(event_text.notify), '}'
    ),
    u.user_id
  from (
    select coalesce(
        (
          select coalesce(
              (
                select i.user_id
                from identities i where i.project_id = event_text.project and i.user_id = event_text.user_ref
              ),
              a.user_id
            )
          from aliases a where a.project_id = event_text.project and a.alias = event_text.user_ref
        ),
        event_text.user_ref
      ) as user_id
  ) u;
end;

-- Returns the UTF-8 bytes of the fields that make an event large. An int, because sums of
-- bigint are numeric and slow.
create function bytes_of_event(metadata json, description text) returns int
language sql immutable parallel safe
return octet_length(bytes_of_event.metadata::text) + coalesce(octet_length(bytes_of_event.description), 0);

-- Reads a log or one of its channels from start_seq, which is excluded. Returns the texts of the
-- first `page` matches in that order, with U+0001 between them. The channel is given by its id or
-- its slug. A match comes from one of `sources` and has all `tags`; null does not filter.
--
-- It reads at most `batch` events. Without a whole page, `candidates` is `batch` if there are more
-- events, and last_seq is the last one that it read.
--
-- A page also ends after the match with which the bytes of metadata and descriptions reach
-- max_bytes. The texts then have at least as many bytes, and the other results have no meaning.
--
-- The settings pin one plan, whatever the statistics say. Planning each time costs more than the
-- work, and a plan made on small tables would scan them after they have grown. The comparison of
-- rows keeps the plan from reading other channels by the primary key.
create function list_events(
  project uuid, by_channel_id uuid, by_channel_slug text, sources text[], tags text[],
  start_seq bigint, is_newest_first boolean, batch int, page int, max_bytes int,
  out candidates int, out last_seq bigint, out texts text
)
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
#variable_conflict use_variable
declare
  max_seq constant bigint := 9223372036854775807;
  is_log constant boolean := by_channel_id is null and by_channel_slug is null;
  channel_id uuid;
  channel_public_id text;
  channel_name text;
begin
  if not is_log then
    select c.id, c.public_id, c.name into channel_id, channel_public_id, channel_name
      from channels c
      where c.project_id = project and c.id = coalesce(
        (select o.id from channels o where o.project_id = project and o.id = by_channel_id),
        (select o.id from channels o where o.project_id = project and o.slug = by_channel_slug)
      );
  end if;
  if is_log and is_newest_first then
    select max(m.nth), min(m.seq), string_agg(t.text, E'\x01') filter (where m.is_match)
      into candidates, last_seq, texts
      from (
        select *
        from (
          select
            e.*, row_number() over log as nth,
            sum(bytes_of_event(e.metadata, e.description)) filter (where e.is_match) over log as bytes_before
          from (
            select
              e.*,
              e.deleted_at is null and (sources is null or e.source = any(sources))
                and (tags is null or e.tags @> tags) as is_match
            from events e
            where e.project_id = project and e.seq < start_seq
          ) e
          window log as (order by e.seq desc rows between unbounded preceding and 1 preceding)
          order by e.seq desc
          limit batch
        ) e
        where e.is_match or e.nth = batch
        limit page
      ) m
        left join lateral (
          select c.public_id, c.name from channels c where c.project_id = project and c.id = m.channel_id limit 1
        ) c on true
        cross join lateral event_text(
          project, m.id, m.seq, c.public_id, c.name, m.user_ref, m.occurred_at, m.created_at,
          m.title, m.description, m.icon, m.tags, m.metadata, m.source, m.notify
        ) t
      where coalesce(m.bytes_before, 0) < max_bytes;
  elsif is_log then
    select max(m.nth), max(m.seq), string_agg(t.text, E'\x01') filter (where m.is_match)
      into candidates, last_seq, texts
      from (
        select *
        from (
          select
            e.*, row_number() over log as nth,
            sum(bytes_of_event(e.metadata, e.description)) filter (where e.is_match) over log as bytes_before
          from (
            select
              e.*,
              e.deleted_at is null and (sources is null or e.source = any(sources))
                and (tags is null or e.tags @> tags) as is_match
            from events e
            where e.project_id = project and e.seq > start_seq
          ) e
          window log as (order by e.seq rows between unbounded preceding and 1 preceding)
          order by e.seq
          limit batch
        ) e
        where e.is_match or e.nth = batch
        limit page
      ) m
        left join lateral (
          select c.public_id, c.name from channels c where c.project_id = project and c.id = m.channel_id limit 1
        ) c on true
        cross join lateral event_text(
          project, m.id, m.seq, c.public_id, c.name, m.user_ref, m.occurred_at, m.created_at,
          m.title, m.description, m.icon, m.tags, m.metadata, m.source, m.notify
        ) t
      where coalesce(m.bytes_before, 0) < max_bytes;
  elsif is_newest_first then
    select max(m.nth), min(m.seq), string_agg(t.text, E'\x01') filter (where m.is_match)
      into candidates, last_seq, texts
      from (
        select *
        from (
          select
            e.*, row_number() over log as nth,
            sum(bytes_of_event(e.metadata, e.description)) filter (where e.is_match) over log as bytes_before
          from (
            select
              e.*,
              e.deleted_at is null and (sources is null or e.source = any(sources))
                and (tags is null or e.tags @> tags) as is_match
            from events e
            where e.project_id = project
              and (e.channel_id, e.seq) >= (channel_id, 0) and (e.channel_id, e.seq) < (channel_id, start_seq)
          ) e
          window log as (order by e.channel_id desc, e.seq desc rows between unbounded preceding and 1 preceding)
          order by e.channel_id desc, e.seq desc
          limit batch
        ) e
        where e.is_match or e.nth = batch
        limit page
      ) m
        cross join lateral event_text(
          project, m.id, m.seq, channel_public_id, channel_name, m.user_ref, m.occurred_at, m.created_at,
          m.title, m.description, m.icon, m.tags, m.metadata, m.source, m.notify
        ) t
      where coalesce(m.bytes_before, 0) < max_bytes;
  else
    select max(m.nth), max(m.seq), string_agg(t.text, E'\x01') filter (where m.is_match)
      into candidates, last_seq, texts
      from (
        select *
        from (
          select
            e.*, row_number() over log as nth,
            sum(bytes_of_event(e.metadata, e.description)) filter (where e.is_match) over log as bytes_before
          from (
            select
              e.*,
              e.deleted_at is null and (sources is null or e.source = any(sources))
                and (tags is null or e.tags @> tags) as is_match
            from events e
            where e.project_id = project
              and (e.channel_id, e.seq) > (channel_id, start_seq) and (e.channel_id, e.seq) <= (channel_id, max_seq)
          ) e
          window log as (order by e.channel_id, e.seq rows between unbounded preceding and 1 preceding)
          order by e.channel_id, e.seq
          limit batch
        ) e
        where e.is_match or e.nth = batch
        limit page
      ) m
        cross join lateral event_text(
          project, m.id, m.seq, channel_public_id, channel_name, m.user_ref, m.occurred_at, m.created_at,
          m.title, m.description, m.icon, m.tags, m.metadata, m.source, m.notify
        ) t
      where coalesce(m.bytes_before, 0) < max_bytes;
  end if;
end
$$;

-- Returns the texts of events of one project in the order of `seqs`, with U+0001 between them. The
-- events must exist. The texts end at max_bytes, and the settings pin one plan, as in list_events.
create function texts_of_events(project uuid, seqs bigint[], max_bytes int) returns text
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return (
    select string_agg(t.text, E'\x01' order by m.ord)
    from (
        select
          e.*, s.ord,
          sum(bytes_of_event(e.metadata, e.description))
            over (order by s.ord rows between unbounded preceding and 1 preceding) as bytes_before
        from unnest(seqs) with ordinality as s (seq, ord)
          cross join lateral (
            select * from events e where e.project_id = project and e.seq = s.seq limit 1
          ) e
      ) m
      left join lateral (
        select c.public_id, c.name from channels c where c.project_id = project and c.id = m.channel_id limit 1
      ) c on true
      cross join lateral event_text(
        project, m.id, m.seq, c.public_id, c.name, m.user_ref, m.occurred_at, m.created_at,
        m.title, m.description, m.icon, m.tags, m.metadata, m.source, m.notify
      ) t
    where coalesce(m.bytes_before, 0) < max_bytes
  );
end
$$;

-- Returns the text of an event by its id; null when it does not exist or is deleted. The settings
-- pin one plan, as those of list_events do.
create function find_event(project uuid, event_id uuid) returns text
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
begin
  return (
    select t.text
    from (
        select e.*
        from events e
        -- On an empty table all indexes seem equally good. The range with its order needs a sort
        -- with any index but that of (project_id, id).
        where e.project_id = project and e.id >= event_id and e.id <= event_id
        order by e.id
        limit 1
      ) e
      left join lateral (
        select c.public_id, c.name from channels c where c.project_id = project and c.id = e.channel_id limit 1
      ) c on true
      cross join lateral event_text(
        project, e.id, e.seq, c.public_id, c.name, e.user_ref, e.occurred_at, e.created_at,
        e.title, e.description, e.icon, e.tags, e.metadata, e.source, e.notify
      ) t
    where e.deleted_at is null
  );
end
$$;
