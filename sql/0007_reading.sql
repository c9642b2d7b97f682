-- An event that a person deleted is hidden at once, and purged a little later. Every read of events leaves it out.
alter table events add column deleted_at timestamptz;

-- Serves the purge.
create index events_deleted on events (deleted_at) where deleted_at is not null;

-- The hour of a moment, whatever the session's time zone.
create function hour_of(moment timestamptz) returns timestamptz
language sql immutable parallel safe
return date_trunc('hour', moment at time zone 'UTC') at time zone 'UTC';

-- How many events of a channel happened in an hour (UTC). Exact: what is hidden is not counted. Written by whoever
-- holds the project's log, so that no two writers meet here.
create table event_counts (
  project_id uuid not null,
  hour timestamptz not null,
  channel_id uuid not null,
  n bigint not null check (n > 0),
  -- Serves histograms by the hour and today's counts.
  primary key (project_id, hour, channel_id),
  foreign key (project_id, channel_id) references channels (project_id, id)
) with (fillfactor = 70);

insert into event_counts (project_id, hour, channel_id, n)
select project_id, hour_of(occurred_at), channel_id, count(*)
from events
group by 1, 2, 3;

-- Between which moments the events of a stretch of a log happened; a stretch is 4,096 seqs. Bounds, in whole hours:
-- they are seldom written, and stay when events go. Leads a list that is bounded in time to the seqs that it can be in.
create table event_stretches (
  project_id uuid not null references projects,
  stretch bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  primary key (project_id, stretch)
);

insert into event_stretches (project_id, stretch, first_at, last_at)
select project_id, seq >> 12, min(hour_of(occurred_at)), max(hour_of(occurred_at)) + interval '1 hour'
from events
group by 1, 2;

-- What an event is searched by: its channel, source, tags and words, each behind the name of a bucket, which is 16,384
-- seqs of one project: so a search meets nothing of other projects, and of its own only the buckets that it asks for.
-- Two buckets may get one name, a tag may imitate a token, and long words are cut: what is found is looked at again.
-- The body names nothing but built-in functions: an index is built without the search path.
create function tokens_of(
  project uuid, seq bigint, channel_id uuid, source text, tags text[], title text, description text
) returns tsvector
language plpgsql immutable parallel safe as $$
declare
  bucket text := encode(substr(int8send(uuid_hash_extended(project, seq >> 14)), 1, 6), 'base64');
  words text[] := tsvector_to_array(to_tsvector('simple', title || ' ' || coalesce(description, '')));
begin
  if octet_length(title) + coalesce(octet_length(description), 0) > 2000 then
    words := array(select left(word, 200) from unnest(words) as w (word));
  end if;
  return array_to_tsvector(array_remove(
    string_to_array(
      bucket || '=' || encode(substr(uuid_send(channel_id), 11), 'base64')
        || E'\x01' || bucket || '@' || source
        || E'\x01' || bucket || ' ' || array_to_string(words, E'\x01' || bucket || ' ')
        || case
          when tags = '{}' then ''
          else E'\x01' || bucket || '#' || array_to_string(tags, E'\x01' || bucket || '#')
        end,
      E'\x01', ''
    ),
    null
  ));
end
$$;

