-- Tries to lock the cleanup of a project until the transaction ends. Returns false when another
-- transaction has the lock.
create or replace function try_lock_cleanup(project uuid) returns boolean
language sql
return pg_try_advisory_xact_lock(71342006, hashtext(project::text));

-- Hides events from every reader, and subtracts them from the counts. Returns the seqs of those
-- that were visible. Like every writer of a project, it locks the project's log first.
create or replace function hide_events(project uuid, seqs bigint[]) returns setof bigint
language plpgsql
as $$
declare
  at constant timestamptz := clock_timestamp();
  hidden bigint[];
  occurred_ats timestamptz[];
  channel_ids uuid[];
  thread_seqs bigint[];
  ended_threads bigint[];
  loud bigint;
  events push_event[];
  alarms uuid[];
begin
  perform from event_logs l where l.project_id = project for update;
  with changed as (
    update events e set deleted_at = at
      where e.project_id = project and e.seq = any(seqs) and e.deleted_at is null
      returning e.seq, e.occurred_at, e.channel_id, e.thread_seq, e.state
  )
  select
      array_agg(c.seq order by c.seq), array_agg(c.occurred_at order by c.seq),
      array_agg(c.channel_id order by c.seq), array_agg(c.thread_seq order by c.seq),
      array_agg(distinct c.thread_seq) filter (where c.state in (0, 1))
    into hidden, occurred_ats, channel_ids, thread_seqs, ended_threads
    from changed c;
  perform subtract_event_counts(project, occurred_ats, channel_ids);
  perform refold_threads(project, hidden, thread_seqs, false);
  -- A thread that is open again is an alarm again, for the time in which alarms are repeated.
  for loud in
    select t.loud_seq
    from unnest(ended_threads) as u (seq)
      cross join lateral thread_by_seq(project, u.seq) t
      cross join lateral events_between(project, t.loud_seq - 1, t.loud_seq) e
    where t.severity is not null and e.created_at > now() - interval '2 hours'
  loop
    for events, alarms in
      select p.events, p.alarms from push_events_by_level(array[project], array[loud - 1], array[loud]) p
    loop
      perform start_timers(events, alarms);
    end loop;
  end loop;
  return query select h.seq from unnest(hidden) as h (seq);
end
$$;

-- Reverts hide_events for events that are not purged yet. Returns their seqs.
create or replace function restore_events(project uuid, seqs bigint[]) returns setof bigint
language plpgsql
as $$
declare
  restored bigint[];
  occurred_ats timestamptz[];
  channel_ids uuid[];
  thread_seqs bigint[];
begin
  perform from event_logs l where l.project_id = project for update;
  with changed as (
    update events e set deleted_at = null
      where e.project_id = project and e.seq = any(seqs) and e.deleted_at is not null
      returning e.seq, e.occurred_at, e.channel_id, e.thread_seq
  )
  select
      array_agg(c.seq order by c.seq), array_agg(c.occurred_at order by c.seq),
      array_agg(c.channel_id order by c.seq), array_agg(c.thread_seq order by c.seq)
    into restored, occurred_ats, channel_ids, thread_seqs
    from changed c;
  perform add_event_counts(project, occurred_ats, channel_ids);
  perform refold_threads(project, restored, thread_seqs, true);
  return query select r.seq from unnest(restored) as r (seq);
end
$$;

-- Removes the rows of those events of `seqs` that no other transaction has locked, and subtracts
-- the visible ones from the counts. With `before`, removes only events hidden before it, or in the
-- future, as after the clock was set back. Returns the seqs of the removed events.
--
-- It locks the project's log last, so writers wait for the counts alone. Other transactions lock
-- the log first, and may then wait for these events. So it gives up with lock_not_available before
-- Postgres would look for a deadlock, and everything is undone.
create or replace function delete_free_events(project uuid, seqs bigint[], before timestamptz) returns bigint[]
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  -- The places of rows. A plan made on an empty table would find seqs by another index.
  free tid[];
  deleted bigint[];
  ids uuid[];
  occurred_ats timestamptz[];
  channel_ids uuid[];
  -- The visible events of threads.
  visible bigint[];
  thread_seqs bigint[];
