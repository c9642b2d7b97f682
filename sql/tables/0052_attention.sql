-- Oldest server: 0.3.0

-- One row says who has taken care of a thread, or of an event without a thread.
create table acknowledgements (
  project_id uuid not null,
  -- The thread_seq of the thread, or the seq of the event.
  thread_seq bigint not null,
  -- Identifies it, and its deliveries to webhooks.
  id uuid not null,
  -- The event that was acknowledged.
  event_id uuid not null,
  account_id uuid,
  -- The name of the token, if a token without an account acknowledged it.
  token_name text,
  at timestamptz not null,
  -- When it ends; null if it does not.
  until timestamptz,
  primary key (project_id, thread_seq)
);

-- Serves the deliveries to webhooks.
create index acknowledgements_by_id on acknowledgements (project_id, id);

-- One row keeps a project, a channel or a thread quiet.
create table silences (
  project_id uuid not null,
  id uuid not null,
  -- Null for the whole project.
  channel_id uuid,
  -- The key of the thread; null for the whole channel.
  thread text collate "C",
  -- The only generation of the thread that is kept quiet. Null for all of the key.
  thread_seq bigint,
  account_id uuid,
  -- The name of the API key or of the token, if one of these made it.
  key_name text,
  reason text not null,
  created_at timestamptz not null,
  -- When it is quiet, or quiet next. Without an end it lasts until nothing in it is open.
  starts_at timestamptz not null,
  ends_at timestamptz,
  -- The weekly hours that starts_at and ends_at come from, as in quiet_hours; null for one time.
  hours jsonb check (jsonb_array_length(hours) <= 14),
  primary key (project_id, id),
  foreign key (project_id, channel_id) references channels on delete cascade
);

-- Serves the deletion of a channel.
create index silences_of_channel on silences (project_id, channel_id);

-- One row says how a channel tells members of its alarms: {"level": "critical", "repeatMinutes": 5,
-- "stages": [{"afterMinutes": 5, "to": "onDuty"}]}. A wider row of `channels` would change how
-- Postgres finds one by its id while it knows no statistics.
create table escalations (
  project_id uuid not null,
  channel_id uuid not null,
  escalation jsonb not null,
  primary key (project_id, channel_id),
  foreign key (project_id, channel_id) references channels on delete cascade
);

-- The account that is on duty, and until when.
alter table projects add column on_duty_id uuid, add column on_duty_until timestamptz;

-- Timers are a kind of delivery that follows no log. The checks are validated by no scan: their
-- tables have the other kinds alone.
alter table outbox drop constraint outbox_kind_check,
  add constraint outbox_kind_check check (kind in ('webhook', 'push', 'timer')) not valid;
alter table deliveries drop constraint deliveries_kind_check,
  add constraint deliveries_kind_check check (kind in ('webhook', 'push', 'timer')) not valid;
alter table dead_letters drop constraint dead_letters_kind_check,
  add constraint dead_letters_kind_check check (kind in ('webhook', 'push', 'timer')) not valid;
