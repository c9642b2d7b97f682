-- Returns whether a rate window is still open. A window that begins more than 5 s in the future
-- means that the clock was set back.
create or replace function is_window_open(started_at timestamptz) returns boolean
language sql stable
return started_at > now() - interval '60 s' and started_at <= now() + interval '5 s';

-- Counts `n` requests in the window of a key or a token. used includes them. reset_at is in Unix
-- seconds, and retry_after in seconds. A closed window begins anew. Without an owner, all are null.
create or replace function count_in_rate_window(
  owner uuid, n int, out used int, out reset_at float8, out retry_after float8
)
language plpgsql strict
as $$
#variable_conflict use_column
begin
  insert into rate_windows as w (key_id, used, started_at)
    values (owner, n, now())
    on conflict (key_id) do update set
      used = case when is_window_open(w.started_at) then least(w.used + excluded.used, 1000000000) else excluded.used end,
      started_at = case when is_window_open(w.started_at) then w.started_at else now() end
    returning
      w.used, ceil(extract(epoch from w.started_at + interval '60 s')),
      extract(epoch from w.started_at + interval '60 s' - now())
    into used, reset_at, retry_after;
end
$$;

-- Counts requests of keys in their windows. Returns one row for each hash; without a key_id when no
-- live key has the hash.
--
-- Windows are locked in the order of keys, so that transactions cannot deadlock.
create or replace function count_requests(hashes bytea[], counts int[])
returns table (
  ord int, key_id uuid, project_id uuid, scopes text, rate_limit int, used int, reset_at float8,
  retry_after float8
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
  return query
  select
    k.ord::int, k.id, k.project_id, array_to_string(k.scopes, ' '), k.rate_limit, c.used, c.reset_at, c.retry_after
  from (
    select h.ord, h.n, k.id, k.project_id, k.scopes, k.rate_limit
    from unnest(hashes, counts) with ordinality as h (hash, n, ord)
      left join lateral (
        select k.id, k.project_id, k.scopes, k.rate_limit
        from api_keys k
        where k.hash = h.hash and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
        limit 1
      ) k on true
    order by k.id
  ) k
    cross join lateral count_in_rate_window(k.id, k.n) c;
end
$$;
