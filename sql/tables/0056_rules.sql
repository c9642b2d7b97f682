-- Oldest server: 0.3.0

-- One row watches what a search finds from now on. Its timer in `outbox` has its id.
create table rules (
  project_id uuid not null,
  id uuid not null,
  -- The channel that gets its events.
  channel_id uuid not null,
  name text not null,
  search text not null,
  -- It fires with more events than this in the time. Null: it fires with none.
  more_than int check (more_than between 0 and 1000),
  within_s int not null check (within_s between 60 and 2592000),
  -- Of its event, as in events.
  level smallint not null,
  is_on boolean not null,
  created_at timestamptz not null default now(),
  -- The log was evaluated up to here. With the state it changes in the transaction that appends the
  -- event of a change, so that each change has one event.
  seq bigint not null,
  -- {"recent": [1700000000000], "firingMs": null}: times of the last events in ms, oldest first.
  state jsonb not null,
  primary key (project_id, id),
  foreign key (project_id, channel_id) references channels on delete cascade
);
