-- Records changes of aliases on Citus, whose distributed tables have no triggers. Elsewhere the
-- triggers of aliases record them, and this does nothing.
create function record_alias_changes(project uuid, user_ids text[], names text[], changes text[], others text[])
returns void
language plpgsql as $$
begin
end
$$;

-- Creates those aliases of `wanted`, a JSON array, that have no owner, until the owner has
-- max_aliases. `response` is the JSON of `aliases` in the response to identify. The caller must
-- have locked the project's log.
create or replace function claim_aliases(
  project uuid, owner text, wanted json, at timestamptz, out response text
)
language plpgsql as $$
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
        when requested.nth > 1 then 'Repeated in this request'
        when requested.alias = owner then 'Equals this user''s own user_id'
        when i.user_id is not null then 'Equals another user''s user_id'
        when a.user_id = owner then 'Already an alias of this user'
        when a.user_id is not null then 'Already an alias of another user'
      end as reason
    from requested
      left join lateral (
        select i.user_id
        from identities i where i.project_id = project and i.user_id = requested.alias limit 1
      ) i on true
      left join lateral (
        select a.user_id
        from aliases a where a.project_id = project and a.alias = requested.alias limit 1
      ) a on true
  ), limited as (
    select c.alias, c.ord, case
        when c.reason is not null then c.reason
        when count(*) filter (where c.reason is null) over (order by c.ord) > free
          then 'This user already has ' || to_char(max_aliases(), 'FM9,999') || ' aliases'
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

-- Returns the next millisecond. Immutable, because Citus accepts no other function in the update of
-- a conflict.
create function next_millisecond(at timestamptz) returns timestamptz
language sql immutable parallel safe as $$
  select to_timestamp(0) + (at - to_timestamp(0)) + interval '1 ms'
$$;

-- Identifies many users, in order. Returns one row for each, with the JSON response. Returns no row
-- for a deleted project. A null in properties_list keeps the stored properties.
--
-- Like every writer of a project, it locks the project's log first. So one transaction at a time
-- creates keys and aliases. Postgres has parsed the JSON arguments before. The words of properties
-- are indexed later (index_users).
--
-- The settings keep the plan from scanning tables. A plan made on small tables would still be used
-- after they have grown.
create or replace function identify_users(
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
    select distinct p.id from unnest(remove_positions(project_ids, running)) as p (id) order by 1
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
      select k.fingerprint, k.body into seen
        from idempotency_keys k
        where k.project_id = project_ids[n] and k.key = keys[n] and k.expires_at > at;
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
    if properties_list[n] is not null and (identity.id <> ids[n] or properties_list[n]::text <> '{}') then
      insert into unindexed_users (project_id, id, changed_at)
        values (project_ids[n], identity.id, identity.updated_at);
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

-- Takes aliases from a user. With the last ones it deletes the identity: a user with up to
-- max_aliases disappears in this transaction. An alias that equals another user's user_id is not a
-- name of this user. The caller must have locked the project's log.
create or replace function erase_identity(project uuid, name text) returns void
language plpgsql as $$
declare
  taken text[];
  next_change bigint;
begin
  perform set_config('tidings.is_erasing', 'on', true);
  with gone as (
    delete from aliases a
      where a.project_id = project and a.alias = any(array(
        select t.alias from aliases t where t.project_id = project and t.user_id = name limit max_aliases() + 1
      ))
      returning a.alias
  )
  select coalesce(array_agg(g.alias), '{}') into taken from gone g;
  insert into erasure_names (project_id, user_id, name)
    select e.project_id, e.user_id, t.alias
    from erasures e
      cross join unnest(taken) as t (alias)
    where e.project_id = project and e.user_id = erase_identity.name
      and not exists (select from identities i where i.project_id = project and i.user_id = t.alias)
    on conflict do nothing;
  if cardinality(taken) > max_aliases() then
    return;
  end if;
  delete from identities i where i.project_id = project and i.user_id = erase_identity.name;
  -- Citus evaluates no function of a sequence in an update.
  next_change := nextval(pg_get_serial_sequence('alias_changes', 'id'));
  update erasures e set
      stage = 'responses',
      last_seq = (select l.last_seq from event_logs l where l.project_id = project),
      last_change = next_change
    where e.project_id = project and e.user_id = name;
end
$$;

-- Returns a stored response without its user. Immutable, as next_millisecond is.
create function remove_user_from_stored(status smallint, user_id text, body text) returns text
language plpgsql immutable parallel safe as $$
begin
  -- In the response to an event, the first match is the field userId: quotes in texts before it are
  -- escaped.
  return case status
    when 201 then overlay(
      body placing '"userId":null'
      from position('"userId":' || to_json(user_id)::text in body)
      for length('"userId":' || to_json(user_id)::text))
    else '{"success":true,"data":{"id":' || (body::json #> '{data,id}')::text
      || ',"userId":null,"properties":{},"aliases":{"created":[]},"updatedAt":'
      || (body::json #> '{data,updatedAt}')::text
      || '},"requestId":' || (body::json #> '{requestId}')::text || '}'
  end;
end
$$;

-- Returns a stored response to identify without those aliases that are in `names`. Immutable, as
-- next_millisecond is.
create function remove_aliases_from_stored(body text, names text[]) returns text
language plpgsql immutable parallel safe as $$
begin
  return remove_aliases_from_response(body::json, names);
end
$$;

-- Removes the user with these names from up to `max_rows` stored responses about them. Returns
-- false when there are none.
create or replace function erase_responses(project uuid, names text[], max_rows int) returns boolean
language plpgsql as $$
declare
  -- Rows that another transaction has locked are left for the next step.
  keys text[] := array(
    select k.key
    from idempotency_keys k
    where k.project_id = project and k.user_id = any(names) and k.user_id is not null
    limit max_rows
  );
begin
  with found as materialized (
    select k.key
    from idempotency_keys k
    where k.project_id = project and k.key = any(keys) and k.user_id = any(names)
    for update skip locked
  )
  update idempotency_keys k set
    user_id = null,
    other_names = null,
    body = remove_user_from_stored(k.status, k.user_id, k.body)
    from found
    where k.project_id = project and k.key = found.key;
  return keys <> '{}';
end
$$;

-- Removes the names of a user from the stored responses of other users, among the next `max_rows`
-- responses to identify with aliases after `after_key`. Returns the last key, or null at the end.
create or replace function erase_other_responses(project uuid, name text, after_key text, max_rows int) returns text
language plpgsql as $$
declare
  stored record;
  erased text[];
  others text[];
  last_key text;
begin
  for stored in
    select k.key, k.other_names
    from idempotency_keys k
    where k.project_id = project and k.other_names is not null and k.key > after_key
    order by k.key
    limit max_rows
  loop
    last_key := stored.key;
    erased := array(
      select n.name
      from erasure_names n
      where n.project_id = project and n.user_id = erase_other_responses.name and n.name = any(stored.other_names)
    );
    continue when erased = '{}';
    others := array(select o.name from unnest(stored.other_names) as o (name) where o.name <> all(erased));
    update idempotency_keys k set
        other_names = nullif(others, '{}'),
        body = remove_aliases_from_stored(k.body, erased)
      where k.project_id = project and k.key = stored.key and k.status = 200 and k.other_names is not null;
  end loop;
  return last_key;
end
$$;

-- Deletes up to `max_rows` alias changes up to last_change that are of the user, or of another user
-- and one of these names. Removes the user from up to `max_rows` others. Returns false when there
-- are none.
create or replace function erase_history(project uuid, name text, names text[], last_change bigint, max_rows int) returns boolean
language plpgsql as $$
declare
  deleted int;
  changed int;
begin
  delete from alias_changes h
    where h.project_id = project and h.ctid = any(array(
      (
        select c.ctid
        from alias_changes c
        where c.project_id = project and c.user_id = erase_history.name and c.id < last_change
        limit max_rows
      )
      union all
      (
        select c.ctid
        from alias_changes c
        where c.project_id = project and c.alias = any(names) and c.id < last_change
        limit max_rows
      )
    ));
  get diagnostics deleted = row_count;
  update alias_changes h set other = null
    where h.project_id = project and h.ctid = any(array(
      select c.ctid
      from alias_changes c
      where c.project_id = project and c.other = erase_history.name and c.other is not null and c.id < last_change
      limit max_rows
    ));
  get diagnostics changed = row_count;
  return deleted + changed > 0;
end
$$;

-- Continues an erasure, until time_limit_ms have passed. Returns no row when it has ended before.
-- is_done is true in the transaction that ends it. It works in batches of some milliseconds.
--
-- Custom plans, because a plan made on small tables would scan them after they have grown.
create or replace function continue_erasure(project uuid, name text, time_limit_ms float8)
returns table (is_done boolean, events bigint, identity_id text, author json)
language plpgsql
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  ends_at timestamptz := clock_timestamp() + time_limit_ms * interval '1 ms';
  erasure erasures;
  names text[];
  key text;
  changed record;
  is_more boolean;
  stages text[] := array['responses', 'other responses', 'history', 'events', 'names'];
begin
  -- Writers lock the log before anything else.
  if exists (
    select from erasures e
    where e.project_id = project and e.user_id = continue_erasure.name and e.stage = 'aliases'
  ) then
    perform from event_logs l where l.project_id = project for update;
    if exists (
      select from erasures e
      where e.project_id = project and e.user_id = continue_erasure.name and e.stage = 'aliases'
      for update
    ) then
      perform erase_identity(project, continue_erasure.name);
    end if;
  end if;

  select * into erasure
    from erasures e
    where e.project_id = project and e.user_id = continue_erasure.name
    for update;
  if not found then
    return;
  end if;

  while erasure.stage <> 'aliases' and clock_timestamp() < ends_at loop
    if erasure.stage = 'other responses' then
      key := erase_other_responses(project, erasure.user_id, erasure.done_to, 50);
      if key is not null then
        erasure.done_to := key;
        continue;
      end if;
      names := '{}';
    else
      names := array(
        select n.name
        from erasure_names n
        where n.project_id = project and n.user_id = erasure.user_id and n.name > erasure.done_to
        order by n.name
        limit 100
      );
    end if;

    -- The names are needed until they are listed.
    exit when erasure.stage = 'names' and exists (
      select from erasure_names n
      where n.project_id = project and n.user_id = erasure.user_id and not n.is_listed
    );
    if names = '{}' then
      exit when erasure.stage = 'names';
      erasure.stage := stages[array_position(stages, erasure.stage) + 1];
      erasure.done_to := '';
      continue;
    end if;

    if erasure.stage = 'responses' then
      is_more := erase_responses(project, names, 20);
    elsif erasure.stage = 'history' then
      is_more := erase_history(project, erasure.user_id, names, erasure.last_change, 200);
    elsif erasure.stage = 'events' then
      select * into changed from erase_events(project, names, erasure.last_seq, 200);
      erasure.events := erasure.events + changed.erased;
      is_more := changed.was_found;
    else
      delete from erasure_names n
        where n.project_id = project and n.user_id = erasure.user_id and n.name = any(names);
      is_more := false;
    end if;
    if not is_more then
      erasure.done_to := names[cardinality(names)];
    end if;
  end loop;

  is_done := erasure.stage = 'names' and not exists (
    select from erasure_names n where n.project_id = project and n.user_id = erasure.user_id
  );
  update erased_users u set events = erasure.events
    where u.project_id = project and u.id = erasure.id and u.events <> erasure.events;
  if is_done then
    delete from erasures e where e.project_id = project and e.user_id = erasure.user_id;
  else
    update erasures e set
        stage = erasure.stage, done_to = erasure.done_to, events = erasure.events, touched_at = now()
      where e.project_id = project and e.user_id = erasure.user_id;
  end if;
  events := erasure.events;
  identity_id := erasure.identity_id;
  author := erasure.author;
  return next;
end
$$;

-- Begins the erasure of a user who can be in the archive alone, unless it has begun. Returns false
-- if no file is younger than the last erasure of this name, at last_erased_at; null for none. Also
-- returns false for an alias, which is not a user.
create or replace function begin_archive_erasure(
  project uuid, name text, author json, last_erased_at timestamptz
) returns boolean
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  erasure_id uuid;
begin
  perform from event_logs l where l.project_id = project for update;
  if not found then
    return false;
  end if;
  if exists (select from erasures e where e.project_id = project and e.user_id = name) then
    return true;
  end if;
  if exists (select from aliases a where a.project_id = project and a.alias = name) then
    return false;
  end if;
  if not exists (
    select from archive_files f
    where f.project_id = project and f.state = 'current'
      and (last_erased_at is null or f.written_at >= last_erased_at)
  ) then
    return false;
  end if;
  insert into erasures as e (project_id, user_id, author)
    values (project, name, author)
    returning e.id into erasure_id;
  insert into erased_users (id, project_id, erased_at, key_id)
    values (erasure_id, project, date_trunc('milliseconds', clock_timestamp()), (author ->> 'keyId')::uuid);
  insert into erasure_names (project_id, user_id, name) values (project, name, name);
  perform erase_identity(project, name);
  return true;
end
$$;
