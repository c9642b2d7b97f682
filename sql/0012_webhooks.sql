-- One row at most: what tells, at every start, whether the APP_SECRET is the one that sealed the rest.
create table sealed_canary (
  is_only boolean primary key default true check (is_only),
  sealed text not null
);

-- An address that the events of a project are posted to. url, secret and previous_secret are sealed, for this row alone.
-- Once it is deleted they are null, and the row goes after the last of its attempts.
create table webhooks (
  project_id uuid not null references projects on delete cascade,
  id uuid not null,
  name text not null,
  url text,
  -- Of the url: all that people who are no admins see of it.
  host text not null,
  preset text not null check (preset in ('standard', 'slack', 'discord', 'telegram', 'ntfy')),
  -- Whether events of every channel are meant, or those of webhook_channels.
  has_all_channels boolean not null,
  secret text,
  -- Signs as well until then.
  previous_secret text,
  previous_until timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz,
  -- Without events while it is set; the reason is a sentence for people.
  disabled_at timestamptz,
  disabled_reason text,
  -- Failures in a row, since when, and until when nothing is sent for them: the pause before the next one is longer.
  failures int not null default 0,
  failing_since timestamptz,
  pauses int not null default 0,
  paused_until timestamptz,
  -- When a test was last asked for.
  tested_at timestamptz,
  primary key (project_id, id),
  -- Serves rotation of the APP_SECRET.
  unique (id),
  check (deleted_at is not null or url is not null and secret is not null),
  check ((previous_secret is null) = (previous_until is null)),
  check ((disabled_at is null) = (disabled_reason is null))
);

-- Serves the clearing away of deleted ones.
create index webhooks_deleted on webhooks (deleted_at) where deleted_at is not null;

-- A channel whose events a webhook is for.
create table webhook_channels (
  project_id uuid not null,
  webhook_id uuid not null,
  channel_id uuid not null,
  primary key (project_id, webhook_id, channel_id),
  foreign key (project_id, webhook_id) references webhooks (project_id, id) on delete cascade,
  foreign key (project_id, channel_id) references channels (project_id, id) on delete cascade
);

-- Serves a channel that goes.
create index webhook_channels_of_channel on webhook_channels (project_id, channel_id);

-- One try to deliver to a webhook, kept for 30 days. event_id is null for a test. number counts the tries of a delivery.
create table webhook_attempts (
  project_id uuid not null,
  id uuid not null,
  webhook_id uuid not null,
  event_id uuid,
  kind text not null check (kind in ('event.created', 'webhook.test')),
  number int not null check (number > 0),
  outcome text not null check (outcome in ('delivered', 'failed')),
  -- Of the answer; null where there was none, and the error says why.
  status int,
  error text,
  reason text not null,
  -- The first 1 KiB of the answer, as text.
  response text,
  latency_ms int not null,
  started_at timestamptz not null,
  primary key (project_id, id),
  foreign key (project_id, webhook_id) references webhooks (project_id, id) on delete cascade,
  check ((status is null) = (error is not null)),
  check ((event_id is null) = (kind = 'webhook.test'))
);

-- Serves the list of a webhook's attempts, newest first: ids are made in the order of time.
create index webhook_attempts_of_webhook on webhook_attempts (project_id, webhook_id, id);

-- Serves recovery: which events a webhook has had.
create index webhook_attempts_delivered on webhook_attempts (project_id, webhook_id, event_id)
  where outcome = 'delivered' and event_id is not null;

-- Serves the sweep of old attempts.
create index webhook_attempts_of_time on webhook_attempts (started_at);

-- As before, and what belongs to webhooks.
create or replace function tables_of_projects() returns text[]
language sql immutable as $$
  select array[
    'webhook_attempts', 'webhook_channels', 'webhooks',
    'events', 'event_counts', 'event_stretches', 'read_marks', 'channels', 'alias_changes', 'aliases', 'identities',
    'idempotency_keys', 'event_logs', 'key_usage', 'rate_windows', 'api_keys'
  ]
$$;