begin
  -- Commits without waiting for fsync, so the log is locked for less time. After a crash, the
  -- events are deleted again.
  perform set_config('synchronous_commit', 'off', true);
  free := array(
    select e.place
    from (select distinct u.seq from unnest(seqs) as u (seq) order by u.seq) s
      cross join lateral (
        select e.ctid as place
        from events e
        where e.project_id = project and e.seq >= s.seq and e.seq <= s.seq
          and (before is null or e.deleted_at < before or e.deleted_at > now() + interval '1 minute')
        order by e.seq
        limit 1
        for update skip locked
      ) e
    order by s.seq
  );
  -- A plan made on a small table would read all events of the project by an index.
  perform set_config('enable_indexscan', 'off', true);
  with gone as (
    delete from events e
      where e.project_id = project and e.ctid = any(free)
      returning e.seq, e.id, e.occurred_at, e.channel_id, e.deleted_at, e.thread_seq
  )
  select
      array_agg(g.seq order by g.seq), array_agg(g.id),
      array_agg(g.occurred_at order by g.seq) filter (where g.deleted_at is null),
      array_agg(g.channel_id order by g.seq) filter (where g.deleted_at is null),
      array_agg(g.seq order by g.seq) filter (where g.deleted_at is null and g.thread_seq is not null),
      array_agg(g.thread_seq order by g.seq) filter (where g.deleted_at is null and g.thread_seq is not null)
    into deleted, ids, occurred_ats, channel_ids, visible, thread_seqs
    from gone g;
  perform set_config('enable_indexscan', 'on', true);
  if deleted is null then
    return '{}';
  end if;
  perform cancel_deliveries_of(project, ids);
  delete from questions q where q.project_id = project and q.id = any(ids);
  update exports x set has_deleted = true
    where x.project_id = project and not x.has_deleted and exists (
      select from unnest(deleted) as d (seq) where d.seq between x.first_seq and x.last_seq
    );
  perform set_config('lock_timeout', '500ms', true);
  perform from event_logs l where l.project_id = project for update;
  perform subtract_event_counts(project, occurred_ats, channel_ids);
  perform refold_threads(project, visible, thread_seqs, false);
  insert into stale_segments as s (project_id, segment, first_at, last_at)
    select distinct project, d.seq >> 12, now(), now() from unnest(deleted) as d (seq) order by 2
    on conflict (project_id, segment) do update set last_at = excluded.last_at;
  return deleted;
end
$$;

-- Removes up to `max_rows` events of a project that were hidden before `before`, and their content
-- from stored responses of /v1 and of webhooks. Returns their number.
create or replace function purge_events(project uuid, before timestamptz, max_rows int) returns int
language plpgsql
as $$
declare
  seqs bigint[];
  ids uuid[];
  deleted bigint[];
begin
  if not try_lock_cleanup(project) then
    return 0;
  end if;
  select array_agg(h.seq), array_agg(h.id) into seqs, ids
    from (
      select e.seq, e.id
      from events e
      where (e.deleted_at < before or e.deleted_at > now() + interval '1 minute') and e.project_id = project
      order by e.deleted_at
      limit max_rows
    ) h;
  if seqs is null then
    return 0;
  end if;
  -- Some of them may have been restored, or be locked.
  deleted := delete_free_events(project, seqs, before);
  select array_agg(p.id) into ids from unnest(seqs, ids) as p (seq, id) where p.seq = any(deleted);
  -- A replay of a row that another transaction has locked is emptied when it is read.
  with free as materialized (
    select k.key
    from idempotency_keys k
    where k.project_id = project and k.seq = any(deleted) and k.seq is not null
    for update skip locked
  )
  update idempotency_keys k set user_id = null, body = empty_stored_response(k.body, null)
    from free f
    where k.project_id = project and k.key = f.key;
  perform erase_webhook_attempts(project, ids);
  delete from hook_requests r where r.project_id = project and r.event_ids && ids;
  return cardinality(deleted);
end
$$;

-- Returns the time before which a channel's events have expired. Returns null when they are kept
-- forever, or when the project is deleted.
create or replace function retention_cutoff(project uuid, channel uuid) returns timestamptz
language sql stable as $$
  select now() - make_interval(days => coalesce(c.keep_days, p.keep_days))
  from channel_by_id(project, channel) c
    join projects p on p.id = c.project_id and p.deleted_at is null
