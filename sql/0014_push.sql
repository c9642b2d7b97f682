-- The key pair by which push services know this installation: one row. private_key is sealed.
create table vapid_keys (
  id uuid primary key,
  is_only boolean not null default true unique check (is_only),
  public_key text not null,
  private_key text not null,
  created_at timestamptz not null default now()
);

-- A browser that takes notifications for whoever is signed in there. It goes with the session.
create table push_subscriptions (
  id uuid primary key,
  person_id uuid not null references people on delete cascade,
  -- A session has one: a browser that subscribes anew replaces what it had.
  session_id uuid not null unique references sessions on delete cascade,
  -- SHA-256 of the endpoint, which is one browser's: whoever is signed in there now has it.
  endpoint_hash bytea not null unique check (octet_length(endpoint_hash) = 32),
  -- Endpoint and keys as JSON, sealed.
  address text not null,
  -- Of the endpoint: which push service it is.
  host text not null,
  label text not null,
  is_on boolean not null default true,
  -- Minutes of the day by the clock of a time zone, between which nothing is pushed.
  quiet_from smallint check (quiet_from between 0 and 1439),
  quiet_to smallint check (quiet_to between 0 and 1439),
  quiet_zone text,
  created_at timestamptz not null default now(),
  -- What the push service said last, as a sentence for people.
  last_push_at timestamptz,
  last_outcome text,
  -- Refusals in a row, and what is wrong: after five it goes.
  refusals smallint not null default 0,
  flagged text,
  -- When a test was last asked for.
  tested_at timestamptz,
  check (num_nulls(quiet_from, quiet_to, quiet_zone) in (0, 3)),
  check ((flagged is null) = (refusals = 0)),
  check ((last_push_at is null) = (last_outcome is null))
);

-- Serves the list of a person's devices, and the devices of an organization's members.
create index push_subscriptions_of_person on push_subscriptions (person_id, id);

-- What a person wants to be notified of: a channel, or with null for a channel all of a project's that have no row of
-- their own. Without any row: everything.
create table channel_notifications (
  person_id uuid not null references people on delete cascade,
  project_id uuid not null references projects on delete cascade,
  channel_id uuid,
  state text not null check (state in ('on', 'mute')),
  -- After it the row means nothing any more; null for ever.
  mute_until timestamptz,
  -- Serves what a person wants of a project; and, by its first columns, a project that goes.
  unique nulls not distinct (project_id, person_id, channel_id),
  foreign key (project_id, channel_id) references channels (project_id, id) on delete cascade,
  check (state = 'mute' or mute_until is null)
);

-- Serves a channel that goes.
create index channel_notifications_of_channel on channel_notifications (project_id, channel_id);

-- Serves a person who goes.
create index channel_notifications_of_person on channel_notifications (person_id);

-- Whether a person wants none of a channel's notifications at the moment.
create function is_muted(project uuid, channel uuid, person uuid) returns boolean
language sql stable as $$
  select coalesce((
    select n.state = 'mute'
    from channel_notifications n
    where n.project_id = project and n.person_id = person
      and (n.channel_id = channel or n.channel_id is null)
      and (n.mute_until is null or n.mute_until > now())
    order by n.channel_id nulls last
    limit 1
  ), false)
$$;

-- How many pushes of a channel a person has had lately: beyond ten in 60 seconds they become one that counts the rest.
-- Unlogged: a crash of Postgres forgives all.
create unlogged table push_bursts (
  project_id uuid not null,
  channel_id uuid not null,
  person_id uuid not null,
  -- When the last ten were let through.
  recent timestamptz[] not null,
  -- Since when, and how many the rest are; and when it last became one more.
  burst_at timestamptz,
  collapsed int not null default 0,
  collapsed_at timestamptz,
  -- When the push that counts them is due; null once it is under way.
  summary_at timestamptz,
  touched_at timestamptz not null default now(),
  -- Serves dispatch, and the push that counts.
  primary key (project_id, channel_id, person_id)
);

-- Serves the sweep.
create index push_bursts_of_time on push_bursts (touched_at);

-- As before, and what belongs to notifications.
create or replace function tables_of_projects() returns text[]
language sql immutable as $$
  select array[
    'push_bursts', 'channel_notifications', 'outbox', 'dead_letters', 'deliveries', 'delivery_cursors',
    'webhook_attempts', 'webhook_channels', 'webhooks',
    'events', 'event_counts', 'event_stretches', 'read_marks', 'channels', 'alias_changes', 'aliases', 'identities',
    'idempotency_keys', 'event_logs', 'key_usage', 'rate_windows', 'api_keys'
  ]
$$;
