-- Users with words by former rules are now in unindexed_users. Servers of 0.3.0 also write
-- users_indexed_to, so the next version drops it.
insert into unindexed_users (project_id, id, changed_at)
select i.project_id, i.id, i.updated_at
from identities i
  join projects p on p.id = i.project_id
where p.users_indexed_to is not null and i.id > p.users_indexed_to
on conflict do nothing;
