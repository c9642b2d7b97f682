-- Statements that read the log of a project together with other tables use functions such as
-- event_by_id and events_between. Postgres inlines them. On Citus, where the log can be on another
-- node, each call reads it there.

-- Returns the name of a stored level; null for normal. The numbers are those of
-- src/log/channels/level.ts.
create or replace function level_name(level smallint) returns text
language sql immutable parallel safe
return case level when 0 then 'low' when 2 then 'high' when 3 then 'critical' end;

-- Returns the name of a stored state. The numbers are those of src/log/events/state.ts.
create or replace function state_name(state smallint) returns text
language sql immutable parallel safe
return case state
  when 0 then 'resolved' when 1 then 'succeeded' when 2 then 'running' when 3 then 'firing' when 4 then 'failed'
end;

-- Returns the JSON of an event from its seq on. Every JSON of an event that Postgres writes comes
-- from here. src/log/events/event-json.ts writes the same bytes, and a test compares them. The
-- planner inlines it. Operators take less time than format or concat, and most events occur when
-- they are created.
create or replace function event_json(
  seq bigint, channel_public_id text, channel_name text, user_id text, occurred_at timestamptz,
  created_at timestamptz, title text, description text, icon text, tags text[], metadata text, source text,
  notify boolean, level smallint, url text, thread text, state smallint, thread_seq bigint
) returns text
language sql stable parallel safe
return seq::text
  || ',"channelId":"' || coalesce(channel_public_id, '')
  || '","channelName":' || coalesce(to_json(channel_name)::text, 'null')
  || ',"userId":' || coalesce(to_json(user_id)::text, 'null')
  || case
    when occurred_at = created_at then replace(',"timestamp":"@","createdAt":"@","title":', '@', to_iso(created_at))
    else ',"timestamp":"' || to_iso(occurred_at) || '","createdAt":"' || to_iso(created_at) || '","title":'
  end
  || to_json(title)::text
  || ',"description":' || coalesce(to_json(description)::text, 'null')
  || ',"icon":' || coalesce(to_json(icon)::text, 'null')
  || ',"tags":' || to_json(tags)::text
  || ',"metadata":' || metadata
  || ',"source":' || to_json(source)::text
  || case
    -- Most events have none of them, and each operator copies the text before it.
    when level is null and url is null and thread is null then case when notify then ',"notify":true}' else ',"notify":false}' end
    else case when notify then ',"notify":true' else ',"notify":false' end
      || coalesce(',"level":"' || level_name(level) || '"', '')
      || coalesce(',"url":' || to_json(url)::text, '')
      || coalesce(
        ',"thread":' || to_json(thread)::text || coalesce(',"state":"' || state_name(state) || '"', '')
          || ',"threadSeq":' || thread_seq::text,
        ''
      ) || '}'
  end;

-- Returns the text of an event for readers: its uuid, and then its JSON from the end of the id on.
-- Only the process can write the public form of an id. Every read of events uses this function,
-- which the planner inlines.
--
-- user_id is the identity or the owner of the alias that user_ref names, or user_ref itself. Scalar
-- subqueries force one look-up for each event, whatever the sizes of the tables. In place of
-- `exists`, the planner could hash all identities.
create or replace function text_of_event(
  project uuid, id uuid, seq bigint, channel_public_id text, channel_name text, user_ref text,
  occurred_at timestamptz, created_at timestamptz, title text, description text, icon text, tags text[],
  metadata json, source text, notify boolean, level smallint, url text, thread text, state smallint, thread_seq bigint
) returns table (text text, user_id text)
language sql stable parallel safe
begin atomic
  select
    text_of_event.id::text || '","seq":' || event_json(
      text_of_event.seq, text_of_event.channel_public_id, text_of_event.channel_name, u.user_id, text_of_event.occurred_at,
      text_of_event.created_at, text_of_event.title, text_of_event.description, text_of_event.icon, text_of_event.tags,
      text_of_event.metadata::text, text_of_event.source, text_of_event.notify,
      text_of_event.level, text_of_event.url, text_of_event.thread, text_of_event.state, text_of_event.thread_seq
    ),
    u.user_id
  from (
    select coalesce(
        (
          select coalesce(
              (
                select i.user_id
                from identities i
                where i.project_id = text_of_event.project
                  and i.user_id >= text_of_event.user_ref and i.user_id <= text_of_event.user_ref
                order by i.user_id
                limit 1
              ),
              a.user_id
            )
          from aliases a
          where a.project_id = text_of_event.project
            and a.alias >= text_of_event.user_ref and a.alias <= text_of_event.user_ref
          order by a.alias
          limit 1
        ),
        text_of_event.user_ref
      ) as user_id
  ) u;
