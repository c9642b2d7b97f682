-- Returns how members are told of an event that opens a firing thread, or ends one of a storm. Its
-- thread is stored.
create or replace function storm_telling(
  project uuid, channel uuid, thread_seq bigint, event_id uuid, level smallint, is_opening boolean, telling smallint,
  at timestamptz
) returns smallint
language plpgsql
as $$
begin
  return telling;
end
$$;
