-- Servers of 0.2.0 find the names of an erasure by the user, as before.
-- Oldest server: 0.2.0

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

-- Erasures of two users at once left changes of aliases. Only an erasure deletes an identity, so
-- changes of a user without one are of an erased user.
delete from alias_changes h
where not exists (
  select from identities i where i.project_id = h.project_id and i.user_id = h.user_id
);
update alias_changes h set other = null
where h.other is not null and not exists (
  select from identities i where i.project_id = h.project_id and i.user_id = h.other
);

-- The same for a user with the same name, who came after the erasure.
delete from alias_changes h
using identities i
where i.project_id = h.project_id and i.user_id = h.user_id and h.at < i.created_at
  and exists (
    select from erased_users u
    where u.project_id = h.project_id and u.erased_at between h.at and i.created_at
  );
update alias_changes h set other = null
from identities i
where i.project_id = h.project_id and i.user_id = h.other and h.at < i.created_at
  and exists (
    select from erased_users u
    where u.project_id = h.project_id and u.erased_at between h.at and i.created_at
  );

-- An alias that nobody has was removed, or else its last owner was erased.
delete from alias_changes h
using (
  select distinct on (c.project_id, c.alias) c.project_id, c.alias, c.change
  from alias_changes c
  order by c.project_id, c.alias, c.id desc
) last
where h.project_id = last.project_id and h.alias = last.alias and last.change <> 'removed'
  and not exists (select from aliases a where a.project_id = h.project_id and a.alias = h.alias)
  and not exists (select from identities i where i.project_id = h.project_id and i.user_id = h.alias);
