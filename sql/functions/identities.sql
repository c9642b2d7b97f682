-- Returns the account that makes the changes of the transaction, from its setting tidings.account;
-- null for an application.
create or replace function changing_account() returns uuid
language sql stable
return nullif(current_setting('tidings.account', true), '')::uuid;

-- Adds changes of aliases to the history, and marks their users for the search index. Every writer
-- of aliases calls it, except for an erasure, which leaves no record.
create or replace function record_alias_changes(project uuid, user_ids text[], names text[], changes text[], others text[])
returns void
language plpgsql
as $$
begin
  -- Citus assigns no id by itself.
  insert into alias_changes (project_id, user_id, at, id, alias, change, other, account_id)
  overriding system value
  select
    project, c.user_id, date_trunc('milliseconds', clock_timestamp()),
    nextval(pg_get_serial_sequence('alias_changes', 'id')), c.alias, c.change, c.other, changing_account()
  from unnest(user_ids, names, changes, others) as c (user_id, alias, change, other);
  perform mark_users_of_aliases(project, array(
    select c.user_id from unnest(user_ids, changes) as c (user_id, change) where c.change in ('added', 'moved from')
  ));
  perform forget_words_of_users(project, array(
    select c.user_id from unnest(user_ids, changes) as c (user_id, change) where c.change in ('moved to', 'removed')
  ));
end
$$;

-- Returns the largest number of aliases of a user.
create or replace function max_aliases() returns int
language sql immutable parallel safe
return 1000;

-- Returns the identity with a user_id. The range with its order needs a sort with any index but
-- that of the look-up, which therefore serves it even while the table is empty.
create or replace function identity_of_user(project uuid, name text) returns setof identities
language sql stable as $$
  select i.*
  from identities i
  where i.project_id = project and i.user_id >= name and i.user_id <= name
  order by i.user_id
  limit 1
$$;

-- Returns the identity with an id, found as in identity_of_user.
create or replace function identity_by_id(project uuid, identity_id uuid) returns setof identities
language sql stable as $$
  select i.*
  from identities i
  where i.project_id = project and i.id >= identity_id and i.id <= identity_id
  order by i.id
  limit 1
$$;

-- Returns the aliases of a user_id, found as in identity_of_user.
create or replace function aliases_of_user(project uuid, name text) returns setof aliases
language sql stable as $$
  select a.*
  from aliases a
  where a.project_id = project and a.user_id >= name and a.user_id <= name
  order by a.user_id
$$;

-- Returns how many more aliases a user may have. The caller must have locked the project's log.
create or replace function count_free_aliases(project uuid, owner text) returns int
language sql stable
return max_aliases() - (
  select count(*)::int
  from (
    select from aliases a where a.project_id = project and a.user_id = owner limit max_aliases()
  ) a
);

-- Creates those aliases of `wanted`, a JSON array, that have no owner, until the owner has
-- max_aliases. `response` is the JSON of `aliases` in the response to identify. It has codes in
-- place of reasons, which src/log/identities/identify.ts lists. The caller must have
-- locked the project's log.
create or replace function claim_aliases(
  project uuid, owner text, wanted json, at timestamptz, out response text
)
language plpgsql
as $$
declare
  free int;
  created text[];
begin
  if json_array_length(wanted) = 0 then
    response := '{"created":[]}';
    return;
  end if;
  free := count_free_aliases(project, owner);
  with requested as (
    select a.alias, a.ord, row_number() over (partition by a.alias order by a.ord) as nth
    from json_array_elements_text(wanted) with ordinality as a (alias, ord)
  ), checked as (
    select requested.alias, requested.ord, case
        when requested.nth > 1 then 'repeated'
        when requested.alias = owner then 'own_user_id'
        when i.user_id is not null then 'other_user_id'
        when a.user_id = owner then 'own_alias'
        when a.user_id is not null then 'other_alias'
      end as reason
    from requested
      left join lateral identity_of_user(project, requested.alias) i on true
      left join lateral (
        select a.user_id
        from aliases a
        where a.project_id = project and a.alias >= requested.alias and a.alias <= requested.alias
        order by a.alias
        limit 1
      ) a on true
  ), limited as (
    select c.alias, c.ord, case
        when c.reason is not null then c.reason
        when count(*) filter (where c.reason is null) over (order by c.ord) > free
          then 'too_many'
      end as reason
    from checked c
  )
  select
      array_agg(l.alias order by l.ord) filter (where l.reason is null),
      '{"created":['
        || coalesce(string_agg(to_json(l.alias)::text, ',' order by l.ord) filter (where l.reason is null), '')
        || ']'
        || coalesce(
          ',"failed":[' || string_agg(
            '{"alias":' || to_json(l.alias)::text || ',"reason":' || to_json(l.reason)::text || '}', ','
            order by l.ord
          ) filter (where l.reason is not null) || ']',
          ''
        )
        || '}'
    into created, response
    from limited l;
  if created is not null then
    insert into aliases (project_id, alias, user_id, created_at)
      select project, c.alias, owner, at from unnest(created) as c (alias);
    perform record_alias_changes(
      project, array_fill(owner, array[cardinality(created)]), created,
      array_fill('added'::text, array[cardinality(created)]), array_fill(null::text, array[cardinality(created)])
    );
  end if;
end
$$;

