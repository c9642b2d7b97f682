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

-- Begins the erasure of a user, unless it has begun. Returns false if there is nothing to erase: an
-- alias of another user is not a user, and neither is a name without an identity, an event and a
-- stored response.
create or replace function begin_erasure(project uuid, name text, author json) returns boolean
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  identity_id text;
  erasure_id uuid;
begin
  perform from event_logs l where l.project_id = project for update;
  if not found then
    return false;
  end if;
  if exists (select from erasures e where e.project_id = project and e.user_id = name) then
    return true;
  end if;
  select i.public_id into identity_id from identities i where i.project_id = project and i.user_id = name;
  if not found and (
    exists (select from aliases a where a.project_id = project and a.alias = name)
    or not exists (
      select from events e where e.project_id = project and e.user_ref = name and e.user_ref is not null
    )
    and not exists (
      select from idempotency_keys k
      where k.project_id = project and k.user_id = name and k.user_id is not null
    )
  ) then
    return false;
  end if;
  insert into erasures as e (project_id, user_id, identity_id, author)
    values (project, name, identity_id, author)
    returning e.id into erasure_id;
  insert into erased_users (id, project_id, erased_at, key_id)
    values (erasure_id, project, date_trunc('milliseconds', clock_timestamp()), (author ->> 'keyId')::uuid);
  insert into erasure_names (project_id, user_id, name) values (project, name, name);
  perform erase_identity(project, name);
  return true;
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

-- Returns a stored response without its user. Immutable, as next_millisecond is.
create or replace function remove_user_from_stored(status smallint, user_id text, body text) returns text
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

-- Returns a response to identify without those aliases that are in `names`.
create or replace function remove_aliases_from_response(response json, names text[]) returns text
language sql immutable as $$
  select '{"success":true,"data":{"id":' || (response #> '{data,id}')::text
    || ',"userId":' || (response #> '{data,userId}')::text
    || ',"properties":' || (response #> '{data,properties}')::text
    || ',"aliases":{"created":[' || coalesce((
      select string_agg(to_json(c.alias)::text, ',' order by c.ord)
      from json_array_elements_text(response #> '{data,aliases,created}') with ordinality as c (alias, ord)
      where c.alias <> all(names)
    ), '') || ']'
    || coalesce(',"failed":[' || (
      select string_agg(f.item::text, ',' order by f.ord)
      from json_array_elements(response #> '{data,aliases,failed}') with ordinality as f (item, ord)
      where f.item ->> 'alias' <> all(names)
    ) || ']', '')
    || '},"updatedAt":' || (response #> '{data,updatedAt}')::text
    || '},"requestId":' || (response -> 'requestId')::text || '}'
$$;

-- Returns a stored response to identify without those aliases that are in `names`. Immutable, as
-- next_millisecond is.
create or replace function remove_aliases_from_stored(body text, names text[]) returns text
language plpgsql immutable parallel safe as $$
begin
  return remove_aliases_from_response(body::json, names);
end
$$;

-- Removes the user with these names from up to `max_rows` events up to `last_seq`. Also removes
-- what webhooks responded to these events. Returns their number, and whether there were any, also
-- locked ones.
create or replace function erase_events(
  project uuid, names text[], last_seq bigint, max_rows int, out was_found boolean, out erased int
)
language plpgsql as $$
declare
  -- Events that another transaction has locked are left for the next step.
  seqs bigint[] := array(
    select e.seq
    from unnest(names) as n (name)
      cross join lateral (
        select e.seq
        from events e
        where e.project_id = project and e.user_ref = n.name and e.user_ref is not null
          and e.seq <= erase_events.last_seq
        order by e.seq
        limit max_rows
      ) e
    limit max_rows
  );
  ids uuid[];
begin
  with free as materialized (
    select e.seq
    from events e
    where e.project_id = project and e.seq = any(seqs) and e.user_ref is not null
    for update skip locked
  ), changed as (
    update events e set user_ref = null
      from free f
      where e.project_id = project and e.seq = f.seq
      returning e.id
  )
  select array_agg(c.id) into ids from changed c;
  erased := coalesce(cardinality(ids), 0);
  perform erase_webhook_attempts(project, ids);
  was_found := seqs <> '{}';
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

-- Begins an erasure again, in a database that is older than it. `name` is the user_id, or else an
-- alias; `names` has all names that the database contains. The caller then continues the erasure.
create or replace function repeat_erasure(project uuid, erasure_id uuid, name text, names text[]) returns void
language plpgsql as $$
begin
  perform set_config('tidings.is_erasing', 'on', true);
  insert into erasures as e (id, project_id, user_id) values (erasure_id, project, name)
    on conflict (project_id, user_id) do update set stage = 'aliases', done_to = '';
  insert into erasure_names (project_id, user_id, name, is_listed)
    select project, repeat_erasure.name, n.name, true from unnest(names) as n (name)
    on conflict do nothing;
  delete from aliases a where a.project_id = project and a.alias = any(names);
end
$$;

-- Returns when the oldest erasure began that is in progress in a project; null without any.
create or replace function oldest_running_erasure(project uuid) returns table (erased_at timestamptz)
language sql stable as $$
  select min(u.erased_at)
  from erasures e
    join erased_users u on u.project_id = e.project_id and u.id = e.id
  where e.project_id = project
$$;

-- Returns the erased users of a project.
create or replace function erased_users_of(project uuid) returns setof erased_users
language sql stable as $$
  select u.* from erased_users u where u.project_id = project
$$;