end;

-- Returns the UTF-8 bytes of the fields that make an event large. An int, because sums of
-- bigint are numeric and slow.
create or replace function size_of_event(metadata json, description text, url text) returns int
language sql immutable parallel safe
return octet_length(size_of_event.metadata::text) + coalesce(octet_length(size_of_event.description), 0)
  + coalesce(octet_length(size_of_event.url), 0);

-- Returns up to max_rows events of a log in its order or, newest first, in reverse, from start_seq,
-- which is excluded; with a channel, only its events. Only one part of the union returns rows: no
-- row compares with a null channel. The comparison of rows keeps the plan from reading other
-- channels by the primary key.
create or replace function events_from(project uuid, channel uuid, start_seq bigint, is_newest_first boolean, max_rows int)
returns setof events
language sql stable as $$
  (
    select e.*
    from events e
    where channel is null and is_newest_first and e.project_id = project and e.seq < start_seq
    order by e.seq desc
    limit max_rows
  )
  union all
  (
    select e.*
    from events e
    where channel is null and not is_newest_first and e.project_id = project and e.seq > start_seq
    order by e.seq
    limit max_rows
  )
  union all
  (
    select e.*
    from events e
    where is_newest_first and e.project_id = project
      and (e.channel_id, e.seq) >= (channel, 0) and (e.channel_id, e.seq) < (channel, start_seq)
    order by e.channel_id desc, e.seq desc
    limit max_rows
  )
  union all
  (
    select e.*
    from events e
    where not is_newest_first and e.project_id = project
      and (e.channel_id, e.seq) > (channel, start_seq)
      and (e.channel_id, e.seq) <= (channel, 9223372036854775807)
    order by e.channel_id, e.seq
    limit max_rows
  )
$$;

-- Reads a log or one of its channels from start_seq, which is excluded. Returns the texts of the
-- first `page` matches in that order, with U+0001 between them. The channel is given by its id or
-- its slug. A match comes from one of `sources` and has all `tags`; null does not filter.
--
-- Without a channel of this id or slug, `candidates` is 0. A list newest first, without sources and
-- tags, leaves out the former events of threads.
--
-- It reads at most `batch` events. Without a whole page, `candidates` is `batch` if there are more
-- events, and last_seq is the last one that it read.
--
-- A page also ends after the match with which the bytes of metadata, descriptions and urls reach
-- max_bytes. The texts then have at least as many bytes, and the other results have no meaning.
-- Only a page with a large event counts the bytes of each. The rest are smaller than their part of
-- max_bytes, so a page of them cannot reach it.
--
-- The settings pin one plan, whatever the statistics say. Planning each time costs more than the
-- work, and a plan made on small tables would scan them after they have grown.
create or replace function list_events(
  project uuid, by_channel_id uuid, by_channel_slug text, sources text[], tags text[],
  start_seq bigint, is_newest_first boolean, batch int, page int, max_bytes int,
  out candidates int, out last_seq bigint, out texts text
)
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
as $$
#variable_conflict use_variable
declare
  channel uuid;
  seqs bigint[];
  has_large boolean;
