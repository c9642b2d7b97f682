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

-- Returns the id of a new delivery. Its body comes with the functions, after the tables whose
-- defaults call it.
create function new_delivery_id() returns uuid language sql volatile parallel safe return gen_random_uuid();

-- One row is a pending delivery: one event for one target. A finished delivery is removed, so the
-- indexes need no condition. `reap` removes the rows of a project before it.
create table outbox (
  id uuid primary key default new_delivery_id(),
  project_id uuid not null,
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
  -- True if its target was resumed since the claim. If the delivery was only postponed, it is due
  -- at once.
  is_resumed boolean not null default false,
  -- The last failure of an attempt. Deliveries that have failed since a resumption wait as usual.
  failed_at timestamptz,
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
  project_id uuid not null,
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

-- The only row is the VAPID key pair, by which push services know this installation. private_key is
-- sealed.
create table vapid_keys (
  id uuid primary key,
  singleton boolean not null default true unique check (singleton),
  public_key text not null,
  private_key text not null,
  created_at timestamptz not null default now()
);

-- One row is a browser that receives notifications for the account signed in there. It is deleted
-- with the session.
create table push_subscriptions (
  id uuid primary key,
  account_id uuid not null references accounts on delete cascade,
  -- A session has one subscription. A browser that subscribes again replaces it.
  session_id uuid not null unique references sessions on delete cascade,
  -- SHA-256 of the endpoint. An endpoint belongs to one browser, and to the account that signed in
  -- there last.
  endpoint_hash bytea not null unique check (octet_length(endpoint_hash) = 32),
  -- The endpoint and the keys as JSON, sealed.
  address text not null,
  -- The host of the endpoint, which is that of the push service.
  host text not null,
  label text not null,
  is_on boolean not null default true,
  -- True once its push service has accepted a push. It lengthens the session of an installed app.
  is_proven boolean not null default false,
  -- Quiet hours, in minutes since midnight in a time zone. Nothing is pushed in them.
  quiet_from smallint check (quiet_from between 0 and 1439),
  quiet_to smallint check (quiet_to between 0 and 1439),
  quiet_zone text,
  created_at timestamptz not null default now(),
  -- The last response of the push service, as a sentence for the screen.
  last_push_at timestamptz,
  last_outcome text,
  -- Consecutive refusals, and the reason of the last one. The fifth refusal deletes the
  -- subscription.
  refusals smallint not null default 0,
  flagged text,
  -- When a test was last requested.
  tested_at timestamptz,
  -- The last time that the push service accepted a push to the device, and the last time that it
  -- refused one since; null if it has not. refusals counts refusals of this device alone: another
  -- device of the same push service was accepted since the one before.
  accepted_at timestamptz,
  refused_at timestamptz,
  -- How far the clock of the push service was ahead when it refused the last push, in seconds. Null
  -- if the response had no date.
  service_ahead_s int,
  -- The id of one of the account's known_devices.
  browser_id uuid,
  check (num_nulls(quiet_from, quiet_to, quiet_zone) in (0, 3)),
  check ((flagged is null) = (refusals = 0)),
  check ((last_push_at is null) = (last_outcome is null))
);

-- Serves the list of an account's devices, and the devices of an organization's members.
create index push_subscriptions_of_account on push_subscriptions (account_id, id);

-- One row is an account's settings for a channel; a null channel stands for all channels of the
-- project. A setting that is null for a channel is that of the project. Without a row, the account
-- is notified of every event.
create table notification_settings (
  account_id uuid not null references accounts on delete cascade,
  project_id uuid not null references projects on delete cascade,
  channel_id uuid,
  state text check (state in ('on', 'mute')),
  -- When the mute ends. Null with the state 'mute' means that it does not end.
  mute_until timestamptz,
  -- True if bursts are collapsed.
  collapse boolean,
  -- Serves an account's settings in a project and, by its first column, the deletion of a project.
  unique nulls not distinct (project_id, account_id, channel_id),
  foreign key (project_id, channel_id) references channels (project_id, id) on delete cascade,
  check (mute_until is null or state is not null and state = 'mute')
);

-- Serves the deletion of a channel.
create index notification_settings_of_channel on notification_settings (project_id, channel_id);

-- Serves the deletion of an account.
create index notification_settings_of_account on notification_settings (account_id);

-- One row is a burst: the recent pushes of a channel to an account. After ten in 60 seconds, one
-- summary counts the rest. The table is unlogged, so a crash of Postgres resets all bursts.
create unlogged table push_bursts (
  project_id uuid not null,
  channel_id uuid not null,
  account_id uuid not null,
  -- When the last ten pushes were sent.
  recent timestamptz[] not null,
  -- When the burst began, the number of pushes collapsed since, and when the last of them was.
  burst_at timestamptz,
  collapsed int not null default 0,
  collapsed_at timestamptz,
  -- When the summary is due; null once it is sent.
  summary_at timestamptz,
  touched_at timestamptz not null default now(),
  -- Serves the dispatch, and the summary.
  primary key (project_id, channel_id, account_id)
);

-- Serves the sweep of old bursts.
create index push_bursts_of_time on push_bursts (touched_at);

-- One event of a dispatch. `reason` says why nobody is notified of it; null if accounts may be
-- notified.
create type push_event as (
  project_id uuid,
  organization_id uuid,
  channel_id uuid,
  id uuid,
  created_at timestamptz,
  reason text,
  -- The number of newer events of its channel in the same dispatch.
  newer int
);

-- An account with devices, and the events of one channel that it is notified of.
create type push_recipient as (
  project_id uuid,
  channel_id uuid,
  account_id uuid,
  is_muted boolean,
  collapses boolean,
  -- The number of events that it is notified of: the newest ones, since its first device was
  -- subscribed.
  event_count int,
  -- The number of pushes of their own that these events may get. The rest of the events are
  -- collapsed.
  individual_count int,
  -- True if a summary of the collapsed events is already enqueued.
  has_summary boolean,
  -- When the oldest event of the channel was created.
  first_event_at timestamptz,
  device_ids uuid[],
  device_is_on boolean[],
  device_subscribed_at timestamptz[]
);

-- Devices that get the same pushes of one channel. `reason` says why they get none; null if they
-- get some.
create type push_device_group as (
  project_id uuid,
  channel_id uuid,
  reason text,
  event_count int,
  individual_count int,
  has_summary boolean,
  -- When the devices were subscribed; null if that was before the oldest event of the channel.
  subscribed_at timestamptz,
  device_ids uuid[]
);

-- One row is a URL that receives the events of a project, or the audit entries of its organization.
-- url, secret and previous_secret are sealed. Deleting a webhook clears them; its row is removed
-- after its last attempt.
create table webhooks (
  project_id uuid not null references projects on delete cascade,
  id uuid not null,
  name text not null,
  url text,
  -- The host of the URL. It is all that members below admin can see of the URL.
  host text not null,
  preset text not null check (preset in ('standard', 'slack', 'discord', 'telegram', 'ntfy')),
  type text not null default 'event.created' check (type in ('event.created', 'audit.entry')),
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
  -- Changes when the URL, the preset or the secret change, and when an admin enables or disables
  -- it. A response counts for the generation that was called.
  generation int not null default 0,
  primary key (project_id, id),
  -- Serves the rotation of APP_SECRET.
  unique (id),
  check (deleted_at is not null or url is not null and secret is not null),
  check ((previous_secret is null) = (previous_until is null)),
  check ((disabled_at is null) = (disabled_reason is null)),
  check (type = 'event.created' or has_all_channels)
);

-- Serves the delivery of audit entries.
create index webhooks_of_audit_log on webhooks (project_id) where type = 'audit.entry' and deleted_at is null;

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

-- One row is an attempt to deliver to a webhook, kept for 30 days. event_id is null for a test, and
-- the id of an audit entry for the kind 'audit.entry'. insert_webhook_attempts locks the webhooks
-- of attempts, which proves once that they exist. The ids are random, and only inserted once.
create table webhook_attempts (
  project_id uuid not null,
  id uuid not null,
  webhook_id uuid not null,
  event_id uuid,
  kind text not null check (kind in ('event.created', 'audit.entry', 'webhook.test')),
  -- The number of the attempt among those of its delivery, from 1.
  number int not null check (number > 0),
  outcome text not null check (outcome in ('delivered', 'failed')),
  -- The status of the response; null without a response, in which case `error` says why.
  status int,
  error text,
  reason text not null,
  -- The first 1 KiB of the response, as text. Null when what it may repeat was erased or deleted.
  response text,
  latency_ms int not null,
  started_at timestamptz not null,
  -- The host of the request, the format of its body, and the SHA-256 of its body. The screen
  -- rebuilds the body from the event, and the hash shows whether it is still the same. The hash is
  -- zero when what the body said was erased or deleted: somebody could guess the text.
  host text not null,
  preset text not null,
  body_hash bytea not null check (octet_length(body_hash) = 32),
  check ((status is null) = (error is not null)),
  check ((event_id is null) = (kind = 'webhook.test'))
);

-- Serves the list of a webhook's attempts, newest first. Ids ascend with time.
create index webhook_attempts_of_webhook on webhook_attempts (project_id, webhook_id, id);

-- Serves erasure, the deletion of events, and recovery. An event has few attempts.
create index webhook_attempts_of_event on webhook_attempts (project_id, event_id) where event_id is not null;

-- Serves the sweep of old attempts.
create index webhook_attempts_of_time on webhook_attempts (started_at);

-- A range of a project's log that a dispatch has taken: after from_seq, up to and including to_seq.
create type event_range as (
  project_id uuid,
  from_seq bigint,
  to_seq bigint,
  has_targets boolean,
  -- True if no later event is in the log.
  is_whole boolean,
  -- How long its oldest event has waited; 0 for a project without targets.
  lag_ms float8
);

-- A new delivery of an event. For a target with a full backlog it becomes a record instead.
create type new_delivery as (
  project_id uuid,
  event_id uuid,
  target_id uuid,
  created_at timestamptz,
  is_deleted boolean,
  is_full boolean
);

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

-- As for the log: the planner expects a 200th of the table for a project.
alter table webhook_attempts alter column project_id set statistics 0;
alter table dead_letters alter column project_id set statistics 0;
