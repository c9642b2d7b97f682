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
