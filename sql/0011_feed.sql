-- What there is once in an installation: one row. Cursors mean something within one epoch alone: a database that goes on
-- from an earlier state, as after a restore, needs a new one.
create table installation (
  is_only boolean primary key default true check (is_only),
  epoch uuid not null default gen_random_uuid()
);
insert into installation default values;

-- For whoever restores: whatever clients remember of the log is from another life.
create function renew_epoch() returns uuid
language sql as $$
  update installation set epoch = gen_random_uuid() returning epoch
$$;

-- The last seq that retention has taken out of the log, 0 while it has taken none: whoever cuts moves it in the same
-- transaction, with the row locked. A reader with an earlier cursor has missed something; one that meets a hole behind
-- it has not, because there somebody deleted an event.
alter table event_logs add column cut_seq bigint not null default 0;
