-- One row is an organization: a group of accounts that share projects.
create table organizations (
  id uuid primary key,
  name text not null,
  created_at timestamptz not null default now(),
  -- A deleted organization is invisible at once. Its rows are removed in batches.
  deleted_at timestamptz,
  -- True if members reach its data only in sessions with more than a password.
  requires_second_factor boolean not null default false
);

-- Serves the removal of deleted organizations.
create index organizations_deleted on organizations (deleted_at) where deleted_at is not null;

-- One row is a project of an organization. It has one log of events.
create table projects (
  id uuid primary key,
  organization_id uuid not null references organizations,
  name text not null,
  created_at timestamptz not null default now(),
  -- A deleted project is invisible at once. Its rows are removed in batches.
  deleted_at timestamptz,
  -- How many days events are kept; null keeps them forever. A channel can override it.
  keep_days int check (keep_days > 0),
  -- True for the project with sample data, which an admin can remove without a confirmation.
  is_sample boolean not null default false,
  -- Users up to this id have words by the present rules. Null if all have. Searches read every user
  -- of the project until then.
  users_indexed_to uuid,
  -- Lets other tables reference a project and its organization with one key.
  unique (organization_id, id)
);

-- An organization has at most one.
create unique index projects_sample on projects (organization_id)
where is_sample and deleted_at is null;

-- Serves the indexer.
create index projects_with_former_users on projects (id) where users_indexed_to is not null;

-- Serves the removal of deleted projects.
create index projects_deleted on projects (deleted_at) where deleted_at is not null;

-- One row is an account: a person who signs in. email is in lower case. password_hash is null until
-- a password is set.
create table accounts (
  id uuid primary key,
  name text not null,
  email text not null unique check (email = lower(email)),
  password_hash text,
  -- True for a password that was set from the machine: by a reset link of the command line, or by a
  -- setting. Only these sign in while passwords are off.
  is_password_from_machine boolean not null default false,
  -- True once a trusted provider, the proxy or the machine has given the e-mail address. Otherwise
  -- somebody entered it, perhaps that of another person.
  is_email_proven boolean not null default false,
  -- Operators see the state of the server and create organizations. The first account is one.
  is_operator boolean not null default false,
  created_at timestamptz not null default now()
);

-- One row is the role of an account in an organization.
create table memberships (
  organization_id uuid not null references organizations on delete cascade,
  account_id uuid not null references accounts on delete cascade,
  role text not null check (role in ('owner', 'admin', 'member', 'viewer')),
  -- The provider whose sign-in rules gave the membership; null for any other way to join. A sign-in
  -- there changes or ends it with the rules.
  provider text,
  created_at timestamptz not null default now(),
  primary key (organization_id, account_id)
);

-- Serves the list of an account's organizations.
create index memberships_of_account on memberships (account_id);

-- One row is a passkey of an account: the public key of a WebAuthn credential.
create table passkeys (
  id uuid primary key,
  account_id uuid not null references accounts on delete cascade,
  credential_id bytea not null unique check (octet_length(credential_id) between 1 and 1023),
  -- The public key in COSE form.
  public_key bytea not null check (octet_length(public_key) <= 2048),
  -- How often the authenticator has signed. Synced passkeys stay at 0.
  counter bigint not null,
  name text not null,
  -- How browsers reach the authenticator, such as internal or usb; a JSON array.
  transports json not null,
  -- True if other devices have the passkey, too.
  is_synced boolean not null,
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  -- When its counter went backwards, which means that a copy exists. It is no longer accepted.
  disabled_at timestamptz
);

-- Serves the list of an account's passkeys.
create index passkeys_of_account on passkeys (account_id, id);

-- One row is a session: a browser in which an account is signed in. hash is the SHA-256 of its
-- token.
create table sessions (
  id uuid primary key,
  hash bytea not null unique check (octet_length(hash) = 32),
  account_id uuid not null references accounts on delete cascade,
  -- The word of the browser. The session is long only with a proven push subscription, too.
  is_installed boolean not null,
  -- How the account signed in. A link is a setup link or an invite.
  method text not null check (method in ('password', 'passkey', 'openid', 'proxy', 'link')),
  -- True if the account signed in, or was verified later, with more than a password.
  is_multi_factor boolean not null default false,
  created_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now(),
  -- When the account last confirmed that it is present, with a password or a passkey. Actions that
  -- reveal secrets or destroy something require the last 10 minutes.
  verified_at timestamptz not null default now(),
  address text not null,
  user_agent text not null,
  -- The passkey that made the session.
  passkey_id uuid references passkeys on delete set null,
  -- The id of one of the account's known_devices.
  browser_id uuid
);

