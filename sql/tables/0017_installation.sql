-- The only row is this installation. Cursors are valid within one epoch. A database that continues
-- from an earlier state, as after a restore, needs a new epoch.
create table installation (
  singleton boolean primary key default true check (singleton),
  epoch uuid not null default gen_random_uuid(),
  -- The setting PASSWORDS, as the last start found it.
  are_passwords_off boolean not null default false
);

insert into installation default values;

-- Starts a new epoch and returns it.
create function renew_epoch() returns uuid
language sql as $$
  update installation set epoch = gen_random_uuid() returning epoch
$$;

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

-- Throws unless the database can store rows on its disk and commit them. The commit waits for the
-- same as that of an event. The rows of the temporary table end with the transaction, which leaves
-- nothing to clean up.
create function check_writes() returns void
language plpgsql as $$
begin
  begin
    create temporary table if not exists write_check (filler text) on commit delete rows;
    -- 80 kB, so that the file of the table grows.
    insert into pg_temp.write_check select repeat(md5(random()::text), 25) from generate_series(1, 100);
  exception when insufficient_privilege then
    -- The role may not create temporary tables. The commit alone says enough.
  end;
  perform pg_logical_emit_message(true, 'tidings', '');
end
$$;
