-- Starts a new epoch and returns it.
create or replace function renew_epoch() returns uuid
language sql
set search_path from current
as $$
  update installation set epoch = gen_random_uuid() returning epoch
$$;

-- Throws unless the database can store rows on its disk and commit them. The commit waits for the
-- same as that of an event. The rows of the temporary table end with the transaction, which leaves
-- nothing to clean up.
create or replace function check_writes() returns void
language plpgsql
as $$
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

-- Returns the size of the database in bytes.
create or replace function database_bytes() returns bigint
language sql
return pg_database_size(current_database());

-- Advisory locks of the server have two keys: the number of a class, which src/database/locks.ts
-- lists, and a number within the class. Names that callers choose have one key, which is a keyed
-- digest. So no name takes a lock of the server, or that of another project.

-- Returns the key of the advisory lock of a name that a caller has chosen, for a purpose. Nobody
-- without the secret can choose a name for a key.
create or replace function lock_digest(purpose text, name text) returns bigint
language sql stable
return ('x' || encode(substr(sha256(lock_secret() || sha256(convert_to(purpose, 'UTF8')) || convert_to(name, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint;
