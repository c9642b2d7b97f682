-- One row is a kind of delivery. Logs that already existed at `since` are followed from their end
-- at that time, not from their beginning.
create table delivery_kinds (
  kind text primary key check (kind in ('webhook', 'push')),
  since timestamptz not null default now()
);

-- One row is the position up to which a project's log was dispatched to deliveries of a kind.
-- Without a row, nothing was dispatched.
create table delivery_cursors (
  project_id uuid not null references projects on delete cascade,
  kind text not null references delivery_kinds,
  seq bigint not null check (seq >= 0),
  primary key (project_id, kind)
) with (fillfactor = 50);

-- Returns a new UUID of version 7. Postgres 17 and earlier have no function for it.
create function new_delivery_id() returns uuid
language sql volatile parallel safe
return encode(
  set_bit(
    set_bit(
      overlay(
        uuid_send(gen_random_uuid())
        placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
        from 1 for 6
      ),
      52, 1
    ),
    53, 1
  ),
  'hex'
)::uuid;

-- One row is a pending delivery: one event, or one audit entry, for one target. Of an entry,
-- event_id is the id. A finished delivery is removed, so the
-- indexes need no condition.
create table outbox (
  id uuid primary key default new_delivery_id(),
  project_id uuid not null references projects on delete cascade,
  event_id uuid not null,
  kind text not null check (kind in ('webhook', 'push')),
  target_id uuid not null,
  -- When it can be claimed. It is the schedule, the lease and the delay of a retry in one.
  available_at timestamptz not null default now(),
  -- When the delivery was requested. Sending an event again sets it anew, however old the event is.
  requested_at timestamptz not null default now(),
  -- The token of the last claim. Only its holder can settle the delivery.
  token uuid,
  -- The number of claims since the last outcome. More than one means that workers died during
  -- attempts.
  claim_count smallint not null default 0,
  -- The number of failed attempts, and the reason of the last failure.
  attempts smallint not null default 0,
  reason text,
  -- Makes a repeated dispatch harmless. Serves the deliveries of an event, the list of a project's
  -- pending deliveries, and the deletion of an event or a project.
  unique (project_id, event_id, kind, target_id)
) with (
  fillfactor = 80,
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_insert_scale_factor = 0.01,
  autovacuum_vacuum_cost_delay = 0
);

-- Serves the scan from target to target, and the claim of a target's oldest delivery.
create index outbox_of_target on outbox (kind, target_id, available_at, id);

-- One row is the outcome of a delivery, for the page of its event. A null target means that the
-- event had no target, for `reason`.
create table deliveries (
  id uuid not null default new_delivery_id(),
  project_id uuid not null references projects on delete cascade,
  event_id uuid not null,
  kind text not null check (kind in ('webhook', 'push')),
  target_id uuid,
  state text not null check (state in ('delivered', 'failed', 'dead', 'cancelled', 'withheld')),
  attempts smallint not null default 0,
  -- The time from the creation of the event to its delivery.
  latency_ms bigint,
  reason text,
  at timestamptz not null default now(),
  -- Keeps only the last outcome. Serves the deliveries of an event, and the deletion of a project.
  unique nulls not distinct (project_id, event_id, kind, target_id)
) with (autovacuum_vacuum_scale_factor = 0.05);

-- Serves the sweep of old records.
create index deliveries_of_time on deliveries (at);

-- One row lists the targets that an event was withheld from at dispatch, for one reason. Separate
-- rows in `deliveries` would be 100,000 for a burst in a large organization.
create table withheld_deliveries (
  project_id uuid not null references projects on delete cascade,
  event_id uuid not null,
  kind text not null check (kind in ('webhook', 'push')),
  reason text not null,
  target_ids uuid[] not null,
  at timestamptz not null default now()
);

-- Serves the deliveries of an event, and the deletion of a project.
create index withheld_deliveries_of_event on withheld_deliveries (project_id, event_id);

-- Serves the sweep of old rows.
create index withheld_deliveries_of_time on withheld_deliveries (at);

