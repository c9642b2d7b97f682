-- One row is how far an account has read a channel. A null channel_id means all channels. The later
-- of the two marks applies.
create table read_marks (
  account_id uuid not null references accounts on delete cascade,
  project_id uuid not null references projects on delete cascade,
  channel_id uuid,
  seq bigint not null check (seq >= 0),
  -- Serves the unread counts and, by its first columns, the deletion of a project or channel.
  unique nulls not distinct (project_id, channel_id, account_id),
  foreign key (project_id, channel_id) references channels (project_id, id) on delete cascade
);

-- Serves the deletion of an account.
create index read_marks_of_account on read_marks (account_id);

-- Counts the events of a channel after the seq `mark`, up to 100. Without a mark, it counts those
-- created since `since`. The settings force the index events_of_channel. Otherwise, for a channel
-- with few events, Postgres might read all events of the project. The row comparison and the order
-- also fit only that index.
create function count_unread(project uuid, channel uuid, mark bigint, since timestamptz) returns int
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

-- Returns the newest event of a channel; no row when it has none. The settings are explained at
-- count_unread.
create function last_event(project uuid, channel uuid) returns table (seq bigint, created_at timestamptz)
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
begin
  return query
  select e.seq, e.created_at
  from events e
  where e.project_id = project
    and (e.channel_id, e.seq) > (channel, 0)
    and (e.channel_id, e.seq) <= (channel, 9223372036854775807)
    and e.deleted_at is null
  order by e.channel_id desc, e.seq desc
  limit 1;
end
$$;
