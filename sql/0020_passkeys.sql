-- One row is a passkey of an account: the public key of a WebAuthn credential.
create table passkeys (
  id uuid primary key,
  account_id uuid not null references accounts on delete cascade,
  credential_id bytea not null unique check (octet_length(credential_id) between 1 and 1023),
  public_key bytea not null,
  -- How often the authenticator has signed. Synced passkeys stay at 0.
  counter bigint not null,
  name text not null,
  -- How browsers reach the authenticator, such as internal or usb.
  transports text[] not null,
  -- True if other devices have the passkey, too.
  is_synced boolean not null,
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  -- When its counter went backwards, which means that a copy exists. It no longer signs in.
  disabled_at timestamptz
);

-- Serves the list of an account's passkeys.
create index passkeys_of_account on passkeys (account_id, id);
