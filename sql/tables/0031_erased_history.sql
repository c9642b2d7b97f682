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
