-- Subtracts events with these times and channels from the counts. The caller must have locked the
-- project's log.
create or replace function subtract_event_counts(project uuid, occurred_ats timestamptz[], channel_ids uuid[]) returns void
language sql
set search_path from current
as $$
  with gone as (
    select hour_of(g.occurred_at) as hour, g.channel_id, count(*) as n
    from unnest(occurred_ats, channel_ids) as g (occurred_at, channel_id)
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

-- Adds events with these times and channels to the counts. The caller must have locked the
-- project's log.
create or replace function add_event_counts(project uuid, occurred_ats timestamptz[], channel_ids uuid[]) returns void
language sql
set search_path from current
as $$
  insert into event_counts as c (project_id, hour, channel_id, n)
  select project, hour_of(g.occurred_at), g.channel_id, count(*)
  from unnest(occurred_ats, channel_ids) as g (occurred_at, channel_id)
  group by 2, 3
  on conflict (project_id, hour, channel_id) do update set n = c.n + excluded.n
$$;

-- Returns the counts of a project from one hour to another. The offset forces one range of the
-- primary key.
create or replace function counts_of_hours(project uuid, first_hour timestamptz, last_hour timestamptz)
returns table (channel_id uuid, hour timestamptz, n bigint)
language sql stable as $$
  select e.channel_id, e.hour, e.n
  from event_counts e
  where e.project_id = project and e.hour >= first_hour and e.hour <= last_hour
  offset 0
$$;

-- Returns the counts of channels for each hour, as a JSON array. It looks up one row for each
-- channel and hour, however many channels the project has.
create or replace function hourly_counts_of_channels(
  project uuid, channels uuid[], first_hour timestamptz, last_hour timestamptz
) returns table (channel_id uuid, counts text)
language sql stable as $$
  select w.id, (
      select json_agg(coalesce(n.n, 0) order by h.hour)::text
      from generate_series(first_hour, last_hour, interval '1 hour') as h (hour)
        left join event_counts n on n.project_id = project and n.hour = h.hour and n.channel_id = w.id
    )
  from unnest(channels) as w (id)
$$;