-- What the tokens of events match that are in one of the channels, from one of the sources, have all `tags` and words
-- which begin like all of `words`, in the buckets from first to last of a project. An empty list asks for nothing.
create function tokens_query(
  project uuid, first_bucket bigint, last_bucket bigint,
  channel_ids uuid[], sources text[], tags text[], words text[]
) returns tsquery
language sql immutable as $$
  with wanted as (
    -- One of each group; a word and a tag are groups of their own.
    select 'channel' as what, '=' || encode(substr(uuid_send(id), 11), 'base64') as token, '' as how
    from unnest(channel_ids) as c (id)
    union all
    select 'source', '@' || split_part(source, E'\x01', 1), '' from unnest(sources) as s (source)
    union all
    select 'tag ' || tag, '#' || split_part(tag, E'\x01', 1), '' from unnest(tags) as t (tag)
    union all
    select 'word ' || word, ' ' || left(word, 200), ':*' from unnest(words) as w (word)
  ), quoted as (
    select what, replace(replace(token, E'\\', E'\\\\'), '''', '''''') || '''' || how as token from wanted
  ), buckets as (
    select '''' || encode(substr(int8send(uuid_hash_extended(project, n)), 1, 6), 'base64') as name
    from generate_series(first_bucket, last_bucket) as s (n)
  ), groups as (
    select s.name, '(' || string_agg(s.name || q.token, '|') || ')' as one_of
    from buckets s, quoted q
    group by s.name, q.what
  ), parts as (
    select '(' || string_agg(one_of, '&') || ')' as all_of from groups group by name
  )
  select string_agg(all_of, '|')::tsquery from parts
$$;

-- Serves the search by words, tags and sources, by find_events. Rows wait in a list, so that an insert stays cheap: a
-- short one, because the insert that fills it sorts it in, and every search reads it.
drop index events_of_tag;
drop index events_text;
create index events_tokens on events
  using gin (tokens_of(project_id, seq, channel_id, source, tags, title, description))
  with (gin_pending_list_limit = 256);

-- The seqs of at most so many events, in order, that tokens_query may mean, among those from first_seq to last_seq; it
-- stops after spend_ms. Where it did not find so many, a last one says how far it looked: a candidate like the others.
-- The index above is meant and no other, and no statistics may choose. It takes few buckets at a time while there is
-- much in them, because each match costs by their number, and more while there is little.
create function find_events(
  project uuid, channel_ids uuid[], sources text[], tags text[], words text[],
  first_seq bigint, last_seq bigint, is_newest_first boolean, most int, spend_ms float8
) returns setof bigint
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_indexscan = off
set enable_indexonlyscan = off
set max_parallel_workers_per_gather = 0
set jit = off
as $$
declare
  ends_at timestamptz := clock_timestamp() + spend_ms * interval '1 ms';
  at timestamptz;
  buckets int := 1;
  part_first bigint := first_seq;
  part_last bigint := last_seq;
  end_seq bigint := case when is_newest_first then first_seq else last_seq end;
  reached bigint;
  query tsquery;
  found bigint[];
  missing int := most;
begin
  loop
    at := clock_timestamp();
    if is_newest_first then
      part_first := greatest(first_seq, ((part_last >> 14) - buckets + 1) << 14);
    else
      part_last := least(last_seq, (((part_first >> 14) + buckets) << 14) - 1);
    end if;
    query := tokens_query(project, part_first >> 14, part_last >> 14, channel_ids, sources, tags, words);
    found := array(
      select e.seq
      from events e
      where tokens_of(e.project_id, e.seq, e.channel_id, e.source, e.tags, e.title, e.description) @@ query
        -- `is true` keeps these conditions from the indexes that would serve them.
        and (e.project_id = project) is true
        and (e.seq between part_first and part_last) is true
      order by case when is_newest_first then -e.seq else e.seq end
      limit missing
    );
    return query select f.seq from unnest(found) as f (seq);
    missing := missing - cardinality(found);
    exit when missing <= 0;
    reached := case when is_newest_first then part_first else part_last end;
    if clock_timestamp() >= ends_at or reached = end_seq then
      return query select reached where reached is distinct from found[cardinality(found)];
      exit;
    end if;
    if clock_timestamp() < at + interval '2 ms' then
      buckets := least(2 * buckets, 16);
    elsif clock_timestamp() > at + interval '8 ms' then
      buckets := greatest(buckets / 2, 1);
    end if;
    if is_newest_first then
      part_last := part_first - 1;
    else
      part_first := part_last + 1;
    end if;
  end loop;
end
$$;

-- Appends events to the logs of their projects, in order; a row each. Each statement of a volatile function has a
-- snapshot of its own, so the second one sees what others committed while the first waited for the lock.
-- A row either knows its channel (channel_slug null, and its names only with a key) or brings a candidate for a new one.
-- Heads, tails and fingerprints come with a key alone. A channel comes back only where it was looked up. No row comes
-- back for a project that is gone.
-- The plan is pinned: planning anew costs more than the work, and a plan made on empty tables would scan them.
create or replace function append_events(
  project_ids uuid[], ids uuid[], occurred_ats timestamptz[],
  channel_ids uuid[], channel_public_ids text[], channel_slugs text[], channel_names text[],
  titles text[], descriptions text[], icons text[], tag_lists text[], metadatas text[], user_refs text[],
  sources text[], notifies boolean[],
  keys text[], fingerprints bytea[], heads text[], tails text[]
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
  -- Places of keys that another transaction is at work on: they come back as 'running', and nothing waits for them.
  running bigint[] := running_keys(project_ids, keys);
begin
  perform from event_logs l
    where l.project_id = any(without_places(project_ids, running))
    order by l.project_id
    for update;
  -- After the lock, so that time never runs against seq.
  at := date_trunc('milliseconds', clock_timestamp());
  at_text := to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');

  return query
  with input as materialized (
    select *
    from unnest(
      project_ids, ids, occurred_ats, channel_ids, channel_public_ids, channel_slugs, channel_names,
      titles, descriptions, icons, tag_lists, metadatas, user_refs, sources, notifies,
      keys, fingerprints, heads, tails
    ) with ordinality as i (
      project_id, id, occurred_at, channel_id, channel_public_id, channel_slug, channel_name,
      title, description, icon, tags, metadata, user_ref, source, notify,
      key, fingerprint, head, tail, ord
    )
    where i.ord <> all(running)
  ), seen as materialized (
    select
      i.project_id, i.id, i.occurred_at, i.channel_slug, i.title, i.description, i.icon, i.tags, i.metadata,
      i.user_ref, i.source, i.notify, i.key, i.fingerprint, i.head, i.tail, i.ord,
      l.last_seq,
      k.fingerprint as known_fingerprint, k.body as known_body,
      coalesce(k.expires_at > at, false) as done,
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
  ), placed as materialized (
    select *,
      last_seq + count(*) filter (where not done) over (partition by project_id order by ord) as seq,
      hour_of(coalesce(occurred_at, at)) as hour
    from seen
  ), ready as materialized (
    select *, case
        when done then known_body
        when key is not null then
          head || seq || ',"channelId":"' || channel_public_id || '","channelName":' || to_json(channel_name)::text
          || ',"userId":' || coalesce(to_json(user_id)::text, 'null')
          || ',"timestamp":"'
          || coalesce(to_char(occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), at_text)
          || '","createdAt":"' || at_text || tail
      end as body
    from placed
  ), new_channels as (
    insert into channels (project_id, id, public_id, slug, name, icon, created_at)
    select distinct on (project_id, channel_slug)
      project_id, channel_id, channel_public_id, channel_slug, channel_name, icon, at
    from ready
    where is_new_channel and not done
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
    where not done
  ), counted as (
    insert into event_counts as n (project_id, hour, channel_id, n)
    select project_id, hour, channel_id, count(*)
    from ready
    where not done
    group by project_id, hour, channel_id
    order by project_id, hour, channel_id
    on conflict (project_id, hour, channel_id) do update set n = n.n + excluded.n
  ), stretched as (
    insert into event_stretches as s (project_id, stretch, first_at, last_at)
    select r.project_id, r.stretch, r.first_at, r.last_at
    from (
      select
        project_id, seq >> 12 as stretch, min(hour) as first_at, max(hour) + interval '1 hour' as last_at
      from ready
      where not done
      group by project_id, seq >> 12
    ) r
      left join lateral (
        select s.first_at, s.last_at
        from event_stretches s where s.project_id = r.project_id and s.stretch = r.stretch limit 1
      ) s on true
    where s.first_at is null or r.first_at < s.first_at or r.last_at > s.last_at
    order by r.project_id, r.stretch
    on conflict (project_id, stretch) do update set
      first_at = least(s.first_at, excluded.first_at), last_at = greatest(s.last_at, excluded.last_at)
  ), answers as (
    insert into idempotency_keys as k (project_id, key, fingerprint, status, user_id, body, expires_at)
    select project_id, key, fingerprint, 201, user_id, body, at + interval '24 hours'
    from ready
    where not done and key is not null
    on conflict (project_id, key) do update set
      fingerprint = excluded.fingerprint, status = excluded.status, user_id = excluded.user_id,
      body = excluded.body, expires_at = excluded.expires_at
  ), heads_moved as (
    -- The rows are there: this is an update that finds each by its key, however many projects there are.
    insert into event_logs (project_id, last_seq)
    select project_id, max(seq) from ready where not done group by project_id
    on conflict (project_id) do update set last_seq = excluded.last_seq
  )
  select
    ord::int,
    case when not done then 'done' when known_fingerprint = fingerprint then 'replayed' else 'reused' end,
    seq, (extract(epoch from at) * 1000)::bigint,
    case when channel_slug is not null then channel_id end,
    case when channel_slug is not null then channel_public_id end,
    case when channel_slug is not null then channel_name end,
    user_id, body
  from ready;

  return query
  select r.ord::int, 'running', null::bigint, null::bigint, null::uuid, null, null, null, null
  from unnest(running) as r (ord);
end
$$;

-- Takes events out of the counts: of `project`, at these moments, in these channels. The caller holds the project's log.
create function uncount_events(project uuid, moments timestamptz[], channel_ids uuid[]) returns void
language sql as $$
  with gone as (
    select hour_of(g.moment) as hour, g.channel_id, count(*) as n
    from unnest(moments, channel_ids) as g (moment, channel_id)
    group by 1, 2
  ), emptied as (
    delete from event_counts c
      using gone g
      where c.project_id = project and c.hour = g.hour and c.channel_id = g.channel_id and c.n <= g.n
  )
  update event_counts c set n = c.n - g.n
    from gone g
    where c.project_id = project and c.hour = g.hour and c.channel_id = g.channel_id and c.n > g.n
$$;

-- Puts events back into the counts. The caller holds the project's log.
create function recount_events(project uuid, moments timestamptz[], channel_ids uuid[]) returns void
language sql as $$
  insert into event_counts as c (project_id, hour, channel_id, n)
  select project, hour_of(g.moment), g.channel_id, count(*)
  from unnest(moments, channel_ids) as g (moment, channel_id)
  group by 2, 3
  on conflict (project_id, hour, channel_id) do update set n = c.n + excluded.n
$$;

-- Hides events from every reader and takes them out of the counts; returns the seqs of those that were there. Like
-- every writer of a project it locks the log first.
create function hide_events(project uuid, seqs bigint[]) returns setof bigint
language plpgsql as $$
declare
  hidden bigint[];
  moments timestamptz[];
  channel_ids uuid[];
begin
  perform from event_logs l where l.project_id = project for update;
  with changed as (
    update events e set deleted_at = clock_timestamp()
      where e.project_id = project and e.seq = any(seqs) and e.deleted_at is null
      returning e.seq, e.occurred_at, e.channel_id
  )
  select array_agg(c.seq order by c.seq), array_agg(c.occurred_at order by c.seq), array_agg(c.channel_id order by c.seq)
    into hidden, moments, channel_ids
    from changed c;
  perform uncount_events(project, moments, channel_ids);
  return query select h.seq from unnest(hidden) as h (seq);
end
$$;

-- Undoes hide_events for what is not purged yet; returns the seqs.
create function restore_events(project uuid, seqs bigint[]) returns setof bigint
language plpgsql as $$
declare
  restored bigint[];
  moments timestamptz[];
  channel_ids uuid[];
begin
  perform from event_logs l where l.project_id = project for update;
  with changed as (
    update events e set deleted_at = null
      where e.project_id = project and e.seq = any(seqs) and e.deleted_at is not null
      returning e.seq, e.occurred_at, e.channel_id
  )
  select array_agg(c.seq order by c.seq), array_agg(c.occurred_at order by c.seq), array_agg(c.channel_id order by c.seq)
    into restored, moments, channel_ids
    from changed c;
  perform recount_events(project, moments, channel_ids);
  return query select r.seq from unnest(restored) as r (seq);
end
$$;

-- Deletes events, hidden or not, and takes out of the counts what was in them; returns the seqs.
create function delete_events(project uuid, seqs bigint[]) returns setof bigint
language plpgsql as $$
declare
  deleted bigint[];
  moments timestamptz[];
  channel_ids uuid[];
begin
  perform from event_logs l where l.project_id = project for update;
  with gone as (
    delete from events e
      where e.project_id = project and e.seq = any(seqs)
      returning e.seq, e.occurred_at, e.channel_id, e.deleted_at
  )
  select
      array_agg(g.seq order by g.seq),
      array_agg(g.occurred_at order by g.seq) filter (where g.deleted_at is null),
      array_agg(g.channel_id order by g.seq) filter (where g.deleted_at is null)
    into deleted, moments, channel_ids
    from gone g;
  perform uncount_events(project, moments, channel_ids);
  return query select d.seq from unnest(deleted) as d (seq);
end
$$;