-- One row is the outcome of one delivery, including withheld ones. A later outcome replaces
-- 'withheld'.
create view delivery_records as
select d.id, d.project_id, d.event_id, d.kind, d.target_id, d.state, d.attempts, d.latency_ms, d.reason, d.at
from deliveries d
union all
select
  md5(w.event_id::text || t.id::text)::uuid, w.project_id, w.event_id, w.kind, t.id, 'withheld', 0::smallint, null,
  w.reason, w.at
from withheld_deliveries w
  cross join lateral unnest(w.target_ids) as t (id)
where not exists (
  select
  from deliveries d
  where d.project_id = w.project_id and d.event_id = w.event_id and d.kind = w.kind and d.target_id = t.id
);

-- One row is a delivery that was given up and can be replayed.
create table dead_letters (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  event_id uuid not null,
  kind text not null check (kind in ('webhook', 'push')),
  target_id uuid not null,
  attempts smallint not null,
  reason text not null,
  at timestamptz not null default now(),
  -- Serves the deletion of an event.
  unique (project_id, event_id, kind, target_id)
);

-- Serves the list of a project's dead letters, newest first.
create index dead_letters_of_project on dead_letters (project_id, id);

-- Serves the sweep of old dead letters.
create index dead_letters_of_time on dead_letters (at);

-- The functions below pin one plan each. Planning each time costs more than the work. Their tables
-- are often empty when a plan is made, so no plan may read a whole table. Their first setting also
-- plans the checks of foreign keys once.

