-- The last time that the push service accepted a push to the device, and the last time that it
-- refused one since; null if it has not. refusals counts refusals of this device alone: another
-- device of the same push service was accepted since the one before.
alter table push_subscriptions
  add column accepted_at timestamptz,
  add column refused_at timestamptz,
  -- How far the clock of the push service was ahead when it refused the last push, in seconds. Null
  -- if the response had no date.
  add column service_ahead_s int;

update push_subscriptions set accepted_at = last_push_at where is_proven and refusals = 0;

-- The settings of the browser's last subscription, which is gone. The next one takes them over.
alter table sessions add column device_settings jsonb;

-- Returns the push services that refuse this server: since a push of any device was last accepted,
-- they have refused several devices for a minute, or the only device that matters. A device with
-- refusals of its own is left out. A time in the future means that the clock was set back.
create function refusing_push_services()
returns table (service text, accepted_at timestamptz, device_count int, reason text, ahead_s int)
language sql stable as $$
  with services as (
    select d.host, max(d.accepted_at) filter (where d.accepted_at <= now()) as accepted_at
    from push_subscriptions d
    group by d.host
  ), refused as (
    select d.*, s.accepted_at as service_accepted_at
    from services s
      join push_subscriptions d on d.host = s.host
    where d.refusals = 0 and d.refused_at <= now()
      and d.refused_at > coalesce(s.accepted_at + interval '1 minute', '-infinity')
  )
  select
    r.host, min(r.service_accepted_at), count(*)::int, (array_agg(r.last_outcome order by r.refused_at desc))[1],
    (array_agg(r.service_ahead_s order by r.refused_at desc))[1]
  from refused r
  group by r.host
  having count(*) > 1 or not exists (
    select
    from push_subscriptions e
    where e.host = r.host and e.id <> all(array_agg(r.id))
      and e.accepted_at > min(coalesce(r.accepted_at, r.created_at)) + interval '1 minute'
  )
$$;
