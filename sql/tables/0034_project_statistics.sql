-- Plans alone change, so servers of 0.2.0 work.
-- Oldest server: 0.2.0

-- The planner expects one event of a project that is not among the most common ones. Then all
-- indexes that begin with project_id look alike, and the look-up of an event may read its whole
-- project. Without statistics, the planner expects a 200th of the table, and a part of it for a
-- range of seq. Those of seq say nothing of one project.
alter table events alter column project_id set statistics 0, alter column seq set statistics 0;

-- Statistics of before stay, unless Postgres can clear them (18).
do $$
begin
  if to_regproc('pg_catalog.pg_clear_attribute_stats') is not null then
    execute 'select pg_clear_attribute_stats(current_schema()::text, ''events'', n, false) from unnest(array[''project_id'', ''seq'']) as n';
  end if;
end
$$;
