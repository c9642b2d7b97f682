-- Threads: events that are updates of one thing.

-- Written by append_batch alone: a constraint would scan the table. A thread_seq is the seq of the
-- event that opened the event's generation of its thread. A state is 0 resolved, 1 succeeded,
-- 2 running, 3 firing or 4 failed. Telling is how members are told: null aloud, 1 silently in place
-- of the last notification, 2 not, because the thread was not open, 3 not, because it is part of a
-- storm, 4 for the storm, and 5 for the storm after 30 seconds.
alter table events
  add column thread text, add column state smallint, add column thread_seq bigint, add column telling smallint;

-- One row is a generation of a thread with visible events: its first event opened it, and one that
-- is resolved, succeeded or failed ended it. Only a transaction that has locked the project's log
-- writes it.
create table threads (
  project_id uuid not null,
  thread_seq bigint not null,
  channel_id uuid not null,
  key text collate "C" not null,
  -- The last event, its state, and its level as in events.
  last_seq bigint not null,
  state smallint,
  level smallint,
  -- How urgent an open thread is; null if it is not open. Only the newest generation of a key is.
  severity smallint,
  count bigint not null,
  -- When its first and last events occurred.
  opened_at timestamptz not null,
  updated_at timestamptz not null,
  -- The last event of which members were told aloud.
  loud_seq bigint,
  -- When a firing thread of the key was last told at once, and its level then.
  told_at timestamptz,
  told_level smallint,
  -- The storm that it is part of.
  storm_seq bigint,
  primary key (project_id, thread_seq)
) with (fillfactor = 70);

-- Serves the append, and the generations of a key.
create index threads_of_key on threads (project_id, channel_id, key, thread_seq);

-- Serves the list of open threads, worst first.
create index threads_open on threads (project_id, severity desc, thread_seq) where severity is not null;

-- Serves the storms.
create index threads_of_storm on threads (project_id, storm_seq, severity) where storm_seq is not null;

-- One row is a visible event of a generation. Serves its history.
create table thread_events (
  project_id uuid not null,
  thread_seq bigint not null,
  seq bigint not null,
  primary key (project_id, thread_seq, seq)
);

-- One row is a channel in which threads have begun to fire. Only a transaction that has locked the
-- project's log writes it.
create table storms (
  project_id uuid not null,
  channel_id uuid not null,
  -- The threads that began to fire in the last 30 seconds, and when: the last one of each key. A
  -- storm needs five of them.
  seqs bigint[] not null,
  ats timestamptz[] not null,
  -- When the last thread joined the storm. Null without a storm: the rest has no meaning then.
  last_at timestamptz,
  -- The thread that made the storm, which is named by it.
  storm_seq bigint not null,
  -- The highest level of its threads.
  level smallint not null,
  -- The level of the last one that speaks after 30 seconds, and until when it speaks for others.
  speaks_level smallint not null,
  speaks_at timestamptz not null,
  primary key (project_id, channel_id),
  foreign key (project_id, channel_id) references channels on delete cascade
);
