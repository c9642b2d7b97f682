-- Removes the rows of events, and subtracts the visible ones from the counts. Returns their number.
-- The caller has locked the rows. It locks the project's log last, so writers wait for the counts
-- alone. Other transactions lock the log first, and may then wait for these events. So it gives up
-- with lock_not_available before Postgres would look for a deadlock, and everything is undone.
create function delete_locked_events(project uuid, seqs bigint[]) returns int
language plpgsql as $$
declare
  deleted bigint[];
  occurred_ats timestamptz[];
  channel_ids uuid[];
begin
  with gone as (
    delete from events e
      where e.project_id = project and e.seq = any(seqs)
      returning e.seq, e.occurred_at, e.channel_id, e.deleted_at
  )
  select
      array_agg(g.seq order by g.seq),
      array_agg(g.occurred_at order by g.seq) filter (where g.deleted_at is null),
      array_agg(g.channel_id order by g.seq) filter (where g.deleted_at is null)
    into deleted, occurred_ats, channel_ids
    from gone g;
  if deleted is null then
    return 0;
  end if;
  perform set_config('lock_timeout', '500ms', true);
  perform from event_logs l where l.project_id = project for update;
  perform subtract_event_counts(project, occurred_ats, channel_ids);
  insert into stale_segments as s (project_id, segment, first_at, last_at)
    select distinct project, d.seq >> 12, now(), now() from unnest(deleted) as d (seq) order by 2
    on conflict (project_id, segment) do update set last_at = excluded.last_at;
  return cardinality(deleted);
end
$$;

-- Removes those events of `seqs` that no other transaction has locked; with `before`, only events
-- hidden before it. Returns their number.
create or replace function delete_unlocked_events(project uuid, seqs bigint[], before timestamptz) returns int
language plpgsql as $$
begin
  -- Commits without waiting for fsync, so the log is locked for less time. After a crash, the
  -- events are deleted again.
  perform set_config('synchronous_commit', 'off', true);
  return delete_locked_events(project, array(
    select e.seq
    from events e
    where e.project_id = project and e.seq = any(seqs)
      and (before is null or e.deleted_at < before)
    order by e.seq
    for update skip locked
  ));
end
$$;

-- Deletes the rows of archived events: those that follow the first `done` events of a file, in its
-- order. Does nothing and returns false if another transaction has locked one of them or the log,
-- or cleans up this project. Events that a member has deleted in the meantime are added to the
-- file's `dropped`. It locks the log last, as delete_locked_events does.
create or replace function delete_archived_events(project uuid, file uuid, done bigint, seqs bigint[]) returns boolean
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  stored bigint[];
  free bigint[];
begin
  if not try_lock_cleanup(project) then
    return false;
  end if;
  -- The rows and the progress are committed together. After a crash, both are as before.
  perform set_config('synchronous_commit', 'off', true);
  stored := array(
    select e.seq from events e where e.project_id = project and e.seq = any(seqs) and e.deleted_at is null order by e.seq
  );
  free := array(
    select e.seq
    from events e
    where e.project_id = project and e.seq = any(stored) and e.deleted_at is null
    order by e.seq
    for update skip locked
  );
  if free <> stored then
    return false;
  end if;
  update archive_files f set
      deleted = done + cardinality(seqs),
      dropped = f.dropped || array(select s.seq from unnest(seqs) as s (seq) where s.seq <> all(stored))
    where f.id = file and f.state = 'current' and f.deleted = done;
  if not found then
    raise exception 'another run works on this file';
  end if;
  perform delete_locked_events(project, stored);
  -- The feed reports a gap to clients with an earlier cursor.
  update event_logs l set expired_seq = greatest(l.expired_seq, stored[cardinality(stored)])
    where l.project_id = project and stored <> '{}';
  return true;
exception
  -- The exception has undone everything.
  when lock_not_available then
    return false;
end
$$;
