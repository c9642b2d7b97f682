-- No released server has an archive.
-- Oldest server: 0.2.0

-- One row is a file that `tidings export` wrote, of a project and a month (UTC) of created_at.
create table exports (
  project_id uuid not null references projects (id) on delete cascade,
  -- Its path in the folder of exports.
  name text not null,
  month date not null,
  events bigint not null,
  -- The part of the log that it covers. It is 0 for a file of the former archive.
  first_seq bigint not null,
  last_seq bigint not null,
  -- True if events of it are deleted from the log, so that nothing tells whose they were.
  has_deleted boolean not null default false,
  primary key (project_id, name)
);

-- Serves the last exported seq of a project.
create index exports_of_log on exports (project_id, last_seq);

-- Owners of an archive keep its files, which erasures name as they name exported ones.
insert into exports (project_id, name, month, events, first_seq, last_seq, has_deleted)
  select f.project_id, f.name, f.month, f.events, 0, 0, true
  from archive_files f
    join projects p on p.id = f.project_id
  where f.state = 'current';

-- The months (such as 2026-05) whose exported files can name the user.
alter table erased_users add column exported_months text[] not null default '{}';

drop table archive_files, archive_runs;
