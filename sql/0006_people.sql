-- A person who signs in. email is kept in lower case. Without a hash there is no password to sign in with.
create table people (
  id uuid primary key,
  name text not null,
  email text not null unique check (email = lower(email)),
  password_hash text,
  -- Whoever set the installation up: sees the server's own state, and creates organizations.
  is_operator boolean not null default false,
  created_at timestamptz not null default now()
);

-- What a person may do in an organization.
create table memberships (
  organization_id uuid not null references organizations on delete cascade,
  person_id uuid not null references people on delete cascade,
  role text not null check (role in ('owner', 'admin', 'member', 'viewer')),
  created_at timestamptz not null default now(),
  primary key (organization_id, person_id)
);

-- Serves the list of a person's organizations.
create index memberships_of_person on memberships (person_id);

-- A browser in which a person is signed in. Only the SHA-256 of its token is kept.
create table sessions (
  id uuid primary key,
  hash bytea not null unique check (octet_length(hash) = 32),
  person_id uuid not null references people on delete cascade,
  -- An app that is installed on a device stays signed in for a year without use.
  is_installed boolean not null,
  created_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now(),
  -- When the password was last typed: what is secret or destroys asks for it within 10 minutes.
  verified_at timestamptz not null default now(),
  address text not null,
  user_agent text not null
);

-- Serves the list of a person's sessions.
create index sessions_of_person on sessions (person_id, id);

-- A browser from which a person has signed in before: whoever guesses at their password elsewhere does not delay it.
create table known_devices (
  hash bytea primary key check (octet_length(hash) = 32),
  person_id uuid not null references people on delete cascade,
  last_used_at timestamptz not null default now()
);

-- Serves the deletion of a person's devices, and the bound on their number.
create index known_devices_of_person on known_devices (person_id, last_used_at);

-- How often signing in has failed lately for one subject: an account, a device, or a network of client addresses, as a
-- SHA-256. Unlogged: a crash of Postgres forgives all.
create unlogged table sign_in_failures (
  subject bytea primary key,
  failures int not null,
  first_at timestamptz not null,
  last_at timestamptz not null
);

-- The link with which the first owner claims a new installation.
create table setup_links (
  hash bytea primary key check (octet_length(hash) = 32),
  expires_at timestamptz not null
);

-- A link with which a person sets a new password, once.
create table reset_links (
  hash bytea primary key check (octet_length(hash) = 32),
  person_id uuid not null references people on delete cascade,
  expires_at timestamptz not null
);

-- Serves the withdrawal of a person's links.
create index reset_links_of_person on reset_links (person_id);

-- A link with which one person joins an organization in a role. With an email, only whoever has that address.
create table invites (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  hash bytea not null unique check (octet_length(hash) = 32),
  role text not null check (role in ('owner', 'admin', 'member', 'viewer')),
  email text,
  invited_by uuid not null references people on delete cascade,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);

-- Serves the list of an organization's open invites.
create index invites_of_organization on invites (organization_id, id);

-- What is deleted is gone for everybody at once; its rows go in batches.
alter table organizations add column deleted_at timestamptz;
alter table projects
  add column deleted_at timestamptz,
  -- Days for which events are kept; null for ever. A channel may say otherwise.
  add column keep_days int check (keep_days > 0);

-- Serves the clearing away of what is deleted.
create index projects_deleted on projects (deleted_at) where deleted_at is not null;
create index organizations_deleted on organizations (deleted_at) where deleted_at is not null;

alter table api_keys add column created_by uuid references people on delete set null;

-- Requests of a key within an hour, refused ones included; written in batches, seconds later.
create table key_usage (
  key_id uuid not null references api_keys on delete cascade,
  hour timestamptz not null,
  requests bigint not null,
  primary key (key_id, hour)
);

-- Something that somebody did, written in the transaction that did it. No foreign keys: it outlives what it tells of.
-- person_id is null for the command line and for the server itself, organization_id for what concerns the installation.
create table audit_log (
  id uuid primary key,
  organization_id uuid,
  project_id uuid,
  at timestamptz not null default now(),
  actor text not null check (actor in ('person', 'command line', 'server', 'stranger')),
  person_id uuid,
  session_id uuid,
  action text not null,
  -- The public id of what it was done to. Never a secret, nor what an erased user was called.
  target text,
  details json not null,
  address text,
  user_agent text,
  check ((actor = 'person') = (person_id is not null))
);

-- Serves the organization's log, newest first: ids are made in the order of time.
create index audit_log_of_organization on audit_log (organization_id, id);

-- Serves the sweep of old entries.
create index audit_log_of_time on audit_log (at);

-- Entries are neither changed nor taken out before their year is over.
create function keep_audit_log() returns trigger
language plpgsql as $$
begin
  if tg_op = 'DELETE' and old.at < now() - interval '1 year' then
    return old;
  end if;
  raise exception 'the audit log is append-only' using errcode = 'restrict_violation';
end
$$;
create trigger audit_log_is_append_only before update or delete on audit_log
  for each row execute function keep_audit_log();
create trigger audit_log_is_not_truncated before truncate on audit_log
  for each statement execute function keep_audit_log();
