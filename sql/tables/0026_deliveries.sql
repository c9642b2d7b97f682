-- The constraints that this drops have no effect on servers of 0.2.0.
-- Oldest server: 0.2.0

-- insert_webhook_attempts locks the webhooks of attempts, which proves once that they exist.
alter table webhook_attempts drop constraint if exists webhook_attempts_project_id_webhook_id_fkey;

-- webhook_attempts_of_webhook finds an attempt, too. The ids are random, and only inserted once.
alter table webhook_attempts drop constraint if exists webhook_attempts_pkey;

-- webhook_attempts_of_event serves recovery as well. An event has few attempts.
drop index if exists webhook_attempts_delivered;

-- reap removes these rows before their project. A row that is written meanwhile is found by its
-- next step, or cancelled by the next claim.
alter table outbox drop constraint if exists outbox_project_id_fkey;
alter table deliveries drop constraint if exists deliveries_project_id_fkey;

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