-- Serves the list of an account's sessions.
create index sessions_of_account on sessions (account_id, id);

-- Serves the end of the sessions that a passkey made.
create index sessions_of_passkey on sessions (passkey_id) where passkey_id is not null;

-- One row is a known browser of an account, from which it has signed in. Failed attempts elsewhere
-- do not delay it.
create table known_devices (
  hash bytea not null check (octet_length(hash) = 32),
  account_id uuid not null references accounts on delete cascade,
  last_used_at timestamptz not null default now(),
  -- Identifies the browser for its failed attempts. The hash changes with every sign-in from this
  -- browser.
  id uuid not null default gen_random_uuid(),
  -- The settings of the browser's last subscription, which is gone. The next one takes them over.
  push_settings jsonb,
  -- One browser can be known for several accounts.
  primary key (hash, account_id)
);

-- Serves the deletion of an account's devices, and the limit on their number.
create index known_devices_of_account on known_devices (account_id, last_used_at);

-- One row is a count of recent failed attempts with a password or code, or the used part of a
-- budget, which falls over time. account is a SHA-256 of an e-mail address. lane is one of a
-- network, a known browser, a session or a budget. Unlogged: a crash of Postgres resets the counts.
create unlogged table sign_in_failures (
  account bytea not null check (octet_length(account) = 32),
  lane bytea not null check (octet_length(lane) = 32),
  failures float8 not null,
  -- Attempts that were refused without a check.
  refused int not null default 0,
  -- The time of the last failure. For a budget, the time of the last attempt.
  last_at timestamptz not null,
  primary key (account, lane)
) with (fillfactor = 50);

-- One row is a setup link, which creates the first owner of an installation.
create table setup_links (
  hash bytea primary key check (octet_length(hash) = 32),
  expires_at timestamptz not null
);

-- One row is a reset link, which sets an account's password once.
create table reset_links (
  id uuid primary key,
  hash bytea not null unique check (octet_length(hash) = 32),
  account_id uuid not null references accounts on delete cascade,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  -- The owner who created it, and the organization in which they may. Both are null for the command
  -- line.
  created_by uuid references accounts on delete cascade,
  organization_id uuid references organizations on delete cascade,
  check ((created_by is null) = (organization_id is null))
);

-- Serves the withdrawal of an account's reset links.
create index reset_links_of_account on reset_links (account_id);

-- One row is an open invite, with which one account joins an organization. If it has an email, only
-- the account with that email can accept it.
create table invites (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  hash bytea not null unique check (octet_length(hash) = 32),
  role text not null check (role in ('owner', 'admin', 'member', 'viewer')),
  email text,
  invited_by uuid not null references accounts on delete cascade,
  -- The management token that made it, without which it admits nobody. Null for a session.
  token_id uuid,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);

-- Serves the list of an organization's open invites.
create index invites_of_organization on invites (organization_id, id);

-- Serves the sweep of expired invites.
create index invites_expired on invites (expires_at);

-- Serves the withdrawal of invites whose creator may no longer invite.
create index invites_of_inviter on invites (invited_by);

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
  -- The expiry that a rotated key had, which the keys in its place get; infinity for none. The key
  -- itself expires with its overlap. Null if it was not rotated.
  chosen_expires_at timestamptz,
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

-- One row is an action, written in the transaction that performed it. It has no foreign keys,
-- because it outlives the rows that it refers to. account_id is set if the actor is an account, or
-- a token that it created; key_id if it is an API key.
-- organization_id is null for actions on the whole installation.
create table audit_log (
  id uuid primary key,
  organization_id uuid,
  project_id uuid,
  at timestamptz not null default now(),
  actor text not null check (
    actor in ('account', 'token', 'API key', 'command line', 'server', 'anonymous')
  ),
  account_id uuid,
  session_id uuid,
  token_id uuid,
  -- The name outlives the token.
  token_name text,
  key_id uuid,
  action text not null,
  -- The public id of the object. It never contains a secret or the id of a user.
  target text,
  details json not null,
  address text,
  user_agent text,
  check ((actor in ('account', 'token')) = (account_id is not null)),
  check ((actor = 'token') = (token_id is not null and token_name is not null)),
  check ((actor = 'API key') = (key_id is not null))
);

