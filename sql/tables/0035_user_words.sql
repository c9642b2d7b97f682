-- Servers of 0.2.0 search users by a function, which reads other indexes from now on.
-- Oldest server: 0.2.0

-- Users up to this id have words by the present rules, as functions of this version make them. Null
-- if all have. Searches read every user of the project until then.
alter table projects add column users_indexed_to uuid default '00000000-0000-0000-0000-000000000000';

-- Serves the indexer.
create index projects_with_former_users on projects (id) where users_indexed_to is not null;

-- The words of a user also have the user_id and the aliases. These indexes folded them by the
-- locale of the database.
drop index identities_of_name;
drop index aliases_of_name;