-- Identifies many users, in order. Returns one row for each, with the JSON response, which has the
-- codes of claim_aliases. Returns no row for a deleted project. A null in properties_list keeps the
-- stored properties.
--
-- Like every writer of a project, it locks the project's log first. So one transaction at a time
-- creates keys and aliases. Postgres has parsed the JSON arguments before. The words of users are
-- indexed later (index_users).
--
-- The settings keep the plan from scanning tables. A plan made on small tables would still be used
-- after they have grown.
create or replace function write_identities(
  project_ids uuid[], user_ids text[], ids uuid[], public_ids text[], properties_list json[], alias_lists json[],
  keys text[], fingerprints bytea[], response_tails text[]
) returns table (ord int, outcome text, body text)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  at timestamptz;
  seen record;
  locked uuid;
  alias_names text[];
  identity record;
  aliases_response text;
  running bigint[] := lock_idempotency_keys(project_ids, keys);
begin
  for locked in
    select distinct p.id from unnest(project_ids) with ordinality as p (id, ord) where p.ord <> all(running) order by 1
  loop
    perform from event_logs l where l.project_id = locked for update;
  end loop;

  for n in 1 .. cardinality(project_ids) loop
    ord := n;
    if n = any(running) then
      outcome := 'running';
      body := null;
      return next;
      continue;
    end if;
    continue when not exists (select from event_logs l where l.project_id = project_ids[n]);
    at := date_trunc('milliseconds', clock_timestamp());

    if keys[n] is not null then
      -- The order keeps the plan from reading all keys by their expiry.
      select f.fingerprint, f.body into seen
        from (
          select k.fingerprint, k.body, k.expires_at
          from idempotency_keys k
          where k.project_id = project_ids[n] and k.key >= keys[n] and k.key <= keys[n]
          order by k.key
          limit 1
        ) f
        where f.expires_at > at;
      if found then
        outcome := case when seen.fingerprint = fingerprints[n] then 'replayed' else 'reused' end;
        body := seen.body;
        return next;
        continue;
      end if;
    end if;

    insert into identities as i (project_id, user_id, id, public_id, properties, created_at, updated_at)
      values (
        project_ids[n], user_ids[n], ids[n], public_ids[n], coalesce(properties_list[n], '{}'), at, at
      )
      on conflict (project_id, user_id) do update set
        properties = coalesce(properties_list[n], i.properties),
        updated_at = greatest(at, next_millisecond(i.updated_at))
      returning i.id, i.public_id, i.properties, i.updated_at into identity;
    if properties_list[n] is not null or identity.id = ids[n] then
      perform mark_changed_user(project_ids[n], identity.id, identity.updated_at);
    end if;

    aliases_response := claim_aliases(project_ids[n], user_ids[n], alias_lists[n], at);

    outcome := 'done';
    body := '{"success":true,"data":{"id":"' || identity.public_id
      || '","userId":' || to_json(user_ids[n])::text
      || ',"properties":' || identity.properties::text
      || ',"aliases":' || aliases_response
      || ',"updatedAt":"' || to_iso(identity.updated_at)
      || '"}' || response_tails[n];

    if keys[n] is not null then
      alias_names := array(select json_array_elements_text(alias_lists[n]));
      insert into idempotency_keys as k (
          project_id, key, fingerprint, status, user_id, other_names, body, expires_at
        )
        values (
          project_ids[n], keys[n], fingerprints[n], 200, user_ids[n],
          nullif(alias_names, '{}'), body, at + interval '24 hours'
        )
        on conflict (project_id, key) do update set
          fingerprint = excluded.fingerprint, status = excluded.status, user_id = excluded.user_id,
          other_names = excluded.other_names, seq = null, body = excluded.body, expires_at = excluded.expires_at;
    end if;
    return next;
  end loop;
end
$$;

-- Returns the user_id that a name refers to: that of an identity, or that of an alias's owner. Null
-- if it is neither.
create or replace function user_of_name(project uuid, name text) returns text
language sql stable
return coalesce(
  (
    select i.user_id
    from identities i
    where i.project_id = project and i.user_id >= name and i.user_id <= name
    order by i.user_id
    limit 1
  ),
  (
    select a.user_id
    from aliases a
    where a.project_id = project and a.alias >= name and a.alias <= name
    order by a.alias
    limit 1
  )
);

-- Returns all names of the user that an event refers to: the reference, the user_id, the names in
-- the properties, and the aliases.
create or replace function all_names_of_user(project uuid, reference text) returns text[]
language sql stable
as $$
  select reference || coalesce(u.names, '{}')
  from (select user_of_name(project, reference) as user_id offset 0) r
    left join lateral (
      select i.user_id || names_in_properties(i.properties) || array(
          select a.alias
          from aliases a
          where a.project_id = project and a.user_id >= i.user_id and a.user_id <= i.user_id
          order by a.user_id
        ) as names
      from identities i
      where i.project_id = project and i.user_id >= r.user_id and i.user_id <= r.user_id
      order by i.user_id
      limit 1
    ) u on true
$$;

-- Returns the names by which events can refer to a user: the user_id and its aliases. An alias that
-- equals another user's user_id refers to that user instead. For a name that is only an alias, the
-- result is empty.
create or replace function names_of_user(project uuid, name text) returns text[]
language sql stable
return case
  when coalesce(user_of_name(project, name), name) = name then array[name] || array(
    select a.alias
    from aliases_of_user(project, name) a
    where not exists (select from identity_of_user(project, a.alias))
  )
  else '{}'
end;
