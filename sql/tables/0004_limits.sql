-- One row is the rate window of a key. used is its number of requests. Unlogged: a crash of
-- Postgres resets all windows.
create unlogged table rate_windows (
  key_id uuid primary key,
  used int not null,
  started_at timestamptz not null
) with (fillfactor = 50);

-- Returns whether a rate window is still open. A window that begins more than 5 s in the future
-- means that the clock was set back.
create function is_window_open(started_at timestamptz) returns boolean
language sql stable
return started_at > now() - interval '60 s' and started_at <= now() + interval '5 s';

-- Counts requests in the windows of their keys. Returns one row for each hash; without a key_id
-- when no live key has the hash. used includes the counted requests. reset_at is in Unix
-- seconds, and retry_after in seconds.
--
-- Windows are locked in the order of keys, so that transactions cannot deadlock.
create function count_requests(hashes bytea[], counts int[])
returns table (
  ord int, key_id uuid, project_id uuid, scopes text, rate_limit int, used int, reset_at float8,
  retry_after float8
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
  return query
  with known as (
    select h.ord, h.n, k.id, k.project_id, k.scopes, k.rate_limit
    from unnest(hashes, counts) with ordinality as h (hash, n, ord)
      left join lateral (
        select k.id, k.project_id, k.scopes, k.rate_limit
        from api_keys k
        where k.hash = h.hash and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
        limit 1
      ) k on true
  ), counted as (
    insert into rate_windows as w (key_id, used, started_at)
    select id, n, now() from known where id is not null order by id
    on conflict (key_id) do update set
      used = case
        when is_window_open(w.started_at) then least(w.used + excluded.used, 1000000000)
        else excluded.used
      end,
      started_at = case when is_window_open(w.started_at) then w.started_at else excluded.started_at end
    returning key_id, used, started_at
  )
  select
    k.ord::int, k.id, k.project_id, array_to_string(k.scopes, ' '), k.rate_limit, c.used,
    ceil(extract(epoch from c.started_at + interval '60 s'))::float8,
    extract(epoch from c.started_at + interval '60 s' - now())::float8
  from known k
    left join counted c on c.key_id = k.id;
end
$$;

-- One row is what an organization has used: events in a minute, and bytes of events in a day (UTC).
-- Unlogged: a crash of Postgres resets all usage.
create unlogged table organization_usage (
  organization_id uuid primary key references organizations on delete cascade,
  minute timestamptz not null,
  events bigint not null,
  day timestamptz not null,
  bytes bigint not null
) with (fillfactor = 50);

-- One row is a used Idempotency-Key, and the response that every retry gets until the key expires.
create table idempotency_keys (
  project_id uuid not null references projects,
  key text not null,
  fingerprint bytea not null,
  status smallint not null,
  -- For erasure: the id of the response's user, and all other names of users that the response
  -- contains.
  user_id text,
  other_names text[],
  -- The event of the response; null for a response to identify.
  seq bigint,
  body text not null,
  expires_at timestamptz not null,
  primary key (project_id, key)
);

-- Serves the sweep of expired keys.
create index idempotency_keys_expired on idempotency_keys (expires_at);

-- Serves erasure by user.
create index idempotency_keys_of_user on idempotency_keys (project_id, user_id) where user_id is not null;

-- Serves the deletion of an event.
create index idempotency_keys_of_event on idempotency_keys (project_id, seq) where seq is not null;

-- Serves erasure by other names, which only responses to identify with aliases contain.
create index idempotency_keys_of_other_names on idempotency_keys (project_id, key) where other_names is not null;

-- Locks Idempotency-Keys until the transaction ends, without waiting. Returns the positions of keys
-- that another transaction has locked.
create function lock_idempotency_keys(project_ids uuid[], keys text[]) returns bigint[]
language plpgsql as $$
begin
  if array_remove(keys, null) = '{}' then
    return '{}';
  end if;
  return array(
    select k.ord
    from unnest(project_ids, keys) with ordinality as k (project_id, key, ord)
    where k.key is not null
      and not pg_try_advisory_xact_lock(hashtextextended(k.key, hashtextextended(k.project_id::text, 0)))
  );
end
$$;

-- Returns the response to an event without its content. A retry gets it when the event was deleted:
-- the event is not made again, and its text is not shown.
create function empty_event_response(response json) returns text
language sql immutable
return '{"success":true,"data":{"id":' || (response #> '{data,id}')::text
  || ',"seq":' || (response #> '{data,seq}')::text
  || ',"channelId":' || (response #> '{data,channelId}')::text
  || ',"channelName":' || (response #> '{data,channelName}')::text
  || ',"userId":null,"timestamp":' || (response #> '{data,timestamp}')::text
  || ',"createdAt":' || (response #> '{data,createdAt}')::text
  || ',"title":"","description":null,"icon":null,"tags":[],"metadata":{},"source":'
  || (response #> '{data,source}')::text
  || ',"notify":' || (response #> '{data,notify}')::text
  || '},"requestId":' || (response -> 'requestId')::text || '}';

-- Returns the projects without those at the given positions.
create function remove_positions(project_ids uuid[], positions bigint[]) returns uuid[]
language sql immutable as $$
  select case
    when positions = '{}' then project_ids
    else array(
      select p.id from unnest(project_ids) with ordinality as p (id, ord) where p.ord <> all(positions)
    )
  end
$$;
