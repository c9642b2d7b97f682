-- One row is a channel of a project's events. slug identifies it and never changes. name is its
-- display name.
create table channels (
  project_id uuid not null references projects,
  id uuid not null,
  public_id text not null,
  slug text not null,
  name text not null,
  icon text,
  description text,
  -- An archived channel accepts events, but sends no notifications.
  is_archived boolean not null default false,
  -- The days for which events are kept; null uses the project's setting.
  keep_days int check (keep_days > 0),
  created_at timestamptz not null,
  primary key (project_id, id),
  unique (project_id, slug)
);

-- One row is a user whom an application has identified. Every identify advances updated_at.
create table identities (
  project_id uuid not null references projects,
  user_id text not null,
  id uuid not null,
  public_id text not null,
  -- json, not jsonb: stored and returned as it was sent.
  properties json not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (project_id, user_id),
  unique (project_id, id)
);

-- One row is another name of a user. Within its project, an alias has exactly one owner.
create table aliases (
  project_id uuid not null,
  alias text not null,
  user_id text not null,
  created_at timestamptz not null,
  primary key (project_id, alias),
  foreign key (project_id, user_id) references identities (project_id, user_id) on delete cascade
);

-- Serves the list of a user's aliases, and erasure.
create index aliases_of_identity on aliases (project_id, user_id);

-- One row is a change of a user's alias. For 'moved from' and 'moved to', other is the other user's
-- user_id.
create table alias_changes (
  project_id uuid not null references projects,
  user_id text not null,
  at timestamptz not null,
  id bigint generated always as identity,
  alias text not null,
  change text not null check (change in ('added', 'removed', 'moved from', 'moved to')),
  other text,
  -- The account that made the change in the dashboard; null for an application.
  account_id uuid references accounts on delete set null,
  -- Serves a user's history, newest first.
  primary key (project_id, user_id, at, id)
);

-- Serves erasure: finds the earlier owners of an alias.
create index alias_changes_of_alias on alias_changes (project_id, alias);

-- Serves erasure: finds the few changes that name another user.
create index alias_changes_of_other on alias_changes (project_id, other) where other is not null;

-- Serves the deletion of an account.
create index alias_changes_of_account on alias_changes (account_id) where account_id is not null;

-- One row is the head of a project's log. Every writer of the project locks it first. So seq is
-- dense and in commit order, and one transaction at a time writes the project's channels, aliases
-- and idempotency keys.
create table event_logs (
  project_id uuid primary key references projects,
  last_seq bigint not null default 0,
  -- The last seq that retention has deleted; 0 for none. A reader with an earlier cursor has missed
  -- events. A missing seq after it is an event that a member deleted.
  expired_seq bigint not null default 0
) with (fillfactor = 50);

-- One row is an event. user_ref is the user_id or alias as it was sent. Reads resolve it.
create table events (
  project_id uuid not null,
  id uuid not null,
  channel_id uuid not null,
  seq bigint not null check (seq > 0),
  occurred_at timestamptz not null,
  created_at timestamptz not null,
  title text not null,
  description text,
  icon text,
  tags text[] not null,
  -- json, not jsonb: stored and returned as it was sent.
  metadata json not null,
  user_ref text,
  source text not null,
  notify boolean not null,
  -- A deleted event is hidden from every read at once. It is purged later.
  deleted_at timestamptz,
  -- Serves every reader of the log.
  primary key (project_id, seq),
  -- Serves the lookup of an event by its id.
  unique (project_id, id)
  -- A foreign key to the channel would cost each event a lookup. Every visible event has a row in
  -- event_counts, whose foreign key ensures the same.
);

-- Serves the list of a channel's events.
create index events_of_channel on events (project_id, channel_id, seq);

-- Serves the list of a user's events, and erasure.
create index events_of_user on events (project_id, user_ref, seq) where user_ref is not null;

-- Serves the filters from and to.
create index events_of_time on events (project_id, occurred_at);

-- Serves the purge of deleted events.
create index events_deleted on events (deleted_at) where deleted_at is not null;

