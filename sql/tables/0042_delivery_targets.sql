-- Oldest server: 0.3.0

-- One row is a target of deliveries that waits, gets one attempt at a time, or was resumed. A
-- target without a row gets its deliveries when they are due.
create table delivery_targets (
  kind text not null check (kind in ('webhook', 'push')),
  id uuid not null,
  -- None of its deliveries is claimed until then.
  paused_until timestamptz not null default '-infinity',
  -- Until then it gets one attempt at a time, from all processes together: the delivery probe_id.
  single_until timestamptz not null default '-infinity',
  probe_id uuid,
  -- Its deliveries that were last claimed before then are due.
  resumed_at timestamptz not null default '-infinity',
  primary key (kind, id)
);

-- The time of the last claim; null before the first. The default gives it to the present rows, and
-- changes none of them.
alter table outbox add column claimed_at timestamptz default now();
alter table outbox alter column claimed_at drop default;

-- Serves the deliveries of a resumed target that wait for another attempt.
create index outbox_waiting on outbox (kind, target_id, claimed_at) where token is null and claimed_at is not null;

insert into delivery_targets (kind, id, paused_until, single_until)
select
  'webhook', w.id, case when w.disabled_at is null then coalesce(w.paused_until, '-infinity') else 'infinity' end,
  case when w.failures >= 10 then 'infinity' else coalesce(w.paused_until + interval '1 minute', '-infinity') end
from webhooks w
where w.deleted_at is null and (w.disabled_at is not null or w.paused_until is not null);

-- Targets whose deliveries 0.3.0 has not resumed yet. The clock goes on, so the default of
-- claimed_at is earlier.
insert into delivery_targets as t (kind, id, resumed_at)
select r.kind, r.target_id, clock_timestamp() from resumed_targets r
on conflict (kind, id) do update set resumed_at = excluded.resumed_at;