begin
  if by_channel_id is not null or by_channel_slug is not null then
    channel := coalesce(
      (
        select c.id
        from channels c
        where c.project_id = project and c.id >= by_channel_id and c.id <= by_channel_id
        order by c.id
        limit 1
      ),
      (
        select c.id
        from channels c
        where c.project_id = project and c.slug >= by_channel_slug and c.slug <= by_channel_slug
        order by c.slug
        limit 1
      )
    );
    if channel is null then
      candidates := 0;
      return;
    end if;
  end if;
  select array_agg(e.seq), bool_or(e.is_large), string_agg(case when not e.is_large then t.text end, E'\x01')
    into seqs, has_large, texts
    from (
        select e.*, size_of_event(e.metadata, e.description, e.url) > max_bytes / page as is_large
        from events_from(project, channel, start_seq, is_newest_first, batch) e
        where e.deleted_at is null and (sources is null or e.source = any(sources))
          and (tags is null or e.tags @> tags)
          and (
            e.thread_seq is null or not is_newest_first or sources is not null or tags is not null or e.seq = (
              select t.last_seq
              from threads t
              where t.project_id = project and t.thread_seq >= e.thread_seq and t.thread_seq <= e.thread_seq
              order by t.thread_seq
              limit 1
            )
          )
        limit page
      ) e
      left join lateral (
        select c.public_id, c.name
        from channels c
        where c.project_id = project and c.id >= e.channel_id and c.id <= e.channel_id
        order by c.id
        limit 1
      ) c on true
      cross join lateral text_of_event(
        project, e.id, e.seq, c.public_id, c.name, e.user_ref, e.occurred_at, e.created_at,
        e.title, e.description, e.icon, e.tags, e.metadata, e.source, e.notify, e.level, e.url,
        e.thread, e.state, e.thread_seq
      ) t;
  if has_large then
    texts := texts_of_events(project, seqs, max_bytes);
  end if;
  if cardinality(seqs) = page then
    return;
  end if;
  select batch, e.seq into candidates, last_seq
    from events_from(project, channel, start_seq, is_newest_first, batch) e
    offset batch - 1;
end
$$;

-- Returns the texts of events of one project in the order of `seqs`, with U+0001 between them. The
-- events must exist. The texts end at max_bytes, and the settings pin one plan, as in list_events.
create or replace function texts_of_events(project uuid, seqs bigint[], max_bytes int) returns text
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
          sum(size_of_event(e.metadata, e.description, e.url))
            over (order by s.ord rows between unbounded preceding and 1 preceding) as bytes_before
        from unnest(seqs) with ordinality as s (seq, ord)
          cross join lateral (
            select *
            from events e
            where e.project_id = project and e.seq >= s.seq and e.seq <= s.seq
            order by e.seq
            limit 1
          ) e
      ) m
      left join lateral (
        select c.public_id, c.name
        from channels c
        where c.project_id = project and c.id >= m.channel_id and c.id <= m.channel_id
        order by c.id
        limit 1
      ) c on true
      cross join lateral text_of_event(
        project, m.id, m.seq, c.public_id, c.name, m.user_ref, m.occurred_at, m.created_at,
        m.title, m.description, m.icon, m.tags, m.metadata, m.source, m.notify, m.level, m.url,
        m.thread, m.state, m.thread_seq
      ) t
    where coalesce(m.bytes_before, 0) < max_bytes
  );
end
$$;

-- Returns the text of an event by its id; null when it does not exist or is deleted. The settings
-- pin one plan, as those of list_events do.
create or replace function find_event(project uuid, event_id uuid) returns text
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
begin
  return (
    select t.text
    from event_by_id(project, event_id) e
      left join lateral channel_by_id(project, e.channel_id) c on true
      cross join lateral text_of_event(
        project, e.id, e.seq, c.public_id, c.name, e.user_ref, e.occurred_at, e.created_at,
        e.title, e.description, e.icon, e.tags, e.metadata, e.source, e.notify, e.level, e.url,
        e.thread, e.state, e.thread_seq
      ) t
    where e.deleted_at is null
  );
