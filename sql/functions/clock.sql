-- Returns a time as responses show it: ISO 8601 in UTC, with milliseconds.
create or replace function to_iso(ts timestamptz) returns text
language sql stable parallel safe
return to_char(ts at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');

-- Returns the start of the hour (UTC) of a time, whatever the session's time zone.
create or replace function hour_of(ts timestamptz) returns timestamptz
language sql immutable parallel safe
return date_trunc('hour', ts at time zone 'UTC') at time zone 'UTC';

-- Returns the next millisecond. Immutable, because Citus accepts no other function in the update of
-- a conflict.
create or replace function next_millisecond(at timestamptz) returns timestamptz
language sql immutable parallel safe as $$
  select to_timestamp(0) + (at - to_timestamp(0)) + interval '1 ms'
$$;

-- Extends the deadlines of pending deliveries and failing webhooks by the length of a jump forward.
create or replace function extend_deadlines(jump interval) returns void
language plpgsql as $$
begin
  update outbox o set requested_at = o.requested_at + jump
    from (select w.id from outbox w order by w.id for update) w
    where o.id = w.id;
  update webhooks w set failing_since = w.failing_since + jump where w.failing_since is not null;
end
$$;

-- Sets future times to now, after the clock was set back. Retries and pauses end earlier by the
-- length of the jump.
create or replace function clamp_future_times(jump_back interval) returns void
language plpgsql as $$
begin
  update outbox o set
      available_at = case
        when o.available_at > now() + interval '1 minute' then greatest(o.available_at - jump_back, now())
        else o.available_at
      end,
      requested_at = least(o.requested_at, now())
    from (
      select w.id from outbox w
      where w.available_at > now() + interval '1 minute' or w.requested_at > now()
      order by w.id
      for update
    ) w
    where o.id = w.id;
  update webhooks w set
      paused_until = case
        when w.paused_until > now() then greatest(w.paused_until - jump_back, now()) else w.paused_until
      end,
      failing_since = least(w.failing_since, now()), tested_at = least(w.tested_at, now()),
      -- A webhook receives only newer events. Five minutes ago includes all undispatched ones.
      created_at = case when w.created_at > now() then now() - interval '5 minutes' else w.created_at end
    where w.paused_until > now() or w.failing_since > now() or w.tested_at > now() or w.created_at > now();
  update push_subscriptions d set
      tested_at = least(d.tested_at, now()),
      created_at = case when d.created_at > now() then now() - interval '5 minutes' else d.created_at end
    where d.tested_at > now() or d.created_at > now();
  update push_bursts b set
      recent = '{}', collapsed_at = least(b.collapsed_at, now()), summary_at = least(b.summary_at, now()),
      burst_at = least(b.burst_at, now()), touched_at = now()
    where b.touched_at > now();
  update sign_in_failures f set last_at = now()
    where f.last_at > now();
  update sessions s set
      created_at = least(s.created_at, now()), last_seen_at = least(s.last_seen_at, now()),
      verified_at = least(s.verified_at, now())
    where s.last_seen_at > now() or s.verified_at > now() or s.created_at > now();
  update reset_links l set expires_at = now() + interval '1 hour' where l.expires_at > now() + interval '1 hour';
  update setup_links l set expires_at = now() + interval '30 minutes' where l.expires_at > now() + interval '30 minutes';
  update management_tokens t set expires_at = t.expires_at - jump_back
    where t.created_at > now();
  update invites i set expires_at = now() + interval '7 days' where i.expires_at > now() + interval '7 days';
end
$$;

-- Records the current time, and handles a jump of the clock. Returns the length of the jump in
-- seconds (0 for none, negative for back), and until when the clock is untrusted. After a jump
-- forward of more than an hour, the clock is untrusted for the length of the jump, up to three
-- days. Deadlines of deliveries are extended, because the server may not have been running. After a
-- jump back, future times are set to now, so that nothing waits for the clock to catch up.
create or replace function check_clock() returns table (jump_s float8, untrusted_until timestamptz)
language plpgsql as $$
declare
  noted clock;
  jump interval;
begin
  insert into clock (checked_at) values (now()) on conflict (singleton) do nothing;
  select c.singleton, c.checked_at, c.untrusted_until into noted from clock c for update;
  jump := now() - noted.checked_at;
  if jump > interval '1 hour' then
    noted.untrusted_until := greatest(noted.untrusted_until, now() + least(jump, interval '3 days'));
    perform extend_deadlines(jump);
  -- Another process can record a time slightly later than the start of this transaction.
  elsif jump < interval '-20 seconds' then
    noted.untrusted_until := least(noted.untrusted_until, now() + interval '3 days');
    perform clamp_future_times(-jump);
  else
    jump := interval '0';
  end if;
  update clock c set checked_at = now(), untrusted_until = noted.untrusted_until;
  return query select extract(epoch from jump)::float8, noted.untrusted_until;
end
$$;