-- One row is the number of a channel's events within an hour (UTC), without deleted events. It is
-- exact: only a transaction that has locked the project's log writes it.
create table event_counts (
  project_id uuid not null,
  hour timestamptz not null,
  channel_id uuid not null,
  n bigint not null check (n > 0),
  -- Serves histograms by the hour and today's counts.
  primary key (project_id, hour, channel_id),
  foreign key (project_id, channel_id) references channels (project_id, id)
) with (fillfactor = 70);

-- One row is a segment of a log, with 4,096 seqs, and the bounds of its events' occurred_at in
-- whole hours. A list with a time range reads only the segments that can match. Bounds stay when
-- events are deleted.
create table event_segments (
  project_id uuid not null references projects,
  segment bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  primary key (project_id, segment)
);

-- One row is the progress of the indexer in a project's log: the search index has all events up to
-- seq. The events after it are the tail, which a search reads from the log. A project without a row
-- is not indexed yet.
create table search_cursors (
  project_id uuid primary key references projects,
  seq bigint not null default 0
) with (fillfactor = 50);

-- One row is a part of the search index. It covers the events from first_seq to last_seq, in one
-- segment of 4,096 seqs, as in event_segments. Parts do not overlap, and reach up to the cursor. A
-- complete segment is one part, unless its texts are long.
create table search_parts (
  project_id uuid not null,
  first_seq bigint not null,
  last_seq bigint not null,
  -- The number of the rules by which it has words: search_rules(). The indexer indexes parts of
  -- former rules anew.
  rules smallint not null default 1,
  primary key (project_id, first_seq)
);

-- One row is a range of tokens of a part, and the events that have them. A token is a word, a tag,
-- a source or a channel. The range reaches from first_token to the first_token of the next row. An
-- event is stored as its offset from first_seq, and can be deleted since. A row has one of two
-- forms:
--   * Up to 64 tokens. `counts` has the number of offsets of each, and `offsets` has all of them.
--   * One token with more than 256 offsets, as bits.
create table event_tokens (
  project_id uuid not null,
  first_seq bigint not null,
  first_token text collate "C" not null,
  tokens text[] collate "C",
  counts smallint[],
  offsets smallint[],
  bits bit(4096),
  primary key (project_id, first_seq, first_token),
  check (num_nonnulls(tokens, counts, offsets) = case when bits is null then 3 else 0 end)
);

-- One row is a segment whose parts may name deleted events. The indexer indexes it anew, but not
-- at once, because more deletions often follow. first_at and last_at are the times of deletions.
create table stale_segments (
  project_id uuid not null references projects,
  segment bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  primary key (project_id, segment)
);

-- One row is how far an account has read a channel. A null channel_id means all channels. The later
-- of the two marks applies.
create table read_marks (
  account_id uuid not null references accounts on delete cascade,
  project_id uuid not null references projects on delete cascade,
  channel_id uuid,
  seq bigint not null check (seq >= 0),
  -- Serves the unread counts and, by its first columns, the deletion of a project or channel.
  unique nulls not distinct (project_id, channel_id, account_id),
  foreign key (project_id, channel_id) references channels (project_id, id) on delete cascade
);

-- Serves the deletion of an account.
create index read_marks_of_account on read_marks (account_id);

-- One row has the search words of a user's properties, or of former ones (unindexed_users).
create table user_words (
  project_id uuid not null,
  id uuid not null,
  words tsvector not null,
  primary key (project_id, id),
  foreign key (project_id, id) references identities (project_id, id) on delete cascade
);

-- One row is a change of a user's properties that user_words does not have yet.
create table unindexed_users (
  project_id uuid not null,
  id uuid not null,
  -- The updated_at of the identity.
  changed_at timestamptz not null,
  primary key (project_id, id, changed_at),
  foreign key (project_id, id) references identities (project_id, id) on delete cascade
);

-- Serves the search for users by words in their properties. The pending list of new rows is short,
-- because every search reads it.
create index user_words_of_words on user_words using gin (words) with (gin_pending_list_limit = 64);

