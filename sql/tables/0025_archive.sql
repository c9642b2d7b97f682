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
