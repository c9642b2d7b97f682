-- The only row is this installation. Cursors are valid within one epoch. A database that continues
-- from an earlier state, as after a restore, needs a new epoch.
create table installation (
  singleton boolean primary key default true check (singleton),
  epoch uuid not null default gen_random_uuid(),
  -- The setting PASSWORDS, as the last start found it.
  are_passwords_off boolean not null default false
);

insert into installation default values;

-- The only row is the last scheduled backup. It is absent before the first one.
create table scheduled_backups (
  singleton boolean primary key default true check (singleton),
  attempted_at timestamptz not null,
  succeeded_at timestamptz,
  file text,
  -- Why the last attempt failed. Null if it did not.
  problem text
);

-- The only row is a sealed text. Each start decrypts it to verify that APP_SECRET is the one that
-- sealed the other rows.
create table sealed_canary (
  singleton boolean primary key default true check (singleton),
  sealed text not null
);

-- The only row is the time of the last check of the database's clock, which every deadline uses.
-- Comparing it with the current time detects a jump of the clock, even across a restart.
create table clock (
  singleton boolean primary key default true check (singleton),
  checked_at timestamptz not null,
  -- Set after a jump forward. Nothing is deleted for its age until then.
  untrusted_until timestamptz
);

-- The only row is the timeline of Postgres on which the current epoch is valid. Each promotion of a
-- standby begins a timeline. A server that finds a later one checks that no event was lost.
create table epoch_timeline (
  singleton boolean primary key default true check (singleton),
  timeline int not null
);

-- Returns the secret of this installation for lock_digest. It is a constant of the function,
-- because functions are on every node of Citus.
do $$
begin
  execute format(
    'create function lock_secret() returns bytea language sql immutable return %L::bytea',
    sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
  );
end
$$;
