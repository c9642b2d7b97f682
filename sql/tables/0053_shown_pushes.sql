-- Oldest server: 0.3.0

-- One row is a notification that a device was sent in the last day: the last one of its tag.
create table shown_pushes (
  project_id uuid not null,
  target_id uuid not null references push_subscriptions on delete cascade,
  tag text not null,
  channel_id uuid not null,
  seq bigint not null,
  -- The thread_seq or the seq of what it is about; null for a burst or a storm.
  about_seq bigint,
  at timestamptz not null,
  -- True if its event was opened.
  is_opened boolean not null default false,
  -- Serves the deletion of a project.
  primary key (project_id, target_id, tag)
);

-- Serves the badge of a device.
create index shown_pushes_of_target on shown_pushes (target_id, at);

-- Attempts to say that an event was acknowledged. A check that is not valid yet needs no scan.
alter table webhook_attempts drop constraint webhook_attempts_kind_check,
  add constraint webhook_attempts_kind_check
    check (kind in ('event.created', 'event.acknowledged', 'audit.entry', 'webhook.test')) not valid;
