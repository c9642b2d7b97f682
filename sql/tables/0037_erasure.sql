-- Servers of 0.2.0 find the names of an erasure by the user, as before.
-- Oldest server: 0.2.0
-- It is the last file: the functions of 0.2.0 cannot begin an erasure after it.

-- A user who comes back during an erasure can be erased again. So a user can have several erasures
-- in progress. They run in the order of last_change.
alter table erasure_names add column erasure_id uuid;
update erasure_names n set erasure_id = e.id
  from erasures e
  where e.project_id = n.project_id and e.user_id = n.user_id;
alter table erasure_names drop constraint erasure_names_project_id_user_id_fkey;
alter table erasure_names drop constraint erasure_names_pkey;
alter table erasures drop constraint erasures_pkey;
alter table erasures add primary key (project_id, id);
alter table erasure_names add primary key (project_id, erasure_id, name);
alter table erasure_names add foreign key (project_id, erasure_id) references erasures (project_id, id);

-- Serves the steps of an erasure.
create index erasures_of_user on erasures (project_id, user_id);

-- A new project has no users with words by former rules, because the functions of this version come
-- with this file.
alter table projects alter column users_indexed_to drop default;
