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

-- True for the project with sample data, which an admin can remove without a confirmation.
alter table projects add column is_sample boolean not null default false;

-- An organization has at most one.
create unique index projects_sample on projects (organization_id)
where is_sample and deleted_at is null;
