-- Oldest server: 0.3.0

-- One row is an address at which another program sends what becomes events.
create table hooks (
  project_id uuid not null,
  id uuid not null,
  name text not null,
  -- The program, which says what its requests mean.
  preset text not null,
  -- The name of the channel that gets the events.
  channel text not null,
  -- The SHA-256 of the token in its address.
  token_hash bytea not null unique,
  -- The sealed secret with which the program signs; null if requests are not verified.
  secret text,
  -- The texts that make an event, by its fields; null for those that the preset chooses.
  template jsonb,
  is_on boolean not null default true,
  -- The requests that it received, and those of them whose signature was wrong.
  requests bigint not null default 0,
  refused bigint not null default 0,
  created_at timestamptz not null default now(),
  primary key (project_id, id)
);

-- One row is one of the last 20 requests to a hook.
create table hook_requests (
  project_id uuid not null,
  hook_id uuid not null,
  -- A UUID of version 7.
  id uuid not null,
  at timestamptz not null default now(),
  -- The status of the response, and the outcome in words.
  status smallint not null,
  outcome text not null,
  -- Secret headers are redacted. The body is cut.
  headers jsonb not null,
  body text not null,
  event_ids uuid[] not null,
  primary key (project_id, hook_id, id),
  foreign key (project_id, hook_id) references hooks on delete cascade
);
