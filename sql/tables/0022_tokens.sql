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