end
$$;

-- Returns the head of a project's log; no row for a deleted project.
create or replace function log_of(project uuid) returns setof event_logs
language sql stable as $$
  select l.* from event_logs l where l.project_id = project
$$;

-- Returns the seq of a project's oldest event; null without events.
create or replace function first_seq_of(project uuid) returns bigint
language sql stable as $$
  select min(e.seq) from events e where e.project_id = project
$$;

-- Returns the events of a project with after_seq < seq <= until_seq.
create or replace function events_between(project uuid, after_seq bigint, until_seq bigint) returns setof events
language sql stable as $$
  select e.* from events e where e.project_id = project and e.seq > after_seq and e.seq <= until_seq
$$;

-- Returns the first event of a project from a seq on; no row without events.
create or replace function first_event_from(project uuid, from_seq bigint) returns table (created_at timestamptz)
language sql stable as $$
  select e.created_at
  from events e
  where e.project_id = project and e.seq >= from_seq
  order by e.seq
  limit 1
$$;

-- Returns an event of a project by its id. The range with its order needs a sort with any index but
-- that of (project_id, id), which therefore serves it even while the table is empty.
create or replace function event_by_id(project uuid, event_id uuid) returns setof events
language sql stable as $$
  select e.*
  from events e
  where e.project_id = project and e.id >= event_id and e.id <= event_id
  order by e.id
  limit 1
$$;

-- Returns those events of a project that have one of these ids, each found as in event_by_id.
create or replace function events_by_ids(project uuid, event_ids uuid[]) returns setof events
language sql stable as $$
  select e.*
  from (select distinct u.id from unnest(event_ids) as u (id)) i
    cross join lateral (
      select e.*
      from events e
      where e.project_id = project and e.id >= i.id and e.id <= i.id
      order by e.id
      limit 1
    ) e
$$;

-- Returns when the oldest visible event of a project was accepted; no row without events. Like
-- oldest_event_at, it leaves out times in the future.
create or replace function oldest_visible_event(project uuid) returns table (created_at timestamptz)
language sql stable as $$
  select e.created_at
  from events e
  where e.project_id = project and e.deleted_at is null and e.created_at <= now()
  order by e.seq
  limit 1
$$;

-- Returns the newest visible events of a project, with the names of their channels.
create or replace function newest_events(project uuid, max_rows int)
returns table (seq bigint, id uuid, title text, icon text, channel_name text, created_at timestamptz)
language sql stable as $$
  select e.seq, e.id, e.title, coalesce(e.icon, c.icon), c.name, e.created_at
  from (
    select e.seq, e.id, e.title, e.icon, e.channel_id, e.created_at
    from events e
    where e.project_id = project and e.deleted_at is null
    order by e.seq desc
    limit max_rows
  ) e
    join channels c on c.project_id = project and c.id = e.channel_id
$$;

-- Counts the visible events after after_seq that were accepted since a time, among the newest
-- `max_rows`.
create or replace function count_events_since(project uuid, after_seq bigint, since timestamptz, max_rows int)
returns table (n int)
language sql stable as $$
  select count(*)::int
  from (
    select e.created_at
    from events e
    where e.project_id = project and e.seq > after_seq and e.deleted_at is null
    order by e.seq desc
    limit max_rows
  ) e
  where e.created_at >= since
$$;

-- Returns a channel of a project by its id.
create or replace function channel_by_id(project uuid, channel_id uuid) returns setof channels
language sql stable as $$
  select c.*
  from channels c
  where c.project_id = project and c.id >= channel_id and c.id <= channel_id
  order by c.id
  limit 1
$$;

-- Returns the channels of a project.
create or replace function channels_of(project uuid) returns setof channels
language sql stable as $$
  select c.* from channels c where c.project_id = project
$$;

-- Returns the channels of several projects.
create or replace function channels_of_all(projects uuid[]) returns setof channels
language sql stable as $$
  select c.* from channels c where c.project_id = any(projects)
$$;
