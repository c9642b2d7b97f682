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
