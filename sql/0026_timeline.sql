-- The only row is the timeline of Postgres on which the current epoch is valid. Each promotion of a
-- standby begins a timeline. A server that finds a later one checks that no event was lost.
create table epoch_timeline (
  singleton boolean primary key default true check (singleton),
  timeline int not null
);
