-- Changes when the URL, the preset or the secret of a webhook change, and when an admin enables or
-- disables it. A response counts for the generation that was called.
alter table webhooks add column generation int not null default 0;

-- True if its target was resumed since the claim. If the delivery was only postponed, it is due at
-- once.
alter table outbox add column is_resumed boolean not null default false;

-- The last failure of an attempt. Deliveries that have failed since a resumption wait as usual.
alter table outbox add column failed_at timestamptz;

-- One row is a target whose waiting deliveries become due, in batches. Those that were due before
-- next_at have been resumed.
create table resumed_targets (
  kind text not null check (kind in ('webhook', 'push')),
  target_id uuid not null,
  next_at timestamptz not null default '-infinity',
  since timestamptz not null default now(),
  primary key (kind, target_id)
);

-- One row is a jump of the clock forward that extends the waits of deliveries, in batches by id:
-- those that were requested before `until`, and have an id after last_id. Jumps are taken in the
-- order of `number`.
create table wait_extensions (
  number int primary key,
  jump interval not null,
  until timestamptz not null,
  last_id uuid not null default '00000000-0000-0000-0000-000000000000'
);
