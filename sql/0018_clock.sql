-- What the clock said when it was last looked at: one row, made at the first look. By it a leap is known, also over a
-- restart. Every rule goes by this one clock, that of the database.
create table clock (
  is_only boolean primary key default true check (is_only),
  at timestamptz not null,
  -- After a leap ahead nothing is deleted for its age until then.
  doubted_until timestamptz
);

-- Notes what the clock says. Where it has leapt ahead by more than an hour, it is not believed for as long as it leapt, up
-- to three days, and what waits is given up no sooner: nobody may have tried meanwhile. Where it has gone back, what was
-- written down ahead of now is brought back, so that nobody waits until the clock is there again. Returns by how many
-- seconds it leapt (0 for none), and until when it is doubted.
create function note_clock() returns table (leapt_s float8, doubted_until timestamptz)
language plpgsql as $$
declare
  noted clock;
  leap interval;
  back interval;
begin
  insert into clock (at) values (now()) on conflict (is_only) do nothing;
  select c.is_only, c.at, c.doubted_until into noted from clock c for update;
  leap := now() - noted.at;
  if leap > interval '1 hour' then
    noted.doubted_until := greatest(noted.doubted_until, now() + least(leap, interval '3 days'));
    update outbox o set since = o.since + leap
      from (select w.id from outbox w order by w.id for update) w
      where o.id = w.id;
    update webhooks w set failing_since = w.failing_since + leap where w.failing_since is not null;
  -- Another process may have noted a moment that is a little later than the beginning of this transaction.
  elsif leap < interval '-20 seconds' then
    back := -leap;
    noted.doubted_until := least(noted.doubted_until, now() + interval '3 days');
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
        -- It is told of what came after it: all that is not dispatched yet.
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
  else
    leap := interval '0';
  end if;
  update clock c set at = now(), doubted_until = noted.doubted_until;
  return query select extract(epoch from leap)::float8, noted.doubted_until;
end
$$;
