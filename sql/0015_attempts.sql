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
