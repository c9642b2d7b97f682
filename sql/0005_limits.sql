-- How many requests a key has made in its current window. Unlogged: a crash of Postgres opens all windows anew.
create unlogged table rate_windows (
  key_id uuid primary key,
  used int not null,
  started_at timestamptz not null
) with (fillfactor = 50);

-- An Idempotency-Key that was used, and the answer that every retry gets until it expires. user_id is whom the answer
-- names, and others the further names of other users in it: for erasure.
create table idempotency_keys (
  project_id uuid not null references projects,
  key text not null,
  fingerprint bytea not null,
  status smallint not null,
  user_id text,
  others text[],
  body text not null,
  expires_at timestamptz not null,
  primary key (project_id, key)
);

-- Serves the sweep of expired keys.
create index idempotency_keys_expired on idempotency_keys (expires_at);

-- Serves erasure.
create index idempotency_keys_of_user on idempotency_keys (project_id, user_id) where user_id is not null;

-- Serves erasure: few answers tell of other users.
create index idempotency_keys_of_others on idempotency_keys (project_id) where others is not null;

-- Marks keys as being at work until the transaction ends; returns the places of those that another transaction has
-- marked already. It waits for nothing.
create function running_keys(project_ids uuid[], keys text[]) returns bigint[]
language plpgsql as $$
begin
  if array_remove(keys, null) = '{}' then
    return '{}';
  end if;
  return array(
    select k.place
    from unnest(project_ids, keys) with ordinality as k (project_id, key, place)
    where k.key is not null
      and not pg_try_advisory_xact_lock(hashtextextended(k.key, hashtextextended(k.project_id::text, 0)))
  );
end
$$;

-- The projects but for those at the given places.
create function without_places(project_ids uuid[], places bigint[]) returns uuid[]
language sql immutable as $$
  select case
    when places = '{}' then project_ids
    else array(
      select p.id from unnest(project_ids) with ordinality as p (id, place) where p.place <> all(places)
    )
  end
$$;
