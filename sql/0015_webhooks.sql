-- One row is a URL that receives the events of a project. url, secret and previous_secret are
-- sealed. Deleting a webhook clears them; its row is removed after its last attempt.
create table webhooks (
  project_id uuid not null references projects on delete cascade,
  id uuid not null,
  name text not null,
  url text,
  -- The host of the URL. It is all that members below admin can see of the URL.
  host text not null,
  preset text not null check (preset in ('standard', 'slack', 'discord', 'telegram', 'ntfy')),
  -- True if it receives the events of every channel, false if only those of webhook_channels.
  has_all_channels boolean not null,
  secret text,
  -- Also signs, until previous_until.
  previous_secret text,
  previous_until timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz,
  -- A disabled webhook receives nothing. The reason is a sentence for the screen.
  disabled_at timestamptz,
  disabled_reason text,
  -- Consecutive failures, and when they began. After ten of them sending pauses, each time for
  -- longer.
  failures int not null default 0,
  failing_since timestamptz,
  pauses int not null default 0,
  paused_until timestamptz,
  -- When the backlog reached its limit. Until there is room, new events are recorded and not
  -- enqueued.
  backlog_full_at timestamptz,
  -- When a test was last requested.
  tested_at timestamptz,
  primary key (project_id, id),
  -- Serves the rotation of APP_SECRET.
  unique (id),
  check (deleted_at is not null or url is not null and secret is not null),
  check ((previous_secret is null) = (previous_until is null)),
  check ((disabled_at is null) = (disabled_reason is null))
);

-- Serves the removal of deleted webhooks.
create index webhooks_deleted on webhooks (deleted_at) where deleted_at is not null;

-- Serves the check for room in a full backlog.
create index webhooks_full on webhooks (id) where backlog_full_at is not null;

-- One row is a channel whose events a webhook receives.
create table webhook_channels (
  project_id uuid not null,
  webhook_id uuid not null,
  channel_id uuid not null,
  primary key (project_id, webhook_id, channel_id),
  foreign key (project_id, webhook_id) references webhooks (project_id, id) on delete cascade,
  foreign key (project_id, channel_id) references channels (project_id, id) on delete cascade
);

-- Serves the deletion of a channel.
create index webhook_channels_of_channel on webhook_channels (project_id, channel_id);

-- One row is an attempt to deliver to a webhook, kept for 30 days. event_id is null for a test.
create table webhook_attempts (
  project_id uuid not null,
  id uuid not null,
  webhook_id uuid not null,
  event_id uuid,
  kind text not null check (kind in ('event.created', 'webhook.test')),
  -- The number of the attempt among those of its delivery, from 1.
  number int not null check (number > 0),
  outcome text not null check (outcome in ('delivered', 'failed')),
  -- The status of the response; null without a response, in which case `error` says why.
  status int,
  error text,
  reason text not null,
  -- The first 1 KiB of the response, as text.
  response text,
  latency_ms int not null,
  started_at timestamptz not null,
  -- The host of the request, the format of its body, and the SHA-256 of its body. The screen
  -- rebuilds the body from the event, and the hash shows whether it is still the same.
  host text not null,
  preset text not null,
  body_hash bytea not null check (octet_length(body_hash) = 32),
  primary key (project_id, id),
  foreign key (project_id, webhook_id) references webhooks (project_id, id) on delete cascade,
  check ((status is null) = (error is not null)),
  check ((event_id is null) = (kind = 'webhook.test'))
);

-- Serves the list of a webhook's attempts, newest first. Ids ascend with time.
create index webhook_attempts_of_webhook on webhook_attempts (project_id, webhook_id, id);

-- Serves recovery, which skips the events that a webhook has already received.
create index webhook_attempts_delivered on webhook_attempts (project_id, webhook_id, event_id)
  where outcome = 'delivered' and event_id is not null;

-- Serves the sweep of old attempts.
create index webhook_attempts_of_time on webhook_attempts (started_at);
