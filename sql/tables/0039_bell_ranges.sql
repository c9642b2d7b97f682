-- One row is a range of a log, after from_seq, whose events are still to be matched with the views
-- that have a bell: with all of the project, or with one whose matching has failed before.
create table bell_ranges (
  project_id uuid not null,
  id uuid not null default gen_random_uuid(),
  view_id uuid,
  from_seq bigint not null,
  to_seq bigint not null,
  failures int not null default 0,
  primary key (project_id, id),
  foreign key (project_id, view_id) references views on delete cascade
);

-- Serves the deletion of a view.
create index bell_ranges_of_view on bell_ranges (project_id, view_id);
