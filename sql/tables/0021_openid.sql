-- One row is an OpenID Connect provider that an operator added on the Server page. Variables name
-- further ones.
create table openid_providers (
  id uuid primary key,
  name text not null unique,
  label text not null,
  issuer text not null,
  client_id text not null,
  -- Sealed with the APP_SECRET.
  client_secret text not null,
  scopes text not null,
  groups_claim text not null,
  -- True if a verified e-mail address of this provider is enough to connect an existing account.
  is_trusted boolean not null,
  created_at timestamptz not null default now()
);

-- One row is a connection: the identity of an account at a provider. Issuer and subject identify
-- the account from then on, whatever its e-mail address is.
create table openid_connections (
  id uuid primary key,
  issuer text not null,
  subject text not null,
  account_id uuid not null references accounts on delete cascade,
  -- The name of the provider that made it.
  provider text not null,
  created_at timestamptz not null default now(),
  last_used_at timestamptz not null default now(),
  unique (issuer, subject),
  -- Keeps a new owner of an e-mail address out of the account of the former one. Serves the list of
  -- an account's connections.
  unique (account_id, issuer)
);

-- One row is a session that began at a provider. A logout token of the provider ends it.
create table openid_sessions (
  session_id uuid primary key references sessions on delete cascade,
  provider text not null,
  issuer text not null,
  subject text not null,
  -- The id of the session at the provider, if the provider sent one.
  sid text
);

-- Serves logout tokens that name a person.
create index openid_sessions_of_subject on openid_sessions (issuer, subject);

-- Serves logout tokens that name a session alone.
create index openid_sessions_of_sid on openid_sessions (issuer, sid);

-- One row is a state of a sign-in, or the id of a logout token, that was used and cannot be used
-- again.
create table openid_used (
  hash bytea primary key check (octet_length(hash) = 32),
  expires_at timestamptz not null
);

-- Serves the sweep.
create index openid_used_expired on openid_used (expires_at);

-- One row is a rule of an organization: members of a group at a provider, or addresses of a domain,
-- get a role when they sign in.
create table sign_in_rules (
  organization_id uuid not null references organizations on delete cascade,
  -- The name of the provider, or 'proxy'.
  provider text not null,
  kind text not null check (kind in ('group', 'domain')),
  value text not null,
  role text not null check (role in ('owner', 'admin', 'member', 'viewer')),
  primary key (organization_id, provider, kind, value)
);

-- Serves a sign-in.
create index sign_in_rules_of_provider on sign_in_rules (provider, kind, value);

-- Returns whether the password of an account can be used. While passwords are off, only those of
-- owners and operators can that were set from the machine.
create function is_password_usable(account uuid) returns boolean
language sql stable as $$
  select not i.are_passwords_off or exists (
    select
    from accounts a
    where a.id = account and a.is_password_from_machine and (
      a.is_operator
      or exists (select from memberships m where m.account_id = a.id and m.role = 'owner')
    )
  )
  from installation i
$$;
