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

-- The passkey that made the session.
alter table sessions add passkey_id uuid references passkeys on delete set null;

-- Serves the end of the sessions that a passkey made.
create index sessions_of_passkey on sessions (passkey_id) where passkey_id is not null;

-- One row is a WebAuthn challenge that was answered, so that its answer is not accepted again.
-- Open challenges have no row, because the server recognizes them. Unlogged: the rows matter for
-- five minutes.
create unlogged table used_challenges (
  hash bytea primary key check (octet_length(hash) = 32),
  expires_at timestamptz not null
);
