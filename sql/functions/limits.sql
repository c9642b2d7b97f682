-- Returns whether a rate window is still open. A window that begins more than 5 s in the future
-- means that the clock was set back.
create or replace function is_window_open(started_at timestamptz) returns boolean
language sql stable
return started_at > now() - interval '60 s' and started_at <= now() + interval '5 s';

-- Returns the used requests of a window after more of them. A closed window begins anew.
create or replace function count_in_window(used int, started_at timestamptz, more int) returns int
language sql stable
return case when is_window_open(started_at) then least(used + more, 1000000000) else more end;

-- Returns when the window began that is open now.
create or replace function open_window_start(started_at timestamptz) returns timestamptz
language sql stable
return case when is_window_open(started_at) then started_at else now() end;

-- Counts requests in the windows of their keys. Returns one row for each hash; without a key_id
-- when no live key has the hash. used includes the counted requests. reset_at is in Unix
-- seconds, and retry_after in seconds.
--
-- Windows are locked in the order of keys, so that transactions cannot deadlock.
create or replace function count_requests(hashes bytea[], counts int[])
returns table (
  ord int, key_id uuid, project_id uuid, scopes text, rate_limit int, used int, reset_at float8,
  retry_after float8
)
language plpgsql
set search_path from current
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
      used = count_in_window(w.used, w.started_at, excluded.used), started_at = open_window_start(w.started_at)
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
