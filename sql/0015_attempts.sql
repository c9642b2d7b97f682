-- What it takes to show the request of an attempt again, without keeping it: where it went, in which form, and the
-- SHA-256 of its body, by which one that is made anew from the event is known as the same. Null for attempts from before.
alter table webhook_attempts
  add column host text,
  add column preset text,
  add column body_hash bytea check (octet_length(body_hash) = 32),
  add check (num_nulls(host, preset, body_hash) in (0, 3));

-- Since when a delivery is to be made: one that is sent again begins anew, however old its event is.
alter table outbox add column since timestamptz not null default now();

-- Since when more deliveries wait for a webhook than are kept: until there is room, new events are recorded and not queued.
alter table webhooks add column backlog_full_at timestamptz;

-- Serves the look whether there is room again.
create index webhooks_full on webhooks (id) where backlog_full_at is not null;

-- Targets that were not told of an event when it was dispatched, for one reason: a burst in a large organization would
-- be a hundred thousand rows of deliveries.
create table withheld (
  project_id uuid not null references projects on delete cascade,
  event_id uuid not null,
  kind text not null check (kind in ('webhook', 'push')),
  reason text not null,
  target_ids uuid[] not null,
  at timestamptz not null default now()
);

-- Serves the deliveries of an event, and a project that goes.
create index withheld_of_event on withheld (project_id, event_id);

-- Serves the sweep of old ones.
create index withheld_of_time on withheld (at);

-- What became of deliveries, one by one. What happened to one that was withheld at first counts.
create view delivery_records as
select d.id, d.project_id, d.event_id, d.kind, d.target_id, d.state, d.attempts, d.latency_ms, d.reason, d.at
from deliveries d
union all
select
  md5(w.event_id::text || t.id::text)::uuid, w.project_id, w.event_id, w.kind, t.id, 'withheld', 0::smallint, null,
  w.reason, w.at
from withheld w
  cross join lateral unnest(w.target_ids) as t (id)
where not exists (
  select
  from deliveries d
  where d.project_id = w.project_id and d.event_id = w.event_id and d.kind = w.kind and d.target_id = t.id
);

-- As before, and what was withheld.
create or replace function tables_of_projects() returns text[]
language sql immutable as $$
  select array[
    'push_bursts', 'channel_notifications', 'outbox', 'dead_letters', 'deliveries', 'withheld', 'delivery_cursors',
    'webhook_attempts', 'webhook_channels', 'webhooks',
    'events', 'event_counts', 'event_stretches', 'read_marks', 'channels', 'alias_changes', 'aliases', 'identities',
    'idempotency_keys', 'event_logs', 'key_usage', 'rate_windows', 'api_keys'
  ]
$$;
