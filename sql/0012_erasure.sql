-- Removes the user with these names from up to `max_rows` events. Returns their number.
create function erase_user_from_events(project uuid, names text[], max_rows int) returns int
language plpgsql as $$
declare
  n int;
begin
  with found as (
    select e.seq
    from events e
    where e.project_id = project and e.user_ref = any(names)
    order by e.seq
    limit max_rows
    for update
  )
  update events e set user_ref = null
    from found
    where e.project_id = project and e.seq = found.seq;
  get diagnostics n = row_count;
  return n;
end
$$;

-- Removes the user with these names from up to `max_rows` stored responses about them. Returns
-- their number.
create function erase_user_from_responses(project uuid, names text[], max_rows int) returns int
language plpgsql as $$
declare
  n int;
begin
  with found as (
    select k.key
    from idempotency_keys k
    where k.project_id = project and k.user_id = any(names)
    order by k.key
    limit max_rows
    for update
  )
  update idempotency_keys k set
    user_id = null,
    other_names = null,
    -- In the response to an event, the first match is the field userId: quotes in texts before it
    -- are escaped.
    body = case k.status
      when 201 then overlay(
        k.body placing '"userId":null'
        from position('"userId":' || to_json(k.user_id)::text in k.body)
        for length('"userId":' || to_json(k.user_id)::text))
      else '{"success":true,"data":{"id":' || (k.body::json #> '{data,id}')::text
        || ',"userId":null,"properties":{},"aliases":{"created":[]},"updatedAt":'
        || (k.body::json #> '{data,updatedAt}')::text
        || '},"requestId":' || (k.body::json #> '{requestId}')::text || '}'
    end
    from found
    where k.project_id = project and k.key = found.key;
  get diagnostics n = row_count;
  return n;
end
$$;

-- Performs one batch of an erasure: removes a user from up to `max_rows` events and as many stored
-- responses. It is planned each time: a plan made on small tables would scan them after they have
-- grown.
create function erase_user_batch(project uuid, name text, max_rows int) returns table (events int, responses int)
language plpgsql
set plan_cache_mode = force_custom_plan
as $$
declare
  names text[] := names_of_user(project, name);
begin
  events := erase_user_from_events(project, names, max_rows);
  responses := erase_user_from_responses(project, names, max_rows);
  return next;
end
$$;

-- Returns a response to identify without those aliases that are in `names`.
create function remove_aliases_from_response(response json, names text[]) returns text
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

-- Removes `names` from the stored responses to identify about other users.
create function erase_user_from_other_responses(project uuid, names text[]) returns void
language plpgsql as $$
begin
  -- Some of them report an alias as another user's.
  update idempotency_keys k set
      other_names = array(select o.name from unnest(k.other_names) as o (name) where o.name <> all(names)),
      body = remove_aliases_from_response(k.body::json, names)
    where k.project_id = project and k.status = 200 and k.other_names is not null and k.other_names && names;
  -- Others report that an alias was created for an earlier owner.
  update idempotency_keys k set body = remove_aliases_from_response(k.body::json, names)
    where k.project_id = project and k.status = 200
      and k.user_id in (
        select h.user_id from alias_changes h where h.project_id = project and h.alias = any(names)
      );
end
$$;

-- Erases a user: deletes the identity, its properties, aliases and alias history, and removes the
-- user from events and stored responses. Returns the number of those events, and whether the
-- identity existed. It blocks all writers of the project, so callers run erase_user_batch first,
-- which leaves little to do. It is planned each time, like erase_user_batch.
create function erase_user(project uuid, name text) returns table (events int, was_known boolean)
language plpgsql
set plan_cache_mode = force_custom_plan
as $$
declare
  names text[];
begin
  perform from event_logs l where l.project_id = project for update;
  -- Read after the lock, because identify could add a name before it.
  names := names_of_user(project, name);
  events := erase_user_from_events(project, names, null);
  perform erase_user_from_responses(project, names, null);
  perform erase_user_from_other_responses(project, names);

  delete from identities i where i.project_id = project and i.user_id = erase_user.name;
  was_known := found;

  -- After the identity, because deleting its aliases adds rows to alias_changes.
  delete from alias_changes h
    where h.project_id = project and (h.user_id = erase_user.name or h.alias = any(names));
  update alias_changes h set other = null
    where h.project_id = project and h.other = erase_user.name;
  return next;
end
$$;