-- The only row is the key of the hashes in erased_names, sealed. It outlives a rotation of
-- APP_SECRET, and is part of every backup.
create table erasure_keys (
  id uuid primary key,
  singleton boolean not null default true unique check (singleton),
  sealed text not null
);

-- One row is an erasure, also after its end.
create table erased_users (
  id uuid primary key,
  project_id uuid not null references projects,
  erased_at timestamptz not null,
  -- The API key that asked for it; null for a member.
  key_id uuid,
  -- The number of events from which the user was removed so far.
  events bigint not null default 0
);

-- Serves the deletion of a project.
create index erased_users_of_project on erased_users (project_id);

-- One row is a name of an erased user, as an HMAC. A restore of an older backup erases the user
-- again.
create table erased_names (
  project_id uuid not null references projects,
  hash bytea not null check (octet_length(hash) = 32),
  erased_user_id uuid not null references erased_users on delete cascade,
  -- False for an alias.
  is_user_id boolean not null,
  -- Serves the question whether a user was erased.
  primary key (project_id, hash, erased_user_id)
);

-- Serves the list of an erasure's names.
create index erased_names_of_user on erased_names (erased_user_id);

-- One row is an erasure in progress. The erasure deletes the identity first, and then works through
-- all names of the user, in small transactions. Every process can continue it. A user who comes
-- back meanwhile can be erased again. Erasures of a user run in the order of last_change.
create table erasures (
  -- The id in erased_users.
  id uuid not null default gen_random_uuid(),
  project_id uuid not null references projects,
  user_id text not null,
  -- The public id of the identity; null for a user known only from events.
  identity_id text,
  -- The remaining work begins with this stage; later ones follow in this order.
  stage text not null default 'aliases' check (stage in ('aliases', 'responses', 'other responses', 'history', 'events', 'names')),
  -- The names or Idempotency-Keys up to this one are done in this stage.
  done_to text not null default '',
  -- Events and alias changes after these are of a later user with the same name. Null while the
  -- identity exists.
  last_seq bigint,
  last_change bigint,
  -- The number of events so far.
  events bigint not null default 0,
  -- For the audit log; null for an application.
  author json,
  touched_at timestamptz not null default now(),
  primary key (project_id, id)
);

-- Serves the steps of an erasure.
create index erasures_of_user on erasures (project_id, user_id);

-- Serves the search for erasures that no process works on.
create index erasures_of_time on erasures (touched_at);

-- One row is a name of a user whose erasure is in progress.
create table erasure_names (
  project_id uuid not null,
  user_id text not null,
  name text not null,
  -- True once erased_names has it.
  is_listed boolean not null default false,
  erasure_id uuid,
  primary key (project_id, erasure_id, name),
  foreign key (project_id, erasure_id) references erasures (project_id, id)
);

-- One row is a card on the board of a project's insights. A board has up to 12 cards, whose
-- positions are 1, 2, 3 … without holes.
create table insight_cards (
  project_id uuid not null references projects,
  id uuid not null,
  position smallint not null check (position between 1 and 12),
  kind text not null check (kind in ('series', 'number', 'top', 'table')),
  -- The field whose values are counted.
  group_by text check (group_by in ('channel', 'tag', 'user', 'source', 'metadata')),
  -- The path of the counted value in the metadata, such as `order.plan`.
  metadata_path text,
  -- The search that events must match, in the language of the search box.
  search text not null,
  hours int not null check (hours > 0),
  -- Null for the title that the dashboard makes from the other columns.
  title text,
  created_at timestamptz not null default now(),
  primary key (project_id, id),
  -- Deferrable, so that one statement can move several cards.
  unique (project_id, position) deferrable,
  check ((kind in ('top', 'table')) = (group_by is not null)),
  check ((group_by is not distinct from 'metadata') = (metadata_path is not null))
);

