-- Plans alone change, so servers of 0.2.0 work.
-- Oldest server: 0.2.0

-- As for events (0034), the planner expects one row of a project that is not among the most common
-- ones. Then the look-up of a row, or the check of a foreign key, may read its whole project in
-- another index. Without statistics, the planner expects a 200th of the table for a project. The
-- number of distinct projects, which 0029 gave, did not help where the statistics name all of them.
alter table channels alter column project_id reset (n_distinct), alter column project_id set statistics 0;
alter table identities alter column project_id reset (n_distinct), alter column project_id set statistics 0;
alter table aliases alter column project_id set statistics 0, alter column user_id set statistics 0;
alter table idempotency_keys alter column project_id set statistics 0;
alter table webhook_attempts alter column project_id set statistics 0;
alter table dead_letters alter column project_id set statistics 0;

-- Statistics of before stay, unless Postgres can clear them (18).
do $$
begin
  if to_regproc('pg_catalog.pg_clear_attribute_stats') is not null then
    execute 'select pg_clear_attribute_stats(current_schema()::text, c.tab, c.col, false) from (values (''channels'', ''project_id''), (''identities'', ''project_id''), (''aliases'', ''project_id''), (''aliases'', ''user_id''), (''idempotency_keys'', ''project_id''), (''webhook_attempts'', ''project_id''), (''dead_letters'', ''project_id'')) as c (tab, col)';
  end if;
end
$$;
