-- The only row is the time at the last look at the clock of the database, which every rule uses. It reveals a jump of the
-- clock, also after a restart.
create table clock (
  singleton boolean primary key default true check (singleton),
  checked_at timestamptz not null,
  -- After a jump forward, nothing is deleted for its age until then.
  untrusted_until timestamptz
);

-- Gives pending deliveries, and webhooks that fail, as much more time as the clock has leapt forward.
create function extend_deadlines(jump interval) returns void
language plpgsql as $$
begin
  update outbox o set since = o.since + jump
    from (select w.id from outbox w order by w.id for update) w
    where o.id = w.id;
  update webhooks w set failing_since = w.failing_since + jump where w.failing_since is not null;
end
$$;

-- Moves times in the future to now, after the clock was set back. Retries and pauses come sooner by as much.
create function clamp_future_times(jump_back interval) returns void
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
      -- It receives events that are newer than itself, so this includes all that are not dispatched yet.
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
  update sign_in_failures f set first_at = least(f.first_at, now()), last_at = least(f.last_at, now())
    where f.last_at > now();
  update sessions s set
      created_at = least(s.created_at, now()), last_seen_at = least(s.last_seen_at, now()),
      verified_at = least(s.verified_at, now())
    where s.last_seen_at > now() or s.verified_at > now() or s.created_at > now();
  update reset_links l set expires_at = now() + interval '1 hour' where l.expires_at > now() + interval '1 hour';
  update setup_links l set expires_at = now() + interval '30 minutes' where l.expires_at > now() + interval '30 minutes';
  update invites i set expires_at = now() + interval '7 days' where i.expires_at > now() + interval '7 days';
end
$$;

-- Records the time. After a jump forward of more than an hour, the clock is doubted for the length of the jump, up to three
-- days, and pending deliveries get that much longer, because nobody may have tried meanwhile. After a jump back, times
-- in the future are moved to now, so that nothing waits until the clock has caught up. Returns the length of the jump
-- in seconds (0 for none), and until when the clock is doubted.
create function check_clock() returns table (jump_s float8, untrusted_until timestamptz)
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
  -- Another process can have recorded a time a little later than the start of this transaction.
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
