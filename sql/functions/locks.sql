-- Advisory locks of the server have two keys: the number of a class, which src/database/locks.ts
-- lists, and a number within the class. Names that callers choose have one key, which is a keyed
-- digest. So no name takes a lock of the server, or that of another project.

-- Returns the key of the advisory lock of a name that a caller has chosen, for a purpose. Nobody
-- without the secret can choose a name for a key.
create or replace function lock_digest(purpose text, name text) returns bigint
language sql stable
return ('x' || encode(substr(sha256(lock_secret() || sha256(convert_to(purpose, 'UTF8')) || convert_to(name, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint;

-- Locks Idempotency-Keys until the transaction ends, without waiting. Returns the positions of keys
-- that another transaction has locked.
create or replace function lock_idempotency_keys(project_ids uuid[], keys text[]) returns bigint[]
language plpgsql
as $$
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
language sql
return pg_try_advisory_xact_lock(71342006, hashtext(project::text));
