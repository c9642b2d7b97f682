-- The installation, whose backups have its first eight digits in their names. A restore changes it.
alter table installation add column id uuid not null default gen_random_uuid();

-- The names had the epoch before.
update installation set id = epoch;

-- The waits of webhooks and targets are moved after a jump of the clock, too.
alter table wait_extensions add column place text not null default 'outbox'
  check (place in ('webhooks', 'delivery_targets', 'outbox'));
