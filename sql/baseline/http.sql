-- One row is the rate window of a key. used is its number of requests. Unlogged: a crash of
-- Postgres resets all windows.
create unlogged table rate_windows (
  key_id uuid primary key,
  used int not null,
  started_at timestamptz not null
) with (fillfactor = 50);

-- One row is what an organization has used: events in a minute, and bytes of events in a day (UTC).
-- Unlogged: a crash of Postgres resets all usage.
create unlogged table organization_usage (
  organization_id uuid primary key references organizations on delete cascade,
  minute timestamptz not null,
  events bigint not null,
  day timestamptz not null,
  bytes bigint not null
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
  -- The event of the response; null for a response to identify.
  seq bigint,
  body text not null,
  expires_at timestamptz not null,
  primary key (project_id, key)
);

-- Serves the sweep of expired keys.
create index idempotency_keys_expired on idempotency_keys (expires_at);

-- Serves erasure by user.
create index idempotency_keys_of_user on idempotency_keys (project_id, user_id) where user_id is not null;

-- Serves the deletion of an event.
create index idempotency_keys_of_event on idempotency_keys (project_id, seq) where seq is not null;

-- Serves erasure by other names, which only responses to identify with aliases contain.
create index idempotency_keys_of_other_names on idempotency_keys (project_id, key) where other_names is not null;
