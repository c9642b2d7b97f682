-- Oldest server: 0.3.0

-- One row is a job that reports by pings, and is down if it does not.
create table heartbeats (
  project_id uuid not null,
  id uuid not null,
  channel_id uuid not null,
  -- The secret part of the address of its pings.
  address uuid not null default gen_random_uuid() unique,
  name text not null,
  period_s int not null check (period_s between 10 and 31536000),
  grace_s int not null check (grace_s between 10 and 31536000),
  status text not null default 'new' check (status in ('new', 'up', 'down', 'paused')),
  created_at timestamptz not null default now(),
  -- The last ping that succeeded or failed.
  last_ping_at timestamptz,
  -- The start of the run that has not ended, and the id that its pings have.
  started_at timestamptz,
  run_id uuid,
  -- When it is down without another ping; null if it is not expected.
  due_at timestamptz,
  -- Until when it may report instead, because no server ran when it was due.
  extended_to timestamptz,
  -- When its timer is due; null without a timer.
  timer_at timestamptz,
  ping_count bigint not null default 0,
  -- The minute of the last ping, how many pings it had, and how many of them members were told of.
  minute timestamptz,
  minute_pings int not null default 0,
  minute_told int not null default 0,
  primary key (project_id, id),
  foreign key (project_id, channel_id) references channels on delete cascade
);

-- Serves the deletion of a channel.
create index heartbeats_of_channel on heartbeats (project_id, channel_id);

-- One row is one of the newest 20 pings of a heartbeat.
create table heartbeat_pings (
  project_id uuid not null,
  heartbeat_id uuid not null,
  number bigint not null,
  at timestamptz not null,
  kind text not null check (kind in ('success', 'start', 'fail', 'log')),
  exit_code smallint,
  run_id uuid,
  -- The length of the run that it ended.
  took_ms bigint,
  method text not null,
  user_agent text not null,
  body text not null,
  primary key (project_id, heartbeat_id, number),
  foreign key (project_id, heartbeat_id) references heartbeats on delete cascade
);

-- Serves the search for due timers. Each heartbeat is a target of its own, and most are not due.
create index outbox_timers on outbox (available_at) where kind = 'timer';

-- The last time without a server: from the last check before it until the first one after it. It
-- has the stops that follow each other within an hour.
alter table clock add column down_from timestamptz, add column down_to timestamptz;
