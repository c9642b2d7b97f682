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

-- Members of such an organization reach its data in sessions with more than a password alone.
alter table organizations add requires_second_factor boolean not null default false;

-- Returns true if a session may not reach an organization, because it began with a password alone.
create function lacks_second_factor(requires_second_factor boolean, is_multi_factor boolean)
returns boolean
language sql immutable as $$
  select requires_second_factor and not is_multi_factor
$$;
