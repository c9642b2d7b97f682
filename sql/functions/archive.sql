-- Deletes the rows of archived events: those that follow the first `done` events of a file, in its
-- order. Does nothing and returns false if another transaction has locked one of them or the log,
-- or cleans up this project. Events that a member has deleted in the meantime are added to the
-- file's `dropped`. Of user_seqs, which have a user in the file, those that have none in their row
-- are added to its `counted`. It locks the log last, as delete_locked_events does.
create or replace function delete_archived_events(
  project uuid, file uuid, done bigint, seqs bigint[], user_seqs bigint[]
) returns boolean
language plpgsql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  stored bigint[];
  free bigint[];
  without_user bigint[];
begin
  if not try_lock_cleanup(project) then
    return false;
  end if;
  -- The rows and the progress are committed together. After a crash, both are as before.
  perform set_config('synchronous_commit', 'off', true);
  stored := array(
    select e.seq
    from (select distinct u.seq from unnest(seqs) as u (seq) order by u.seq) s
      cross join lateral (
        select e.seq
        from events e
        where e.project_id = project and e.seq >= s.seq and e.seq <= s.seq and e.deleted_at is null
        order by e.seq
        limit 1
      ) e
    order by s.seq
  );
  free := array(
    select e.seq
    from unnest(stored) with ordinality as s (seq, ord)
      cross join lateral (
        select e.seq
        from events e
        where e.project_id = project and e.seq >= s.seq and e.seq <= s.seq and e.deleted_at is null
        order by e.seq
        limit 1
        for update skip locked
      ) e
    order by s.ord
  );
  if free <> stored then
    return false;
  end if;
  without_user := array(
    select e.seq
    from events e
    where e.project_id = project and e.seq = any(stored) and e.seq = any(user_seqs) and e.user_ref is null
  );
  update archive_files f set
      deleted = done + cardinality(seqs),
      dropped = f.dropped || array(select s.seq from unnest(seqs) as s (seq) where s.seq <> all(stored)),
      counted = f.counted || without_user
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

-- Returns the time from which on a project has the events that are not in its archive: that of its
-- oldest event. Returns null without an archive.
create or replace function archived_before(project uuid) returns timestamptz
language sql stable as $$
  select coalesce((select e.created_at from oldest_visible_event(project) e), now())
  where exists (select from archive_files f where f.project_id = project and f.state = 'current')
$$;

-- Begins the erasure of a user who can be in the archive alone, unless it has begun. Returns false
-- if no file is younger than the last erasure of this name, at last_erased_at; null for none, and a
-- time in the future is unknown. Also returns false for an alias, which is not a user.
create or replace function begin_archive_erasure(
  project uuid, name text, author json, last_erased_at timestamptz
) returns boolean
language plpgsql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
begin
  perform from event_logs l where l.project_id = project for update;
  if not found then
    return false;
  end if;
  if exists (select from erasures e where e.project_id = project and e.user_id = name) then
    return true;
  end if;
  if exists (select from aliases a where a.project_id = project and a.alias = name) then
    return false;
  end if;
  if not exists (
    select from archive_files f
    where f.project_id = project and f.state = 'current'
      and (last_erased_at is null or last_erased_at > now() or f.written_at >= last_erased_at)
  ) then
    return false;
  end if;
  perform insert_erasure(project, name, null, author);
  return true;
end
$$;
