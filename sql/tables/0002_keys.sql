-- One row is an API key of a project. hash is the SHA-256 of its token, which is not stored.
create table api_keys (
  id uuid primary key,
  organization_id uuid not null,
  project_id uuid not null,
  name text not null,
  hash bytea not null check (octet_length(hash) = 32),
  last_four text not null,
  scopes text[] not null,
  -- Requests per 60 seconds.
  rate_limit int not null check (rate_limit > 0),
  created_at timestamptz not null default now(),
  created_by uuid references accounts on delete set null,
  last_used_at timestamptz,
  expires_at timestamptz,
  revoked_at timestamptz,
  -- True if the log of the first start contains the token. A rotation sets it to false.
  is_printed boolean not null default false,
  -- Serves admission, which knows only the hash of a key.
  unique (hash),
  foreign key (organization_id, project_id) references projects (organization_id, id)
);

-- Serves the list of a project's keys.
create index api_keys_of_project on api_keys (project_id, id);

-- One row is the number of requests of a key in an hour, including rejected ones. It is written
-- seconds later, in batches.
create table key_usage (
  key_id uuid not null references api_keys on delete cascade,
  hour timestamptz not null,
  requests bigint not null,
  primary key (key_id, hour)
);

-- Serves the sweep of rows older than 90 days.
create index key_usage_of_hour on key_usage (hour);
