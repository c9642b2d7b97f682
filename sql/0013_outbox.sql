-- A way to tell of events that this installation has, and since when: a log that was there before is followed from where
-- it stood then.
create table delivery_kinds (
  kind text primary key check (kind in ('webhook', 'push')),
  since timestamptz not null default now()
);

-- How far a project's log has been turned into deliveries of a kind. Without a row: not at all.
create table delivery_cursors (
  project_id uuid not null references projects on delete cascade,
  kind text not null references delivery_kinds,
  seq bigint not null check (seq >= 0),
  primary key (project_id, kind)
) with (fillfactor = 50);

-- A new uuid of version 7, as ids are elsewhere: Postgres makes them itself from version 18 on.
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

-- A delivery that is still to be made: one event, told to one target. What is finished leaves the table, so no index
-- needs a condition.
create table outbox (
  id uuid primary key default new_delivery_id(),
  project_id uuid not null references projects on delete cascade,
  event_id uuid not null,
  kind text not null check (kind in ('webhook', 'push')),
  target_id uuid not null,
  -- Schedule, lease and retry in one: from when on it may be taken.
  available_at timestamptz not null default now(),
  -- Of whoever took it last: nobody else settles it.
  token uuid,
  -- How often it was taken since its last outcome: more than once, and workers have died over it.
  takes smallint not null default 0,
  -- How many attempts have failed, and what the last one met.
  attempts smallint not null default 0,
  reason text,
  -- Makes a dispatch that is repeated harmless. Serves the deliveries of an event, the list of a project's pending ones,
  -- and an event or a project that goes.
  unique (project_id, event_id, kind, target_id)
) with (
  fillfactor = 80,
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_insert_scale_factor = 0.01,
  autovacuum_vacuum_cost_delay = 0
);

-- Serves the walk from target to target, and the claim of a target's oldest.
create index outbox_of_target on outbox (kind, target_id, available_at, id);

-- What became of a delivery, for the page of its event. Without a target: nobody was told, for the reason given.
create table deliveries (
  id uuid not null default new_delivery_id(),
  project_id uuid not null references projects on delete cascade,
  event_id uuid not null,
  kind text not null check (kind in ('webhook', 'push')),
  target_id uuid,
  state text not null check (state in ('delivered', 'failed', 'dead', 'cancelled', 'withheld')),
  attempts smallint not null default 0,
  -- From the event's creation to its delivery.
  latency_ms bigint,
  reason text,
  at timestamptz not null default now(),
  -- The last outcome counts. Serves the deliveries of an event, and a project that goes.
  unique nulls not distinct (project_id, event_id, kind, target_id)
) with (autovacuum_vacuum_scale_factor = 0.05);

-- Serves the sweep of old records.
create index deliveries_of_time on deliveries (at);

-- A delivery that was given up, and can be replayed.
create table dead_letters (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  event_id uuid not null,
  kind text not null check (kind in ('webhook', 'push')),
  target_id uuid not null,
  attempts smallint not null,
  reason text not null,
  at timestamptz not null default now(),
  -- Serves an event that goes.
  unique (project_id, event_id, kind, target_id)
);

-- Serves the list of a project's dead letters, newest first.
create index dead_letters_of_project on dead_letters (project_id, id);

-- Serves the sweep of old ones.
create index dead_letters_of_time on dead_letters (at);

-- As before, and what belongs to deliveries.
create or replace function tables_of_projects() returns text[]
language sql immutable as $$
  select array[
    'outbox', 'dead_letters', 'events', 'deliveries', 'delivery_cursors', 'webhook_attempts', 'webhook_channels',
    'webhooks', 'event_counts', 'event_stretches', 'read_marks', 'channels', 'alias_changes', 'aliases', 'identities',
    'idempotency_keys', 'event_logs', 'key_usage', 'rate_windows', 'api_keys'
  ]
$$;

-- The deliveries of events that are deleted for good end with them. Rows are locked in the order of their ids, as by
-- whoever settles them.
create function cancel_deliveries() returns trigger
language plpgsql
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
as $$
begin
  with found as materialized (
    select o.id
    from gone g
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
      -- What was delivered before it was to be sent again stays delivered.
      where d.state <> 'delivered';
  delete from dead_letters d
    using gone g
    where d.project_id = g.project_id and d.event_id = g.id;
  return null;
end
$$;
create trigger events_end_deliveries after delete on events
  referencing old table as gone
  for each statement execute function cancel_deliveries();
