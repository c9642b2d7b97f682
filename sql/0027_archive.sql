-- One row is a file of the archive. A project has one current file for a month (UTC) of created_at.
create table archive_files (
  id uuid primary key,
  -- No foreign key: the row is needed until the file is deleted, after the project.
  project_id uuid not null,
  month date not null,
  -- Its path in the archive.
  name text not null unique,
  -- The row is 'writing' before the file exists, so that a crash leaves no unknown file. An
  -- 'obsolete' file waits for its deletion. A 'missing' file was not found in the archive.
  state text not null check (state in ('writing', 'current', 'obsolete', 'missing')),
  -- Users who were erased before this time are not in the file.
  checked_at timestamptz not null,
  -- When events were added last.
  written_at timestamptz not null,
  events bigint not null default 0,
  bytes bigint not null default 0,
  sha256 bytea check (octet_length(sha256) = 32),
  -- The number of events, from the start of the file, whose rows have been deleted.
  deleted bigint not null default 0,
  -- The seqs of events that a member deleted after the file was written. The file has to be
  -- written again without them.
  dropped bigint[] not null default '{}',
  check (state <> 'current' or sha256 is not null)
);

-- Serves the look-up of a month's file.
create unique index archive_files_current on archive_files (project_id, month) where state = 'current';

-- The only row is the last run of the archive.
create table archive_runs (
  singleton boolean primary key default true check (singleton),
  -- Also in a file of the archive, so that no other place is taken for it.
  archive_id uuid not null default gen_random_uuid(),
  attempted_at timestamptz not null,
  succeeded_at timestamptz,
  -- Why the last run failed. Null if it did not.
  problem text
);

-- Deletes the rows of archived events: those that follow the first `done` events of a file, in its
-- order. Does nothing and returns false if another transaction has locked one of them, or cleans up
-- this project. Events that a member has deleted in the meantime are added to the file's `dropped`.
create function delete_archived_events(project uuid, file uuid, done bigint, seqs bigint[]) returns boolean
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
  perform from event_logs l where l.project_id = project for update;
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
  perform delete_events(project, stored);
  -- The feed reports a gap to clients with an earlier cursor.
  update event_logs l set expired_seq = greatest(l.expired_seq, stored[cardinality(stored)])
    where l.project_id = project and stored <> '{}';
  return true;
end
$$;

-- Begins the erasure of a user who can be in the archive alone, unless it has begun. Returns false
-- if no file is younger than the last erasure of this name, at last_erased_at; null for none. Also
-- returns false for an alias, which is not a user.
create function begin_archive_erasure(
  project uuid, name text, author json, last_erased_at timestamptz
) returns boolean
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  erasure_id uuid;
begin
  perform from event_logs l where l.project_id = project for update;
  if not found then
    return false;
  end if;
  if exists (select from erasures e where e.project_id = project and e.user_id = name) then
    return true;
  end if;
  if exists (select from aliases a where a.project_id = project and a.alias = name) or not exists (
    select from archive_files f
    where f.project_id = project and f.state = 'current'
      and (last_erased_at is null or f.written_at >= last_erased_at)
  ) then
    return false;
  end if;
  insert into erasures as e (project_id, user_id, author)
    values (project, name, author)
    returning e.id into erasure_id;
  insert into erased_users (id, project_id, erased_at, key_id)
    values (erasure_id, project, date_trunc('milliseconds', clock_timestamp()), (author ->> 'keyId')::uuid);
  insert into erasure_names (project_id, user_id, name) values (project, name, name);
  perform erase_identity(project, name);
  return true;
end
$$;
