-- Returns the names of a user in its properties: those that are shown for it, and the e-mail
-- address.
create or replace function names_in_properties(properties json) returns text[]
language sql immutable parallel safe as $$
  with texts as (
    select k.n, trim(properties ->> k.key) as value
    from unnest(array[
      'name', 'fullName', 'full_name', 'displayName', 'display_name', '$name', 'email',
      'firstName', 'first_name', 'lastName', 'last_name'
    ]) with ordinality as k (key, n)
    where json_typeof(properties -> k.key) = 'string'
  )
  select array(select t.value from texts t where t.n <= 7)
    || (select string_agg(t.value, ' ' order by t.n) from texts t where t.n > 7 and t.value <> '')
$$;

-- Returns how events refer to the users of a project who have a name with this beginning, a folded
-- text: a user_id, an alias, a name or an e-mail address. References that begin so themselves are
-- left out, because they can also be those of users who were never identified. Returns null if
-- 10,000 users may have such a name, or if they have so many references.
create or replace function references_of_beginning(project uuid, beginning text) returns text[]
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  candidates uuid[];
  reached uuid;
  found text[];
begin
  select f.ids, f.reached into candidates, reached
    from search_users(project, regexp_split_to_array(beginning, '\s+'), null, 10000, 3000) f;
  if cardinality(candidates) >= 10000 or reached is not null then
    return null;
  end if;
  found := array(
    select r.reference
    from unnest(candidates) as c (id)
      cross join lateral (
        select i.*
        from identities i
        where i.project_id = project and i.id between c.id and c.id
        order by i.id
        limit 1
      ) i
      cross join lateral (
        select array(
          select a.alias
          from aliases a
          where a.project_id = i.project_id and a.user_id between i.user_id and i.user_id
          order by a.user_id
        ) as names
      ) a
      cross join lateral unnest(i.user_id || a.names) as r (reference)
    where exists (
        select
        from unnest(i.user_id || a.names || names_in_properties(i.properties)) as n (name)
        where starts_with(fold_text(n.name), beginning)
      )
      and not starts_with(fold_text(r.reference), beginning)
      -- An alias that equals another user's user_id refers to that user instead.
      and (r.reference = i.user_id or not exists (
        select from identities o where o.project_id = project and o.user_id = r.reference
      ))
    limit 10000
  );
  return case when cardinality(found) < 10000 then found end;
end
$$;
