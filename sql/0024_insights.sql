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

-- Adds the cards to the tables that are emptied when a project is deleted.
create or replace function list_project_tables() returns text[]
language sql immutable as $$
  select array[
    'insight_cards',
    'push_bursts', 'notification_settings', 'outbox', 'dead_letters', 'deliveries', 'withheld_deliveries', 'delivery_cursors',
    'webhook_attempts', 'webhook_channels', 'webhooks',
    'events', 'event_counts', 'event_segments', 'event_tokens', 'search_parts', 'stale_segments', 'search_cursors',
    'read_marks', 'channels', 'alias_changes', 'aliases',
    'user_words', 'unindexed_users', 'identities', 'erasure_names', 'erasures',
    'erased_names', 'erased_users',
    'idempotency_keys', 'event_logs', 'key_usage', 'rate_windows', 'api_keys'
  ]
$$;
