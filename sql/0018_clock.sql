-- The only row is the time at the last look at the clock of the database, which every rule uses. It reveals a leap of the
-- clock, also after a restart.
create table clock (
  is_only boolean primary key default true check (is_only),
  at timestamptz not null,
  -- After a leap forward, nothing is deleted for its age until then.
  doubted_until timestamptz
);

-- Gives pending deliveries, and webhooks that fail, as much more time as the clock has leapt forward.
create function extend_deliveries(leap interval) returns void
language plpgsql as $$
begin
  update outbox o set since = o.since + leap
    from (select w.id from outbox w order by w.id for update) w
    where o.id = w.id;
  update webhooks w set failing_since = w.failing_since + leap where w.failing_since is not null;
end
$$;

-- Moves times in the future to now, after the clock was set back. Retries and pauses come sooner by as much.
create function pull_back_times(back interval) returns void
language plpgsql as $$
begin
  update outbox o set
      available_at = case
        when o.available_at > now() + interval '1 minute' then greatest(o.available_at - back, now())
        else o.available_at
      end,
      since = least(o.since, now())
    from (
      select w.id from outbox w
      where w.available_at > now() + interval '1 minute' or w.since > now()
      order by w.id
      for update
    ) w
    where o.id = w.id;
  update webhooks w set
      paused_until = case
        when w.paused_until > now() then greatest(w.paused_until - back, now()) else w.paused_until
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

-- Records the time. After a leap forward of more than an hour, the clock is doubted for the length of the leap, up to three
-- days, and pending deliveries get that much longer, because nobody may have tried meanwhile. After a leap back, times
-- in the future are moved to now, so that nothing waits until the clock has caught up. Returns the length of the leap
-- in seconds (0 for none), and until when the clock is doubted.
create function note_clock() returns table (leapt_s float8, doubted_until timestamptz)
language plpgsql as $$
declare
  noted clock;
  leap interval;
begin
  insert into clock (at) values (now()) on conflict (is_only) do nothing;
  select c.is_only, c.at, c.doubted_until into noted from clock c for update;
  leap := now() - noted.at;
  if leap > interval '1 hour' then
    noted.doubted_until := greatest(noted.doubted_until, now() + least(leap, interval '3 days'));
    perform extend_deliveries(leap);
  -- Another process can have recorded a time a little later than the start of this transaction.
  elsif leap < interval '-20 seconds' then
    noted.doubted_until := least(noted.doubted_until, now() + interval '3 days');
    perform pull_back_times(-leap);
  else
    leap := interval '0';
  end if;
  update clock c set at = now(), doubted_until = noted.doubted_until;
  return query select extract(epoch from leap)::float8, noted.doubted_until;
end
$$;
