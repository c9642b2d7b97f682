-- Counts the events of a channel after the seq `mark`, up to 100. Without a mark, it counts those
-- created since `since`. The settings force the index events_of_channel. Otherwise, for a channel
-- with few events, Postgres might read all events of the project. The row comparison and the order
-- also fit only that index.
create or replace function count_unread(project uuid, channel uuid, mark bigint, since timestamptz) returns int
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
begin
  return (
    select count(*)
    from (
      select e.created_at
      from events e
      where e.project_id = project
        and (e.channel_id, e.seq) > (channel, coalesce(mark, 0))
        and (e.channel_id, e.seq) <= (channel, 9223372036854775807)
        and e.deleted_at is null
      order by e.channel_id desc, e.seq desc
      limit 100
    ) newest
    where mark is not null or newest.created_at >= since
  );
end
$$;

-- Returns the newest seq of a channel, and the latest times of its newest 20 events, because the
-- last one can be backfilled; nulls when it has none. The settings are explained at count_unread.
create or replace function newest_of_channel(project uuid, channel uuid)
returns table (seq bigint, occurred_at timestamptz, created_at timestamptz)
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
begin
  return query
  select max(n.seq), max(n.occurred_at), max(n.created_at)
  from (
    select e.seq, e.occurred_at, e.created_at
    from events e
    where e.project_id = project
      and (e.channel_id, e.seq) > (channel, 0)
      and (e.channel_id, e.seq) <= (channel, 9223372036854775807)
      and e.deleted_at is null
    order by e.channel_id desc, e.seq desc
    limit 20
  ) n;
end
$$;