$$;

-- Returns the channels with a retention of all projects, of their own or of the project, after a
-- channel. They are ordered by project and id. late_s is the time since the oldest event of the
-- channel expired, in seconds; negative when nothing has expired, 0 without events.
create or replace function channels_with_retention(after_project uuid, after_channel uuid, max_rows int)
returns table (project_id uuid, channel_id uuid, late_s float8)
language sql stable as $$
  select
    k.project_id, k.id,
    coalesce(
      extract(epoch from retention_cutoff(k.project_id, k.id) - oldest_event_at(k.project_id, k.id)), 0
    )::float8
  from (
    select c.project_id, c.id
    from channels c
      join projects p on p.id = c.project_id and p.deleted_at is null
    where coalesce(c.keep_days, p.keep_days) is not null
      and (c.project_id, c.id) > (after_project, after_channel)
    order by c.project_id, c.id
    limit max_rows
  ) k
  order by k.project_id, k.id
$$;

-- Returns the created_at of a channel's oldest event; null without events. An event with a time in
-- the future was created while the clock was ahead, so the events after it tell how old it is. The
-- settings are explained at count_unread.
create or replace function oldest_event_at(project uuid, channel uuid) returns timestamptz
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
begin
  return (
    select e.created_at
    from events e
    where e.project_id = project
      and (e.channel_id, e.seq) > (channel, 0)
      and (e.channel_id, e.seq) <= (channel, 9223372036854775807)
      and e.created_at <= now()
    order by e.channel_id, e.seq
    limit 1
  );
end
$$;

-- Returns the last seq of a project that is in an exported file; 0 without files.
create or replace function exported_seq(project uuid) returns bigint
language sql stable as $$
  select coalesce(max(x.last_seq), 0) from exports x where x.project_id = project
$$;

-- Removes up to `max_rows` expired events of a channel, from the oldest after after_seq on, with
-- needs_export only exported ones. Events with a time in the future are removed with the next
-- expired one. Returns their number, and the last seq that it removed. Returns no row when nothing
-- has expired, or when another transaction cleans up this project.
create or replace function expire_channel(
  project uuid, channel uuid, after_seq bigint, max_rows int, needs_export boolean
) returns table (deleted int, last_seq bigint)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  seqs bigint[];
  last_expired bigint;
  cutoff constant timestamptz := retention_cutoff(project, channel);
  last_removable constant bigint := case when needs_export then exported_seq(project) else 9223372036854775807 end;
begin
  if not try_lock_cleanup(project) then
    return;
  end if;
  -- Reads before the lock, so that no writer waits while old pages are read from disk.
  select max(o.seq) into last_expired
    from (
      select e.seq, e.created_at
      from events e
      where e.project_id = project
        and (e.channel_id, e.seq) > (channel, after_seq)
        and (e.channel_id, e.seq) <= (channel, last_removable)
        and e.created_at <= now()
      order by e.channel_id, e.seq
      limit max_rows
    ) o
    where o.created_at < cutoff;
  seqs := array(
    select e.seq
    from events e
    where e.project_id = project
      and (e.channel_id, e.seq) > (channel, after_seq)
      and (e.channel_id, e.seq) <= (channel, last_expired)
      and (e.created_at < cutoff or e.created_at > now())
    order by e.channel_id, e.seq
    limit max_rows
  );
  if seqs = '{}' then
    return;
  end if;
  deleted := cardinality(delete_free_events(project, seqs, null));
  last_seq := seqs[cardinality(seqs)];
  -- The feed reports a gap to clients with an earlier cursor.
  update event_logs l set expired_seq = greatest(l.expired_seq, expire_channel.last_seq) where l.project_id = project;
  return next;
end
$$;

-- Returns the time from which on a project has the events that the archive of 0.3.0 did not take:
-- that of its oldest event. Returns null without such an archive.
create or replace function archived_before(project uuid) returns timestamptz
language sql stable as $$
  select coalesce((select e.created_at from oldest_visible_event(project) e), now())
  where exists (select from exports x where x.project_id = project and x.last_seq = 0)
$$;
