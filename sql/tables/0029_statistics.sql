-- The planner expects one row of every project where most projects have one. Then all indexes that
-- begin with project_id look alike, and the check of a foreign key may read a whole project. The
-- planner expects many rows of a project when it counts with 100 projects.
alter table channels alter column project_id set (n_distinct = 100);
alter table identities alter column project_id set (n_distinct = 100);
