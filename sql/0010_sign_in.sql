-- How long to wait after so many failures before the next try: nothing up to the fourth, then a second, doubling up to
-- 15 minutes.
create function delay_after(failures int) returns interval
language sql immutable as $$
  select case
    when failures < 5 then interval '0'
    else least(interval '15 minutes', interval '1 second' * power(2, least(failures, 20) - 5))
  end
$$;

-- One browser may be known for several people.
alter table known_devices
  drop constraint known_devices_pkey,
  add primary key (hash, person_id),
  -- Under which its failures to sign in are counted: the secret changes whenever anybody signs in there.
  add column id uuid not null default gen_random_uuid();

-- Serves the sweep of what is older than 90 days.
create index key_usage_of_hour on key_usage (hour);