-- Serves an organization's log, newest first. Ids ascend with time.
create index audit_log_of_organization on audit_log (organization_id, id);

-- Serves the log of an organization, filtered by account.
create index audit_log_of_account on audit_log (organization_id, account_id, id);

-- Serves the log of an organization, filtered by action.
create index audit_log_of_action on audit_log (organization_id, action, id);

-- Serves the export of an account's own data.
create index audit_log_by_account on audit_log (account_id, id) where account_id is not null;

-- Serves the sweep of old entries.
create index audit_log_of_time on audit_log (at);

-- One row is a WebAuthn challenge that was answered, so that its answer is not accepted again.
-- Open challenges have no row, because the server recognizes them. Unlogged: the rows matter for
-- five minutes.
create unlogged table used_challenges (
  hash bytea primary key check (octet_length(hash) = 32),
  expires_at timestamptz not null
);

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

-- One row is a management token, with which programs use /api. hash is the SHA-256 of the token,
-- which is not stored. It acts for the account that created it: a personal token wherever the
-- account is a member, an organization token in one organization.
create table management_tokens (
  id uuid primary key,
  hash bytea not null check (octet_length(hash) = 32),
  last_four text not null,
  name text not null,
  account_id uuid not null references accounts on delete cascade,
  -- Null for a personal token.
  organization_id uuid,
  -- The highest role with which it acts. The present role of the account also limits it.
  role text not null check (role in ('owner', 'admin', 'member', 'viewer')),
  -- The projects to which it is limited. Null for no limit. Ids of deleted projects stay, so that
  -- the limit never goes away.
  project_ids uuid[] check (cardinality(project_ids) > 0),
  -- True if the session that created it had a second factor, as organizations can require.
  is_multi_factor boolean not null,
  created_at timestamptz not null default now(),
  -- Written at most once a minute.
  last_used_at timestamptz,
  expires_at timestamptz not null,
  -- Serves authentication, which knows only the hash of a token.
  unique (hash),
  -- An organization token ends with the membership of its creator.
  foreign key (organization_id, account_id) references memberships on delete cascade
);

-- Serves the list of an account's tokens, and their deletion with the account.
create index management_tokens_of_account on management_tokens (account_id, id);

-- Serves the list of an organization's tokens, and their deletion with a membership.
create index management_tokens_of_organization on management_tokens (organization_id, id)
  where organization_id is not null;

-- Serves the sweep of expired tokens.
create index management_tokens_expired on management_tokens (expires_at);

-- One row is the authenticator app of an account. Its codes are the second factor of the password.
create table totp_secrets (
  id uuid primary key,
  account_id uuid not null unique references accounts on delete cascade,
  secret_sealed text not null,
  -- The time step of the last accepted code. Neither it nor an earlier one is accepted again.
  last_step bigint not null default 0,
  created_at timestamptz not null default now(),
  -- Null until a first code has shown that the app has the secret.
  confirmed_at timestamptz
);

-- One row is a recovery code, which is accepted once instead of a code of the app. hash is the
-- SHA-256 of the code.
create table recovery_codes (
  account_id uuid not null references accounts on delete cascade,
  hash bytea not null check (octet_length(hash) = 32),
  used_at timestamptz,
  primary key (account_id, hash)
);

-- One row is a sign-in whose password was correct, and which waits for a code. hash is the SHA-256
-- of a cookie. Unlogged: the rows matter for five minutes.
create unlogged table sign_in_steps (
  hash bytea primary key check (octet_length(hash) = 32),
  account_id uuid not null references accounts on delete cascade,
  is_installed boolean not null,
  expires_at timestamptz not null
);

-- Serves the removal of an account's steps, and the limit on their number.
create index sign_in_steps_of_account on sign_in_steps (account_id, expires_at);
