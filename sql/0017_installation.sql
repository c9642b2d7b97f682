-- The only row is this installation. Cursors are valid within one epoch. A database that continues
-- from an earlier state, as after a restore, needs a new epoch.
create table installation (
  singleton boolean primary key default true check (singleton),
  epoch uuid not null default gen_random_uuid()
);

insert into installation default values;

-- Starts a new epoch and returns it.
create function renew_epoch() returns uuid
language sql as $$
  update installation set epoch = gen_random_uuid() returning epoch
$$;

-- The only row is a sealed text. Each start decrypts it to verify that APP_SECRET is the one that
-- sealed the other rows.
create table sealed_canary (
  singleton boolean primary key default true check (singleton),
  sealed text not null
);
