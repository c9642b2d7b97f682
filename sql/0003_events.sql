-- The head of a project's log. Whoever writes to a project locks this row first: that makes seq dense and in commit
-- order, and leaves one writer at a time to a project's channels, aliases and idempotency keys.
create table event_logs (
  project_id uuid primary key references projects,
  last_seq bigint not null default 0
) with (fillfactor = 50);

-- A named stream of a project's events. slug is its identity, name the spelling first seen.
create table channels (
  project_id uuid not null references projects,
  id uuid not null,
  public_id text not null,
  slug text not null,
  name text not null,
  icon text,
  created_at timestamptz not null,
  primary key (project_id, id),
  unique (project_id, slug)
);

-- Something that happened. user_ref is the user_id or alias as it was sent: reads resolve it.
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
  -- json, not jsonb: kept and returned as it was sent.
  metadata json not null,
  user_ref text,
  source text not null,
  notify boolean not null,
  -- Serves every reader of the log.
  primary key (project_id, seq),
  -- Serves an event by its id.
  unique (project_id, id),
  foreign key (project_id, channel_id) references channels (project_id, id)
);

-- Serves the list of a channel's events.
create index events_of_channel on events (project_id, channel_id, seq);

-- Serves the list of a person's events, and erasure.
create index events_of_user on events (project_id, user_ref, seq) where user_ref is not null;

-- Serves the filters from and to.
create index events_of_time on events (project_id, occurred_at);

-- Serves the filter tag. Rows wait in a list that autovacuum sorts in, so that an insert stays cheap.
create index events_of_tag on events using gin (tags) with (gin_pending_list_limit = 256);

-- Serves the text search; its rows wait likewise.
create index events_text on events
  using gin (to_tsvector('simple', title || ' ' || coalesce(description, '')))
  with (gin_pending_list_limit = 256);

-- Appends events to the logs of their projects, in order; a row each. Each statement of a volatile function has a
-- snapshot of its own, so the second one sees what others committed while the first waited for the lock.
-- A row either knows its channel (channel_slug null, and its names only with a key) or brings a candidate for a new one.
-- Heads, tails and fingerprints come with a key alone. A channel comes back only where it was looked up. No row comes
-- back for a project that is gone.
-- The plan is pinned: planning anew costs more than the work, and a plan made on empty tables would scan them.
create function append_events(
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
    select *, last_seq + count(*) filter (where not done) over (partition by project_id order by ord) as seq
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

-- The names under which events may know a user: the user_id and its aliases. An alias that is someone else's user_id
-- names that other user, and a name that is nothing but an alias names no user of its own: then there are none.
create function names_of_user(project uuid, name text) returns text[]
language sql stable as $$
  select case
    when exists (select from identities i where i.project_id = project and i.user_id = name)
      or not exists (select from aliases a where a.project_id = project and a.alias = name)
    then array[name] || array(
      select a.alias
      from aliases a
      where a.project_id = project and a.user_id = name
        and not exists (select from identities i where i.project_id = project and i.user_id = a.alias)
    )
    else '{}'
  end
$$;

-- Takes `names` out of at most so many events; returns out of how many.
create function forget_events(project uuid, names text[], most int) returns int
language plpgsql as $$
declare
  n int;
begin
  with found as (
    select e.seq
    from events e
    where e.project_id = project and e.user_ref = any(names)
    order by e.seq
    limit most
    for update
  )
  update events e set user_ref = null
    from found
    where e.project_id = project and e.seq = found.seq;
  get diagnostics n = row_count;
  return n;
end
$$;

-- Takes `names` out of at most so many stored answers about them; returns out of how many.
create function forget_answers(project uuid, names text[], most int) returns int
language plpgsql as $$
declare
  n int;
begin
  with found as (
    select k.key
    from idempotency_keys k
    where k.project_id = project and k.user_id = any(names)
    order by k.key
    limit most
    for update
  )
  update idempotency_keys k set
    user_id = null,
    others = null,
    -- The first place that names the user in an event's answer is ours: what the caller wrote before it has its quotes escaped.
    body = case k.status
      when 201 then overlay(
        k.body placing '"userId":null'
        from position('"userId":' || to_json(k.user_id)::text in k.body)
        for length('"userId":' || to_json(k.user_id)::text))
      else '{"success":true,"data":{"id":' || (k.body::json #> '{data,id}')::text
        || ',"userId":null,"properties":{},"aliases":{"created":[]},"updatedAt":'
        || (k.body::json #> '{data,updatedAt}')::text
        || '},"requestId":' || (k.body::json #> '{requestId}')::text || '}'
    end
    from found
    where k.project_id = project and k.key = found.key;
  get diagnostics n = row_count;
  return n;
end
$$;

-- An answer to identify without the failed aliases that are among `names`.
create function forget_failed(answer json, names text[]) returns text
language sql immutable as $$
  select '{"success":true,"data":{"id":' || (answer #> '{data,id}')::text
    || ',"userId":' || (answer #> '{data,userId}')::text
    || ',"properties":' || (answer #> '{data,properties}')::text
    || ',"aliases":{"created":' || (answer #> '{data,aliases,created}')::text
    || coalesce(',"failed":[' || (
      select string_agg(f.item::text, ',' order by f.place)
      from json_array_elements(answer #> '{data,aliases,failed}') with ordinality as f (item, place)
      where f.item ->> 'alias' <> all(names)
    ) || ']', '')
    || '},"updatedAt":' || (answer #> '{data,updatedAt}')::text
    || '},"requestId":' || (answer -> 'requestId')::text || '}'
$$;

-- The long part of an erasure, in steps: takes a user out of at most so many events and answers. Planned anew each time,
-- like the rest: a plan made on a small table would scan it when it is big.
create function forget_user(project uuid, name text, most int) returns table (events int, answers int)
language plpgsql
set plan_cache_mode = force_custom_plan
as $$
declare
  names text[] := names_of_user(project, name);
begin
  events := forget_events(project, names, most);
  answers := forget_answers(project, names, most);
  return next;
end
$$;

-- Erases a user of a project: identity, properties and aliases go, and what names them in events and in stored answers
-- becomes null. Returns the number of events that named them, and whether there was an identity. It holds up the
-- project's writers: `forget_user` comes first and leaves it little to do.
create function erase_user(project uuid, name text) returns table (events int, was_known boolean)
language plpgsql
set plan_cache_mode = force_custom_plan
as $$
declare
  names text[];
begin
  perform from event_logs l where l.project_id = project for update;
  names := names_of_user(project, name);
  events := forget_events(project, names, null);
  perform forget_answers(project, names, null);
  -- The answers to others may say that a name was taken.
  update idempotency_keys k set
    others = array(select o.name from unnest(k.others) as o (name) where o.name <> all(names)),
    body = forget_failed(k.body::json, names)
  where k.project_id = project and k.status = 200 and k.others is not null and k.others && names;

  delete from identities i where i.project_id = project and i.user_id = erase_user.name;
  was_known := found;
  return next;
end
$$;
