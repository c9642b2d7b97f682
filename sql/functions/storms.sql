-- Returns how members are told of an event that opens a firing thread, or ends one of a storm (see
-- `telling` of events). Its thread is stored. `telling` is the result without a storm.
--
-- The fifth thread that begins to fire in a channel within 30 seconds makes a storm of them, and
-- speaks for it. Threads of one key count once. A thread that begins to fire within 30 seconds of
-- the last one joins the storm, which is over when none of its threads is open.
create or replace function storm_telling(
  project uuid, channel uuid, event_thread_seq bigint, event_level smallint, is_opening boolean, telling smallint,
  at timestamptz
) returns smallint
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  rank constant smallint := coalesce(event_level, 1);
  pause constant interval := '30 s';
  thread threads;
  storm storms;
  -- True unless all threads of a new storm fire again.
  is_new boolean := false;
  one bigint;
begin
  select * into thread from threads t where t.project_id = project and t.thread_seq = event_thread_seq;
  if not is_opening then
    -- Threads mostly end in the order of their beginning.
    if (
      select t.thread_seq
      from threads t
      where t.project_id = project and t.storm_seq = thread.storm_seq and t.severity >= 0
      order by t.severity desc
      limit 1
    ) is null then
      update storms s set last_at = null
        where s.project_id = project and s.channel_id = channel and s.storm_seq = thread.storm_seq;
      -- A failure that is told aloud is its own.
      return case when telling is not null then 4 end;
    end if;
    -- The last notification of its own is updated in place.
    return case when telling = 1 and thread.loud_seq is null then 3 else telling end;
  end if;
  -- Nobody is told of so old an event.
  if thread.opened_at < at - interval '10 minutes' then
    return telling;
  end if;

  select * into storm from storms s where s.project_id = project and s.channel_id = channel;
  if storm.last_at between at - pause and at + pause then
    update threads t set storm_seq = storm.storm_seq, loud_seq = null
      where t.project_id = project and t.thread_seq = event_thread_seq;
    telling := case
      when rank > storm.level then 4
      when at >= storm.speaks_at or rank > storm.speaks_level then 5
      else 3
    end;
    if telling <> 3 or storm.last_at <> at then
      update storms s set
          last_at = at, level = greatest(s.level, rank),
          speaks_level = case telling when 5 then rank else s.speaks_level end,
          speaks_at = case when telling = 5 and at >= s.speaks_at then at + pause else s.speaks_at end
        where s.project_id = project and s.channel_id = channel;
    end if;
    return telling;
  end if;

  select array_agg(u.seq order by u.seq), array_agg(u.at order by u.seq) into storm.seqs, storm.ats
    from unnest(storm.seqs || event_thread_seq, storm.ats || at) as u (seq, at)
    where u.at between storm_telling.at - pause and storm_telling.at + pause and (
      u.seq = event_thread_seq or (
        select t.key
        from threads t
        where t.project_id = project and t.thread_seq >= u.seq and t.thread_seq <= u.seq
        order by t.thread_seq
        limit 1
      ) is distinct from thread.key
    );
  storm.last_at := null;
  if cardinality(storm.seqs) = 5 then
    -- If all of them fire again within five minutes, the storm waits until these are over.
    foreach one in array storm.seqs loop
      update threads t set storm_seq = event_thread_seq, loud_seq = nullif(t.loud_seq, event_thread_seq)
        where t.project_id = project and t.thread_seq = one
        returning is_new or coalesce(t.told_at = any(storm.ats), false) into is_new;
    end loop;
    foreach one in array case when is_new then storm.seqs else '{}' end loop
      update threads t set told_at = storm_telling.at where t.project_id = project and t.thread_seq = one;
    end loop;
    telling := 4;
    storm.last_at := at;
    storm.seqs := '{}';
    storm.ats := '{}';
  end if;
  insert into storms as s (project_id, channel_id, seqs, ats, storm_seq, level, last_at, speaks_level, speaks_at)
    values (
      project, channel, storm.seqs, storm.ats, event_thread_seq, rank, storm.last_at, rank, at
    )
    on conflict (project_id, channel_id) do update set
      seqs = excluded.seqs, ats = excluded.ats, storm_seq = excluded.storm_seq, level = excluded.level,
      last_at = excluded.last_at, speaks_level = excluded.speaks_level, speaks_at = excluded.speaks_at;
  return telling;
end
$$;
