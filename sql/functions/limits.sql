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

-- Takes room for the channels of events that do not exist yet, from the quotas of organizations.
-- Returns the positions of the events whose channel has none; a slug is null for an event that
-- needs no channel. The caller has locked the logs of the projects, and then creates the channels.
-- Organizations are locked in their order, so that transactions cannot deadlock.
--
-- Counters only rise. At the limit, the channels are counted anew, at most once a second.
create or replace function take_channels(project_ids uuid[], slugs text[]) returns bigint[]
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  max_channels int := (select i.max_channels from installation i);
  wanted record;
  organization uuid;
  -- The channels of the organization that this call has taken.
  taken int;
  full_positions bigint[] := '{}';
begin
  for wanted in
    select p.organization_id, i.project_id, i.slug, array_agg(i.ord) as positions
    from unnest(project_ids, slugs) with ordinality as i (project_id, slug, ord)
      cross join lateral (select p.organization_id from projects p where p.id = i.project_id limit 1) p
    where i.slug is not null and max_channels is not null
    group by 1, 2, 3
    order by 1, min(i.ord)
  loop
    if organization is distinct from wanted.organization_id then
      organization := wanted.organization_id;
      taken := 0;
    end if;
    perform from channels c
      where c.project_id = wanted.project_id and c.slug >= wanted.slug and c.slug <= wanted.slug
      order by c.slug
      limit 1;
    continue when found;
    for attempt in 1 .. 2 loop
      update organization_channels c set channels = c.channels + 1
        where c.organization_id = organization and c.channels < max_channels;
      exit when found;
      if attempt = 2 then
        taken := taken - 1;
        full_positions := full_positions || wanted.positions;
      else
        insert into organization_channels (organization_id, channels, counted_at)
          values (organization, max_channels, '-infinity')
          on conflict do nothing;
        -- The count comes after the lock, so it has what others have committed.
        perform from organization_channels c where c.organization_id = organization for no key update;
        update organization_channels c
          set counted_at = clock_timestamp(), channels = taken + (
            select count(*)
            from (
              select from projects p cross join lateral channels_of(p.id) h
              where p.organization_id = organization and p.deleted_at is null
              limit max_channels
            ) h
          )
          where c.organization_id = organization
            and (c.counted_at < clock_timestamp() - interval '1 s' or c.counted_at > clock_timestamp());
      end if;
    end loop;
    taken := taken + 1;
  end loop;
  return full_positions;
end
$$;
