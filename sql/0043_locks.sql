-- Advisory locks of the server have two keys: the number of a class, which src/db/locks.ts lists,
-- and a number within the class. Names that callers choose have one key, which is a keyed digest.
-- So no name takes a lock of the server, or that of another project.

-- Returns the secret of this installation for lock_digest. It is a constant of the function,
-- because functions are on every node of Citus.
do $$
begin
  execute format(
    'create function lock_secret() returns bytea language sql immutable return %L::bytea',
    sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
  );
end
$$;

-- Returns the key of the advisory lock of a name that a caller has chosen, for a purpose. Nobody
-- without the secret can choose a name for a key.
create function lock_digest(purpose text, name text) returns bigint
language sql stable as $$
  select ('x' || encode(substr(sha256(lock_secret() || sha256(convert_to(purpose, 'UTF8')) || convert_to(name, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint
$$;

-- Locks Idempotency-Keys until the transaction ends, without waiting. Returns the positions of keys
-- that another transaction has locked.
create or replace function lock_idempotency_keys(project_ids uuid[], keys text[]) returns bigint[]
language plpgsql as $$
begin
  if array_remove(keys, null) = '{}' then
    return '{}';
  end if;
  return array(
    select k.ord
    from unnest(project_ids, keys) with ordinality as k (project_id, key, ord)
    where k.key is not null
      and not pg_try_advisory_xact_lock(lock_digest('Idempotency-Key', k.project_id::text || k.key))
  );
end
$$;

-- Tries to lock the cleanup of a project until the transaction ends. Returns false when another
-- transaction has the lock.
create or replace function try_lock_cleanup(project uuid) returns boolean
language sql as $$
  select pg_try_advisory_xact_lock(71342006, hashtext(project::text))
$$;

-- Adds the words of up to 100 changed users of a project to user_words, from the first id after
-- `after` on, until time_limit_ms have passed. Returns the last id. Returns null when there is none
-- and when another transaction works on this project.
--
-- It parses before it locks any row. An identify does not wait for it, and an erasure only while
-- the words are stored. A user who changes meanwhile is indexed again.
--
-- The commit does not wait for fsync. A crash undoes the work, and it is done again.
--
-- The settings force the primary key. Only it finds the next rows without reading all of them.
create or replace function index_users(project uuid, after uuid, time_limit_ms float8) returns uuid
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashagg = off
set enable_sort = off
as $$
declare
  ends_at timestamptz := clock_timestamp() + time_limit_ms * interval '1 ms';
  changed record;
  last_id uuid;
  parsed tsvector;
  ids uuid[] := '{}';
  changed_ats timestamptz[] := '{}';
  words_list tsvector[] := '{}';
begin
  perform set_config('synchronous_commit', 'off', true);
  if not pg_try_advisory_xact_lock(71342007, hashtext(project::text)) then
    return null;
  end if;
  for changed in
    select u.id, max(u.changed_at) as at
    from unindexed_users u
    where u.project_id = project and u.id > after
    group by u.id
    order by u.id
    limit 100
  loop
    exit when clock_timestamp() >= ends_at and last_id is not null;
    last_id := changed.id;
    select words_of_user(project, i.properties) into parsed
      from identities i where i.project_id = project and i.id = changed.id;
    -- An erasure has also deleted the rows of unindexed_users.
    continue when not found;
    ids := ids || changed.id;
    changed_ats := changed_ats || changed.at;
    words_list := words_list || parsed;
  end loop;

  with parsed_users as (
    select p.id, p.changed_at, p.words
    from unnest(ids, changed_ats, words_list) as p (id, changed_at, words)
  ), existing as materialized (
    select i.id
    from identities i
    where i.project_id = project and i.id = any(ids)
    for key share skip locked
  ), stored as (
    insert into user_words as w (project_id, id, words)
    select project, p.id, p.words from parsed_users p join existing e using (id)
    on conflict (project_id, id) do update set words = excluded.words
      where w.words is distinct from excluded.words
  )
  delete from unindexed_users u
    using existing e, parsed_users p
    where u.project_id = project and u.id = e.id and p.id = e.id and u.changed_at <= p.changed_at;
  return last_id;
end
$$;

-- Does one step of removing deleted projects. It deletes up to `batch_size` rows of a project, or
-- an empty project, or an organization without projects. Returns false when there is nothing left
-- to do. Only one process works at a time. Custom plans,
-- because a cached plan for a small table would scan the table after it has grown.
create or replace function reap(batch_size int) returns boolean
language plpgsql
set plan_cache_mode = force_custom_plan
as $$
declare
  project uuid;
  organization uuid;
begin
  if not pg_try_advisory_xact_lock(71342002, 0) then
    return false;
  end if;

  select p.id into project from projects p where p.deleted_at is not null order by p.deleted_at, p.id limit 1;
  if not found then
    select o.id into organization
      from organizations o
      where o.deleted_at is not null and not exists (select from projects p where p.organization_id = o.id)
      limit 1;
    if found then
      delete from organizations o where o.id = organization;
    end if;
    return found;
  end if;

  if reap_rows(project, batch_size) then
    return true;
  end if;
  delete from projects p where p.id = project;
  return true;
end
$$;
