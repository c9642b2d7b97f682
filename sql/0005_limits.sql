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
