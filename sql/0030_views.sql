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

-- Adds the views to the tables that are emptied when a project is deleted.
create or replace function list_project_tables() returns text[]
language sql immutable as $$
  select array[
    'view_marks', 'views', 'insight_cards',
    'push_bursts', 'notification_settings', 'outbox', 'dead_letters', 'deliveries', 'withheld_deliveries', 'delivery_cursors',
    'webhook_attempts', 'webhook_channels', 'webhooks',
    'events', 'event_counts', 'event_segments', 'event_tokens', 'search_parts', 'stale_segments', 'search_cursors',
    'read_marks', 'channels', 'alias_changes', 'aliases',
    'user_words', 'unindexed_users', 'identities', 'erasure_names', 'erasures',
    'erased_names', 'erased_users',
    'idempotency_keys', 'event_logs', 'key_usage', 'rate_windows', 'api_keys'
  ]
$$;