-- Leases at most max_deliveries due deliveries: first the oldest of each requested target, then the
-- second oldest of each, and so on. It skips locked rows. Each target gives at most its room, of
-- deliveries that are due at its due_at or later. The result says what an attempt needs to know:
-- is_gone means that the event or its project no longer exists, and hidden_ms is the time since the
-- event was deleted.
create function claim_deliveries(
  of_kind text, target_ids uuid[], rooms int[], due_ats timestamptz[], max_deliveries int, lease_ms float8, new_token uuid
) returns table (
  id uuid, project_id uuid, event_id uuid, target_id uuid, claim_count smallint, attempts smallint, is_gone boolean,
  age_ms float8, waited_ms float8, hidden_ms float8
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
  -- After a crash the deliveries are claimed again, so the commit need not wait for fsync.
  perform set_config('synchronous_commit', 'off', true);
  return query
    with chosen as materialized (
      select r.id
      from unnest(target_ids, rooms, due_ats) with ordinality as w (target_id, room, due_at, place)
        cross join lateral (
          select d.id, row_number() over (order by d.available_at, d.id) as rank
          from (
            select o.id, o.available_at
            from outbox o
            where o.kind = of_kind and o.target_id = w.target_id
              and o.available_at >= w.due_at and o.available_at <= now()
            order by o.available_at, o.id
            limit w.room
          ) d
        ) r
      order by r.rank, w.place
      limit max_deliveries
    ), locked as materialized (
      select o.id
      from chosen c
        join outbox o on o.id = c.id
      -- The sum keeps the planner from choosing outbox_of_target.
      where o.available_at + interval '0 s' <= now()
      for update of o skip locked
    ), taken as (
      update outbox o set
        available_at = now() + lease_ms * interval '1 ms', token = new_token, claim_count = o.claim_count + 1
      from locked l
      where o.id = l.id
      returning o.id, o.project_id, o.event_id, o.target_id, o.claim_count, o.attempts, o.requested_at
    )
    select
      t.id, t.project_id, t.event_id, t.target_id, t.claim_count, t.attempts,
      coalesce(e.id, s.id) is null or p.deleted_at is not null,
      coalesce(extract(epoch from clock_timestamp() - coalesce(e.created_at, s.at)) * 1000, 0)::float8,
      (extract(epoch from clock_timestamp() - t.requested_at) * 1000)::float8,
      (extract(epoch from clock_timestamp() - e.deleted_at) * 1000)::float8
    from taken t
      join projects p on p.id = t.project_id
      left join lateral (
        select e.id, e.created_at, e.deleted_at
        from events e
        -- On an empty table all indexes seem equally good. The range with its order needs a sort
        -- with any index but that of (project_id, id).
        where e.project_id = t.project_id and e.id >= t.event_id and e.id <= t.event_id
        order by e.id
        limit 1
      ) e on true
      left join audit_log s on s.id = t.event_id and e.id is null;
end
$$;

-- Stores the settlements of claimed deliveries. A delivery that has ended becomes a record, and
-- also a dead letter if it was given up; any other waits for its next attempt. Returns the ids
-- whose token the caller still held; other deliveries stay unchanged. Rows are locked in the order
-- of their ids.
create function settle_deliveries(
  ids uuid[], tokens uuid[], states text[], made_attempts int[], delays_ms float8[], reasons text[], latencies_ms bigint[]
) returns setof uuid
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
  return query
    with held as materialized (
      select i.id, i.state, i.attempts, i.delay_ms, i.reason, i.latency_ms
      from unnest(ids, tokens, states, made_attempts, delays_ms, reasons, latencies_ms)
          as i (id, token, state, attempts, delay_ms, reason, latency_ms)
        join outbox o on o.id = i.id and o.token = i.token
      order by o.id
      for update of o
    ), ended as (
      delete from outbox o
      using held h
      where o.id = h.id and h.state is not null
      returning
        o.id, o.project_id, o.event_id, o.kind, o.target_id, h.state, o.attempts + h.attempts as attempts,
        coalesce(h.reason, o.reason) as reason, h.latency_ms
    ), records as (
      insert into deliveries (
        id, project_id, event_id, kind, target_id, state, attempts, latency_ms, reason
      )
      select
        id, project_id, event_id, kind, target_id, state, attempts, latency_ms,
        case when state <> 'delivered' then reason end
      from ended
      on conflict (project_id, event_id, kind, target_id) do update set
        id = excluded.id, state = excluded.state, attempts = excluded.attempts,
        latency_ms = excluded.latency_ms, reason = excluded.reason, at = excluded.at
    ), new_dead_letters as (
      insert into dead_letters (id, project_id, event_id, kind, target_id, attempts, reason)
      select id, project_id, event_id, kind, target_id, attempts, coalesce(reason, '')
      from ended
      where state = 'dead'
      on conflict (project_id, event_id, kind, target_id) do update set
        id = excluded.id, attempts = excluded.attempts, reason = excluded.reason, at = excluded.at
    ), waiting as (
      update outbox o set
        available_at = now() + h.delay_ms * interval '1 ms',
        token = null, claim_count = 0, attempts = o.attempts + h.attempts, reason = coalesce(h.reason, o.reason)
      from held h
      where o.id = h.id and h.state is null
    )
    select id from held;
end
$$;

-- Cancels the deliveries of deleted events. Like the settler, it locks rows in the order of their
-- ids.
create function cancel_deliveries() returns trigger
language plpgsql
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
as $$
begin
  with found as materialized (
    select o.id
    from deleted_events g
      join outbox o on o.project_id = g.project_id and o.event_id = g.id
    order by o.id
    for update of o
  ), ended as (
    delete from outbox o
      using found f
      where o.id = f.id
      returning o.id, o.project_id, o.event_id, o.kind, o.target_id, o.attempts
  )
  insert into deliveries as d (id, project_id, event_id, kind, target_id, state, attempts, reason)
    select e.id, e.project_id, e.event_id, e.kind, e.target_id, 'cancelled', e.attempts, 'The event was deleted'
    from ended e
      join projects p on p.id = e.project_id and p.deleted_at is null
    on conflict (project_id, event_id, kind, target_id) do update set
      id = excluded.id, state = excluded.state, attempts = excluded.attempts,
      latency_ms = null, reason = excluded.reason, at = excluded.at
      -- A delivery that succeeded before its event was sent again stays delivered.
      where d.state <> 'delivered';
  delete from dead_letters d
    using deleted_events g
    where d.project_id = g.project_id and d.event_id = g.id;
  return null;
end
$$;

create trigger events_cancel_deliveries after delete on events
  referencing old table as deleted_events
  for each statement execute function cancel_deliveries();
