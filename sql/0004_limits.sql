-- One row is the rate window of a key. used is its number of requests. Unlogged: a crash of
-- Postgres resets all windows.
create unlogged table rate_windows (
  key_id uuid primary key,
  used int not null,
  started_at timestamptz not null
) with (fillfactor = 50);

-- One row is a used Idempotency-Key, and the response that every retry gets until the key expires.
create table idempotency_keys (
  project_id uuid not null references projects,
  key text not null,
  fingerprint bytea not null,
  status smallint not null,
  -- For erasure: the id of the response's user, and all other names of users that the response
  -- contains.
  user_id text,
  other_names text[],
  body text not null,
  expires_at timestamptz not null,
  primary key (project_id, key)
);

-- Serves the sweep of expired keys.
create index idempotency_keys_expired on idempotency_keys (expires_at);

-- Serves erasure by user.
create index idempotency_keys_of_user on idempotency_keys (project_id, user_id) where user_id is not null;

-- Serves erasure by other names, which few responses contain.
create index idempotency_keys_of_other_names on idempotency_keys (project_id) where other_names is not null;

-- Locks Idempotency-Keys until the transaction ends, without waiting. Returns the positions of keys
-- that another transaction has locked.
create function lock_idempotency_keys(project_ids uuid[], keys text[]) returns bigint[]
language plpgsql as $$
begin
  if array_remove(keys, null) = '{}' then
    return '{}';
  end if;
  return array(
    select k.ord
    from unnest(project_ids, keys) with ordinality as k (project_id, key, ord)
    where k.key is not null
      and not pg_try_advisory_xact_lock(hashtextextended(k.key, hashtextextended(k.project_id::text, 0)))
  );
end
$$;

-- Returns the projects without those at the given positions.
create function remove_positions(project_ids uuid[], positions bigint[]) returns uuid[]
language sql immutable as $$
  select case
    when positions = '{}' then project_ids
    else array(
      select p.id from unnest(project_ids) with ordinality as p (id, ord) where p.ord <> all(positions)
    )
  end
$$;
