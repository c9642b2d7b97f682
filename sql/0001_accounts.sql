-- An organization: whoever runs projects together.
create table organizations (
  id uuid primary key,
  name text not null,
  created_at timestamptz not null default now()
);

-- A project of an organization: one application and its log of events.
create table projects (
  id uuid primary key,
  organization_id uuid not null references organizations,
  name text not null,
  created_at timestamptz not null default now(),
  -- Lets other tables point at a project and its organization in one key.
  unique (organization_id, id)
);

-- A secret with which an application acts on one project. Only its SHA-256 is kept.
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
  last_used_at timestamptz,
  expires_at timestamptz,
  revoked_at timestamptz,
  -- Serves admission, which knows a key by its hash alone.
  unique (hash),
  foreign key (organization_id, project_id) references projects (organization_id, id)
);

-- Serves the list of a project's keys.
create index api_keys_of_project on api_keys (project_id, id);