-- One row is a saved search of a project. Without an account, all members share it.
create table views (
  project_id uuid not null references projects,
  id uuid not null,
  account_id uuid references accounts on delete cascade,
  name text not null,
  -- In the language of the search box.
  search text not null,
  -- The head of the log when it was created. Earlier events are not new to anybody.
  created_seq bigint not null,
  created_at timestamptz not null default now(),
  primary key (project_id, id)
);

-- Serves the deletion of an account.
create index views_of_account on views (account_id) where account_id is not null;

-- One row is how far an account has seen the events of a view.
create table view_marks (
  project_id uuid not null,
  view_id uuid not null,
  account_id uuid not null references accounts on delete cascade,
  seq bigint not null check (seq >= 0),
  primary key (project_id, view_id, account_id),
  foreign key (project_id, view_id) references views on delete cascade
);

-- Serves the deletion of an account.
create index view_marks_of_account on view_marks (account_id);

-- One row is a view of whose matches an account is notified, also in muted channels.
create table view_bells (
  project_id uuid not null,
  view_id uuid not null,
  account_id uuid not null references accounts on delete cascade,
  -- Serves the dispatch and, by its first columns, the deletion of a view.
  primary key (project_id, view_id, account_id),
  foreign key (project_id, view_id) references views on delete cascade
);

-- Serves the deletion of an account.
create index view_bells_of_account on view_bells (account_id);

-- One row is an event in a muted channel of which an account is notified, and the view that it
-- matches. The sender reads it.
create table view_pushes (
  project_id uuid not null,
  event_id uuid not null,
  account_id uuid not null,
  view_id uuid not null,
  created_at timestamptz not null default now(),
  primary key (project_id, event_id, account_id)
);

-- Serves the sweep of old rows.
create index view_pushes_of_time on view_pushes (created_at);

-- One row is a file of the archive. A project has one current file for a month (UTC) of created_at.
create table archive_files (
  id uuid primary key,
  -- No foreign key: the row is needed until the file is deleted, after the project.
  project_id uuid not null,
  month date not null,
  -- Its path in the archive.
  name text not null unique,
  -- The row is 'writing' before the file exists, so that a crash leaves no unknown file. An
  -- 'obsolete' file waits for its deletion. A 'missing' file was not found in the archive.
  state text not null check (state in ('writing', 'current', 'obsolete', 'missing')),
  -- Users who were erased before this time are not in the file.
  checked_at timestamptz not null,
  -- When events were added last.
  written_at timestamptz not null,
  events bigint not null default 0,
  bytes bigint not null default 0,
  sha256 bytea check (octet_length(sha256) = 32),
  -- The number of events, from the start of the file, whose rows have been deleted.
  deleted bigint not null default 0,
  -- The seqs of events that a member deleted after the file was written. The file has to be
  -- written again without them.
  dropped bigint[] not null default '{}',
  -- The seqs of events that had lost their user before their rows were deleted. The erasure has
  -- counted them.
  counted bigint[] not null default '{}',
  check (state <> 'current' or sha256 is not null)
);

-- Serves the look-up of a month's file.
create unique index archive_files_current on archive_files (project_id, month) where state = 'current';

-- The only row is the last run of the archive.
create table archive_runs (
  singleton boolean primary key default true check (singleton),
  -- Also in a file of the archive, so that no other place is taken for it.
  archive_id uuid not null default gen_random_uuid(),
  attempted_at timestamptz not null,
  succeeded_at timestamptz,
  -- Why the last run failed. Null if it did not.
  problem text
);

-- The planner expects one row of a project that is not among the most common ones. Then all indexes
-- that begin with project_id look alike, and the look-up of a row, or the check of a foreign key,
-- may read its whole project. Without statistics, it expects a 200th of the table for a project,
-- and a part of it for a range of seq. Those of seq say nothing of one project.
alter table events alter column project_id set statistics 0, alter column seq set statistics 0;
alter table channels alter column project_id set statistics 0;
alter table identities alter column project_id set statistics 0;
alter table aliases alter column project_id set statistics 0, alter column user_id set statistics 0;
alter table idempotency_keys alter column project_id set statistics 0;
