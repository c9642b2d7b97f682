-- Counts requests in the windows of their keys, and appends their events to the logs of their
-- projects, in order. It is the whole of a write: everything or nothing of it is committed.
--
-- Columns have one element for each event. A column is null when all its elements have their
-- default.
--   * project_numbers are positions in project_ids, which ascend. Null means that all events have
--     the first project.
--   * key_numbers are positions in key_hashes; null for a request that was counted before.
--   * channel_slugs are null for a known channel, which is channel_ids. Its public id and name are
--     only needed with an Idempotency-Key. Else the channel is looked up, or created from the other
--     columns.
--   * response_heads, response_tails and fingerprints are only needed with an Idempotency-Key. A
--     response begins with its head, up to the seq. It ends with its tail:
--     `,"requestId":"…"}`.
--   * levels are 0 low, 1 normal, 2 high and 3 critical. Null takes the level of the thread or the
--     channel.
--   * threads are the keys of threads, and states the numbers of state_name.
-- Requests of a key beyond its limit append nothing; requests before them do. An event that needs
-- one channel too many is left out, too.
--
-- Returns one row:
--   * windows: for each key [limit, used, reset_at, retry_after], or null if no live key has the
--     hash. The columns are those of count_requests.
--   * seqs: the seq of each event, or null if it was not appended.
--   * notes: the events that the caller cannot describe by itself. user is the resolved user_id.
--
-- Each statement of a volatile function has its own snapshot. So the statements after the lock see
-- what other transactions committed while this one waited for it.
--
-- Most batches have one project, one key and no users: these have branches with less work. The
-- settings pin one plan for each statement. Planning each time costs more than the work, and a plan
-- made on empty tables would scan them.
create or replace function append_batch(
  project_ids uuid[], key_hashes bytea[], key_counts int[],
  project_numbers int[], key_numbers int[], ids uuid[], occurred_ats timestamptz[],
  channel_ids uuid[], channel_public_ids text[], channel_slugs text[], channel_names text[],
  titles text[], descriptions text[], icons text[], tag_lists text[], metadatas text[], user_refs text[],
  sources text[], notifies boolean[],
  keys text[], fingerprints bytea[], response_heads text[], response_tails text[],
  levels smallint[] default null, urls text[] default null,
  threads text[] default null, states smallint[] default null,
  out at_ms bigint, out windows json, out seqs json, out notes json
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  at timestamptz;
  at_hour timestamptz;
  numbers int[] := coalesce(project_numbers, array_fill(1, array[cardinality(ids)]));
  -- The projects to lock. A null has only events whose key is locked.
  projects uuid[] := project_ids;
  -- How many of its requests each key may make.
  allowed int[];
  is_limited boolean;
  -- The positions of keys that another transaction has locked. Their outcome is 'running'; this
  -- never waits for them.
  running bigint[] := '{}';
  repeated bigint[] := '{}';
  -- The positions of events that are not appended.
  left_out bigint[] := '{}';
  -- Those that need one channel too many.
  without_room bigint[] := '{}';
  -- The last seq of each project before the append; null for a deleted project.
  heads bigint[];
  -- True if a channel of these projects has a level.
  has_levels boolean;
  new_seqs bigint[];
  -- The user_id that each user_ref resolves to.
  users text[];
  thread_seqs bigint[];
  tellings smallint[];
begin
  if keys is not null then
    running := lock_idempotency_keys(array(select project_ids[n] from unnest(numbers) as u (n)), keys);
    if running <> '{}' then
      left_out := running;
      projects := array(
        select case when exists (
          select from unnest(numbers) with ordinality as u (n, ord) where u.n = p.ord and u.ord <> all(running)
        ) then p.id end
        from unnest(project_ids) with ordinality as p (id, ord)
        order by p.ord
      );
    end if;
  end if;

  select array_agg(l.last_seq order by p.ord), bool_or(l.has_levels)
    into heads, has_levels
    from unnest(projects) with ordinality as p (id, ord)
      left join lateral (
        select l.last_seq, l.has_levels from event_logs l where l.project_id = p.id for update
      ) l on true;
  -- Read after the lock, so that created_at and seq have the same order.
  at := date_trunc('milliseconds', clock_timestamp());
  at_hour := hour_of(at);
  at_ms := extract(epoch from at) * 1000;

  if key_hashes is not null then
    select
        json_agg(case when c.key_id is not null then
          json_build_array(c.rate_limit, c.used, c.reset_at, c.retry_after)
        end order by c.ord),
        array_agg(case
          when c.key_id is null then 0
          else key_counts[c.ord] - greatest(0, c.used - c.rate_limit)
        end order by c.ord),
        bool_or(c.used > c.rate_limit or c.key_id is null)
      into windows, allowed, is_limited
      from count_requests(key_hashes, key_counts) c;
    if is_limited then
      left_out := left_out || array(
        select r.ord
        from (
          select u.ord, u.number, row_number() over (partition by u.number order by u.ord) as nth
          from unnest(key_numbers) with ordinality as u (number, ord)
          where u.number is not null
        ) r
        where r.nth > allowed[r.number]
      );
    end if;
  end if;

  if keys is not null then
    repeated := array(
      select i.ord
      from unnest(numbers, keys) with ordinality as i (number, key, ord)
        join lateral (
          select k.expires_at
          from idempotency_keys k where k.project_id = project_ids[i.number] and k.key = i.key limit 1
        ) k on true
      where i.key is not null and k.expires_at > at and i.ord <> all(left_out)
    );
    left_out := left_out || repeated;
  end if;

  if channel_slugs is not null then
    without_room := take_channels(
      array(select project_ids[n] from unnest(numbers) with ordinality as u (n, ord) order by u.ord),
      array(
        select case when i.ord <> all(left_out) and heads[i.number] is not null then i.slug end
        from unnest(numbers, channel_slugs) with ordinality as i (number, slug, ord)
        order by i.ord
      )
    );
    left_out := left_out || without_room;
  end if;

  if project_numbers is null and left_out = '{}' and heads[1] is not null then
    new_seqs := array(select generate_series(heads[1] + 1, heads[1] + cardinality(ids)));
  else
    new_seqs := array(
      select case when i.is_new then
          heads[i.number] + count(*) filter (where i.is_new) over (partition by i.number order by i.ord)
        end
      from (
        select u.number, u.ord, u.ord <> all(left_out) as is_new
        from unnest(numbers) with ordinality as u (number, ord)
      ) i
      order by i.ord
    );
  end if;
  seqs := to_json(new_seqs);

  if channel_slugs is not null then
    insert into channels (project_id, id, public_id, slug, name, name_slug, icon, created_at)
    select distinct on (i.number, i.slug)
      project_ids[i.number], i.id, i.public_id, i.slug, i.name, i.slug, i.icon, at
    from unnest(numbers, new_seqs, channel_ids, channel_public_ids, channel_slugs, channel_names, icons)
        with ordinality as i (number, seq, id, public_id, slug, name, icon, ord)
    where i.slug is not null and i.seq is not null
      and (
        select c.id
        from channels c
        where c.project_id = project_ids[i.number] and c.slug >= i.slug and c.slug <= i.slug
        order by c.slug
        limit 1
      ) is null
    order by i.number, i.slug, i.ord;
    select array_agg(coalesce(c.id, i.id) order by i.ord),
        array_agg(coalesce(c.public_id, i.public_id) order by i.ord),
        array_agg(coalesce(c.name, i.name) order by i.ord)
      into channel_ids, channel_public_ids, channel_names
      from unnest(numbers, channel_ids, channel_public_ids, channel_slugs, channel_names)
          with ordinality as i (number, id, public_id, slug, name, ord)
        left join lateral (
          select c.id, c.public_id, c.name
          from channels c
          where c.project_id = project_ids[i.number] and c.slug >= i.slug and c.slug <= i.slug
          order by c.slug
          limit 1
        ) c on i.slug is not null;
  end if;

  if threads is not null then
    select t.levels, t.states, t.thread_seqs, t.tellings
      into levels, states, thread_seqs, tellings
      from append_threads(
        project_ids, numbers, new_seqs, channel_ids, occurred_ats, at, threads, notifies, levels, states
      ) t;
  end if;

  if has_levels then
    levels := array(
      select coalesce(i.level, c.level)
      from unnest(numbers, channel_ids, levels) with ordinality as i (number, channel_id, level, ord)
        left join lateral (
          select c.level
          from channels c
          where c.project_id = project_ids[i.number] and c.id >= i.channel_id and c.id <= i.channel_id
          order by c.id
          limit 1
        ) c on true
      order by i.ord
    );
  end if;

  with inserted as (
    insert into events (
      project_id, id, channel_id, seq, occurred_at, created_at, title, description, icon, tags, metadata,
      user_ref, source, notify, level, url, thread, state, thread_seq, telling
    )
    select
      project_ids[i.number], i.id, i.channel_id, i.seq, coalesce(i.occurred_at, at), at, i.title, i.description, i.icon,
      coalesce(i.tags, '{}')::text[], coalesce(i.metadata, '{}')::json, i.user_ref, coalesce(i.source, 'api'),
      coalesce(i.notify, true), nullif(levels[i.ord], 1), urls[i.ord],
      threads[i.ord], states[i.ord], thread_seqs[i.ord], tellings[i.ord]
    from unnest(
        numbers, new_seqs, ids, occurred_ats, channel_ids, titles, descriptions, icons, tag_lists, metadatas,
        user_refs, sources, notifies
      ) with ordinality as i (
        number, seq, id, occurred_at, channel_id, title, description, icon, tags, metadata, user_ref, source, notify,
        ord
      )
    where i.seq is not null
    returning project_id, seq, channel_id, occurred_at
  ), placed as materialized (
    select
      i.project_id, i.seq, i.channel_id,
      case when i.occurred_at = at then at_hour else hour_of(i.occurred_at) end as hour
    from inserted i
  ), updated_segments as (
    insert into event_segments as s (project_id, segment, first_at, last_at)
    select p.project_id, p.segment, p.first_at, p.last_at
    from (
      select
        project_id, seq >> 12 as segment, min(hour) as first_at, max(hour) + interval '1 hour' as last_at
      from placed
      group by project_id, seq >> 12
    ) p
      left join lateral (
        select s.first_at, s.last_at
        from event_segments s where s.project_id = p.project_id and s.segment = p.segment limit 1
      ) s on true
    where s.first_at is null or p.first_at < s.first_at or p.last_at > s.last_at
    order by p.project_id, p.segment
    on conflict (project_id, segment) do update set
      first_at = least(s.first_at, excluded.first_at), last_at = greatest(s.last_at, excluded.last_at)
  ), advanced_heads as (
    -- The rows exist, so this always updates. Unlike an update with a join, it finds each row by
    -- its key.
    insert into event_logs (project_id, last_seq)
    select project_id, max(seq) from placed group by project_id
    on conflict (project_id) do update set last_seq = excluded.last_seq
  )
  insert into event_counts as n (project_id, hour, channel_id, n)
  select project_id, hour, channel_id, count(*)
  from placed
  group by project_id, hour, channel_id
  order by project_id, hour, channel_id
  on conflict (project_id, hour, channel_id) do update set n = n.n + excluded.n;

  users := user_refs;
  -- Many projects have no users.
  if user_refs is not null and exists (select from identities u where u.project_id = any(project_ids)) then
    users := array(
      select coalesce(u.user_id, a.user_id, i.user_ref)
      from unnest(numbers, user_refs) with ordinality as i (number, user_ref, ord)
        left join lateral (
          select u.user_id
          from identities u
          where u.project_id = project_ids[i.number] and u.user_id >= i.user_ref and u.user_id <= i.user_ref
          order by u.user_id
          limit 1
        ) u on i.user_ref is not null
        left join lateral (
          select a.user_id
          from aliases a
          where a.project_id = project_ids[i.number] and a.alias >= i.user_ref and a.alias <= i.user_ref
          order by a.alias
          limit 1
        ) a on i.user_ref is not null
      order by i.ord
    );
  end if;

  if keys is not null then
    insert into idempotency_keys as k (project_id, key, fingerprint, status, user_id, seq, body, expires_at)
    select
      project_ids[i.number], i.key, i.fingerprint, 201, i.user_id, i.seq,
      i.head || event_json(
        i.seq, i.channel_public_id, i.channel_name, i.user_id, coalesce(i.occurred_at, at), at, i.title,
        i.description, i.icon, coalesce(i.tags, '{}')::text[], coalesce(i.metadata, '{}'),
        coalesce(i.source, 'api'), coalesce(i.notify, true), nullif(levels[i.ord], 1), urls[i.ord],
        threads[i.ord], states[i.ord], thread_seqs[i.ord]
      ) || i.tail,
      at + interval '24 hours'
    from unnest(
        numbers, new_seqs, keys, fingerprints, response_heads, response_tails, users, occurred_ats,
        channel_public_ids, channel_names, titles, descriptions, icons, tag_lists, metadatas, sources, notifies
      ) with ordinality as i (
        number, seq, key, fingerprint, head, tail, user_id, occurred_at, channel_public_id, channel_name, title,
        description, icon, tags, metadata, source, notify, ord
      )
    where i.key is not null and i.seq is not null
    on conflict (project_id, key) do update set
      fingerprint = excluded.fingerprint, status = excluded.status, user_id = excluded.user_id,
      other_names = null, seq = excluded.seq, body = excluded.body, expires_at = excluded.expires_at;
  end if;

  if channel_slugs is null and running = '{}' and repeated = '{}' and users is not distinct from user_refs
    and has_levels is not true and threads is null
  then
    return;
  end if;
  select json_agg(json_build_object(
        'ord', i.ord,
        'outcome', case
          when i.ord = any(running) then 'running'
          when i.ord = any(without_room) then 'full'
          when i.ord = any(repeated) then case when k.fingerprint = i.fingerprint then 'replayed' else 'reused' end
        end,
        'body', case when k.is_deleted then empty_stored_response(k.body, null) else k.body end,
        'channelUuid', case when i.slug is not null then i.channel_id end,
        'channelId', case when i.slug is not null then i.channel_public_id end,
        'channelName', case when i.slug is not null then i.channel_name end,
        'userId', i.user_id,
        'level', level_name(levels[i.ord]),
        'state', state_name(states[i.ord]),
        'threadSeq', thread_seqs[i.ord]
      ))
    into notes
    from unnest(
        numbers, keys, fingerprints, channel_slugs, channel_ids, channel_public_ids, channel_names, user_refs, users
      ) with ordinality as i (
        number, key, fingerprint, slug, channel_id, channel_public_id, channel_name, user_ref, user_id, ord
      )
      left join lateral (
        select k.fingerprint, k.body, k.seq is not null and (
            -- The order makes a plan use the primary key, also one that was made on an empty table.
            select e.seq
            from events e
            where e.project_id = project_ids[i.number] and e.seq >= k.seq and e.seq <= k.seq and e.deleted_at is null
            order by e.seq
            limit 1
          ) is null as is_deleted
        from idempotency_keys k
        where i.ord = any(repeated) and k.project_id = project_ids[i.number] and k.key = i.key
        limit 1
      ) k on true
    where i.slug is not null or i.user_id <> i.user_ref or i.ord = any(running) or i.ord = any(repeated)
      or (has_levels and levels[i.ord] <> 1) or threads[i.ord] is not null;
end
$$;

-- Does the same as append_batch for one event in a known channel, without an Idempotency-Key. With
-- few events, most of the cost is the number of statements and of their parts.
create or replace function append_single(
  project uuid, key_hash bytea, event_id uuid, occurred timestamptz, channel uuid, event_title text,
  event_description text, event_icon text, event_tags text[], event_metadata json, event_user text,
  event_source text, is_notifying boolean, event_level smallint, event_url text,
  out at_ms bigint, out windows json, out seqs json, out notes json
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  new_seq bigint;
  at timestamptz;
  hour timestamptz;
  is_allowed boolean;
  has_levels boolean;
  event_user_id text;
begin
  -- Locks the head first, like every writer.
  update event_logs l set last_seq = l.last_seq + 1
    where l.project_id = project
    returning l.last_seq, l.has_levels into new_seq, has_levels;
  at := date_trunc('milliseconds', clock_timestamp());
  at_ms := extract(epoch from at) * 1000;

  if key_hash is not null then
    select json_build_array(json_build_array(k.rate_limit, c.used, c.reset_at, c.retry_after)), c.used <= k.rate_limit
      into windows, is_allowed
      from api_keys k
        cross join lateral count_in_rate_window(k.id, 1) c
      where k.hash = key_hash and k.revoked_at is null and (k.expires_at is null or k.expires_at > now());
    if is_allowed is not true then
      update event_logs l set last_seq = l.last_seq - 1 where l.project_id = project;
      new_seq := null;
    end if;
  end if;

  seqs := json_build_array(new_seq);
  if new_seq is null then
    return;
  end if;

  if has_levels and event_level is null then
    event_level := (
      select c.level
      from channels c
      where c.project_id = project and c.id >= channel and c.id <= channel
      order by c.id
      limit 1
    );
  end if;
  insert into events (
    project_id, id, channel_id, seq, occurred_at, created_at, title, description, icon, tags, metadata,
    user_ref, source, notify, level, url
  )
  values (
    project, event_id, channel, new_seq, coalesce(occurred, at), at, event_title, event_description, event_icon,
    event_tags, event_metadata, event_user, event_source, is_notifying, nullif(event_level, 1), event_url
  );

  hour := hour_of(coalesce(occurred, at));
  insert into event_counts as n (project_id, hour, channel_id, n)
    values (project, hour, channel, 1)
    on conflict (project_id, hour, channel_id) do update set n = n.n + 1;
  if not exists (
    select from event_segments s
    where s.project_id = project and s.segment = new_seq >> 12 and s.first_at <= hour and s.last_at > hour
  ) then
    insert into event_segments as s (project_id, segment, first_at, last_at)
      values (project, new_seq >> 12, hour, hour + interval '1 hour')
      on conflict (project_id, segment) do update set
        first_at = least(s.first_at, excluded.first_at), last_at = greatest(s.last_at, excluded.last_at);
  end if;

  if event_user is not null then
    event_user_id := user_of_name(project, event_user);
  end if;
  if event_user_id <> event_user or event_level <> 1 then
    notes := json_build_array(json_build_object(
      'ord', 1, 'userId', event_user_id, 'level', level_name(event_level)
    ));
  end if;
end
$$;
