-- Takes aliases from a user, and lists them as names of the user's newest erasure. Former aliases
-- are names of the user as well. With the last ones it deletes the identity: a user with up to
-- max_aliases, and as many former ones, disappears in this transaction. A name that is another
-- user's user_id or alias is not a name of this user. The caller must have locked the project's
-- log.
--
-- The settings leave a look-up for each name. Joins would read all users of the project.
create or replace function erase_identity(project uuid, name text) returns void
language plpgsql
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  taken text[];
  former text[];
  next_change bigint;
begin
  with gone as (
    delete from aliases a
      where a.project_id = project and a.alias = any(array(
        select t.alias from aliases t where t.project_id = project and t.user_id = name limit max_aliases() + 1
      ))
      returning a.alias
  )
  select coalesce(array_agg(g.alias), '{}') into taken from gone g;
  former := array(
    select distinct h.alias
    from alias_changes h
    where h.project_id = project and h.user_id = name
      and not exists (select from aliases a where a.project_id = project and a.alias = h.alias)
      and not exists (select from identities i where i.project_id = project and i.user_id = h.alias)
      and not exists (
        select from erasures e
          join erasure_names n on n.project_id = e.project_id and n.erasure_id = e.id
        where e.project_id = project and e.user_id = erase_identity.name and e.stage = 'aliases' and n.name = h.alias
      )
      and h.alias <> all(taken)
    limit max_aliases() + 1
  );
  insert into erasure_names (project_id, erasure_id, user_id, name)
    select e.project_id, e.id, e.user_id, t.alias
    from erasures e
      cross join unnest(taken || former) as t (alias)
    where e.project_id = project and e.user_id = erase_identity.name and e.stage = 'aliases'
      and not exists (select from identities i where i.project_id = project and i.user_id = t.alias)
    on conflict do nothing;
  if cardinality(taken) > max_aliases() or cardinality(former) > max_aliases() then
    return;
  end if;
  delete from identities i where i.project_id = project and i.user_id = erase_identity.name;
  -- Citus evaluates no function of a sequence in an update.
  next_change := nextval(pg_get_serial_sequence('alias_changes', 'id'));
  update erasures e set
      stage = 'responses',
      last_seq = (select l.last_seq from event_logs l where l.project_id = project),
      last_change = next_change
    where e.project_id = project and e.user_id = name and e.stage = 'aliases';
end
$$;

-- Returns the months of exported files that can name a user: those with events of the user, and
-- those of which events have been deleted, because nothing tells whose they were.
create or replace function exported_months_of(project uuid, name text) returns text[]
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  names constant text[] := array(select a.alias from aliases_of_user(project, name) a) || name || array(
    select distinct h.alias from alias_changes h where h.project_id = project and h.user_id = name
  );
  files constant exports[] := array(select x from exports x where x.project_id = project);
  months text[] := '{}';
  file exports;
begin
  foreach file in array files loop
    if file.has_deleted or exists (
      select from events e
      where e.project_id = project and e.user_ref = any(names) and e.user_ref is not null
        and e.seq between file.first_seq and file.last_seq
    ) then
      months := months || to_char(file.month, 'YYYY-MM');
    end if;
  end loop;
  return array(select distinct m.month from unnest(months) as m (month) order by m.month);
end
$$;

-- Begins the erasure of a user, unless one has begun that leaves nothing, and does its first step.
-- A user who has come back since then gets another erasure, which follows. Returns false if there
-- is nothing to erase: an alias of another user is not a user, and neither is a name without an
-- identity, an event and a stored response.
create or replace function begin_erasure(project uuid, name text, author json) returns boolean
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  identity_id text;
  is_identified boolean;
  newest erasures;
  erasure uuid := gen_random_uuid();
begin
  perform from event_logs l where l.project_id = project for update;
  if not found then
    return false;
  end if;
  select * into newest
    from erasures e
    where e.project_id = project and e.user_id = name
    order by e.last_change desc nulls first
    limit 1;
  if newest.stage = 'aliases' then
    return true;
  end if;
  select i.public_id into identity_id from identities i where i.project_id = project and i.user_id = name;
  is_identified := found;
  if not is_identified and (
    exists (select from aliases a where a.project_id = project and a.alias = name)
    or not exists (
      select from events e
      where e.project_id = project and e.user_ref = name and e.user_ref is not null
        and e.seq > coalesce(newest.last_seq, 0)
    )
    and not exists (
      -- Only the index of users needs no sort for this order.
      select from (
        select k.seq
        from idempotency_keys k
        where k.project_id = project and k.user_id between name and name and k.user_id is not null
          and (newest.id is null or k.seq > newest.last_seq)
        order by k.user_id
        limit 1
      ) k
    )
  ) then
    return newest.id is not null;
  end if;
  insert into erasures (id, project_id, user_id, identity_id, author)
    values (erasure, project, name, identity_id, author);
  insert into erased_users (id, project_id, erased_at, key_id, exported_months)
    values (
      erasure, project, date_trunc('milliseconds', clock_timestamp()), (author ->> 'keyId')::uuid,
      exported_months_of(project, name)
    );
  insert into erasure_names (project_id, erasure_id, user_id, name) values (project, erasure, name, name);
  perform erase_identity(project, name);
  return true;
end
$$;

-- Empties up to `max_rows` stored responses about the user with these names. Responses to
-- events after last_seq stay, and so do those to identifies of a present user. Returns their
-- number: 0 if all are locked, null if there are none.
create or replace function erase_responses_of_user(project uuid, names text[], last_seq bigint, max_rows int) returns int
language plpgsql
as $$
declare
  -- Rows that another transaction has locked are left for the next step.
  keys text[] := array(
    select k.key
    from idempotency_keys k
    where k.project_id = project and k.user_id = any(names) and k.user_id is not null
      and (k.seq is null or k.seq <= erase_responses_of_user.last_seq)
      and not (k.seq is null and exists (
        select from identities i
        where i.project_id = k.project_id and i.user_id = k.user_id
          and starts_with(k.body, '{"success":true,"data":{"id":"' || i.public_id || '"')
      ))
    limit max_rows
  );
  erased int;
begin
  if keys = '{}' then
    return null;
  end if;
  with found as materialized (
    select k.key
    from idempotency_keys k
    where k.project_id = project and k.key = any(keys) and k.user_id = any(names)
      and (k.seq is null or k.seq <= erase_responses_of_user.last_seq)
    for update skip locked
  )
  update idempotency_keys k set
    user_id = null, other_names = null, body = empty_stored_response(k.body, null)
    from found
    where k.project_id = project and k.key = found.key;
  get diagnostics erased = row_count;
  return erased;
end
$$;

-- Empties the stored responses of other users that have a name of an erasure, among the next
-- `max_rows` responses to identify with aliases after `done_to`. Advances done_to to the last key,
-- or to null at the end. With a response that another transaction has locked, it reports that, and
-- done_to stays: two erasures never wait for each other. A name that has become an alias of the
-- response's user stays. So does the response to the user with the user_id `name`: it is of a later
-- user.
create or replace function erase_responses_of_others(
  project uuid, erasure uuid, name text, max_rows int, inout done_to text, out is_blocked boolean
)
language plpgsql
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  last_key text;
begin
  with page as materialized (
    select k.key, k.user_id, k.other_names
    from idempotency_keys k
    where k.project_id = project and k.other_names is not null and k.key > done_to
    order by k.key
    limit max_rows
  ), affected as materialized (
    select distinct p.key
    from page p
      join erasure_names n on n.project_id = project and n.erasure_id = erasure and n.name = any(p.other_names)
    where p.user_id is distinct from erase_responses_of_others.name and not exists (
      select from aliases a where a.project_id = project and a.alias = n.name and a.user_id = p.user_id
    )
  ), free as materialized (
    select k.key
    from affected a
      join idempotency_keys k on k.project_id = project and k.key = a.key
    for update of k skip locked
  ), changed as (
    update idempotency_keys k set
      other_names = null, body = empty_stored_response(k.body, k.user_id)
    from free f
      -- Without this join, PostgreSQL 15 reads all keys of a project that it takes for small.
      join affected a on a.key = f.key
    where k.project_id = project and k.key = f.key and k.status = 200 and k.other_names is not null
  )
  select max(p.key), (select count(*) from affected) > (select count(*) from free)
    into last_key, is_blocked
    from page p;
  if not is_blocked then
    done_to := last_key;
  end if;
end
$$;

-- Removes the user with these names from up to `max_rows` events up to `last_seq`. Also removes
-- what webhooks responded to these events. Returns their number: 0 if all are locked, null if there
-- are none.
create or replace function erase_events_of_user(project uuid, names text[], last_seq bigint, max_rows int) returns int
language plpgsql
as $$
declare
  -- Events that another transaction has locked are left for the next step.
  seqs bigint[] := array(
    select e.seq
    from unnest(names) as n (name)
      cross join lateral (
        select e.seq
        from events e
        where e.project_id = project and e.user_ref = n.name and e.user_ref is not null
          and e.seq <= erase_events_of_user.last_seq
        order by e.seq
        limit max_rows
      ) e
    limit max_rows
  );
  ids uuid[];
begin
  if seqs = '{}' then
    return null;
  end if;
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
  perform erase_webhook_attempts(project, ids);
  return coalesce(cardinality(ids), 0);
end
$$;

-- Deletes alias changes before last_change that are of the user, or of another user and one of
-- these names. Removes the user from others. It works on up to `max_rows` of each kind. Returns
-- their number: 0 if all are locked, null if there are none.
--
-- Rows are locked by their primary key. Another erasure can update the row of a pair of users, and
-- an update by ctid would miss its new version.
create or replace function erase_history_of_user(
  project uuid, names text[], name text, last_change bigint, max_rows int
) returns int
language plpgsql
as $$
declare
  user_ids text[];
  ats timestamptz[];
  ids bigint[];
  erased int;
begin
  select array_agg(f.user_id), array_agg(f.at), array_agg(f.id) into user_ids, ats, ids
    from (
      (
        select c.user_id, c.at, c.id
        from alias_changes c
        where c.project_id = project and c.user_id = erase_history_of_user.name and c.id < last_change
        limit max_rows
      )
      union
      (
        select c.user_id, c.at, c.id
        from alias_changes c
        where c.project_id = project and c.alias = any(names) and c.id < last_change
        limit max_rows
      )
      union
      (
        select c.user_id, c.at, c.id
        from alias_changes c
        where c.project_id = project and c.other = erase_history_of_user.name and c.other is not null and c.id < last_change
        limit max_rows
      )
    ) f;
  if ids is null then
    return null;
  end if;
  -- Rows that another transaction has locked are left for the next step.
  with free as materialized (
    select h.user_id, h.at, h.id, h.user_id = erase_history_of_user.name or h.alias = any(names) as is_deleted
    from unnest(user_ids, ats, ids) as f (user_id, at, id)
      join alias_changes h
        on h.project_id = project and h.user_id = f.user_id and h.at = f.at and h.id = f.id
    for update of h skip locked
  ), deleted as (
    delete from alias_changes h
      using free f
      where h.project_id = project and h.user_id = f.user_id and h.at = f.at and h.id = f.id and f.is_deleted
      returning h.id
  ), changed as (
    update alias_changes h set other = null
      from free f
      where h.project_id = project and h.user_id = f.user_id and h.at = f.at and h.id = f.id and not f.is_deleted
      returning h.id
  )
  select (select count(*) from deleted) + (select count(*) from changed) into erased;
  return erased;
end
$$;

-- Continues the oldest erasure of a user, until time_limit_ms have passed, or until it meets only
-- rows that another transaction has locked. Returns no row when all erasures of the user have ended
-- before. is_done is true in the transaction that ends this one. It works in batches of some
-- milliseconds.
--
-- Custom plans, because a plan made on small tables would scan them after they have grown.
create or replace function continue_erasure(project uuid, name text, time_limit_ms float8)
returns table (is_done boolean, events bigint, identity_id text, author json)
language plpgsql
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  ends_at timestamptz;
  erasure erasures;
  names text[];
  changed record;
  erased int;
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

  loop
    select * into erasure
      from erasures e
      where e.project_id = project and e.user_id = continue_erasure.name
      order by e.last_change nulls last, e.id
      limit 1
      for update;
    exit when found;
    -- Another process may have ended it while this one waited. The next one remains.
    if not exists (
      select from erasures e where e.project_id = project and e.user_id = continue_erasure.name
    ) then
      return;
    end if;
  end loop;

  -- From here, because a machine that is slow to come here would do nothing in any step.
  ends_at := clock_timestamp() + time_limit_ms * interval '1 ms';
  while erasure.stage not in ('aliases', 'names') and clock_timestamp() < ends_at loop
    if erasure.stage = 'other responses' then
      select * into changed from erase_responses_of_others(project, erasure.id, erasure.user_id, 50, erasure.done_to);
      if changed.done_to is not null then
        erasure.done_to := changed.done_to;
        exit when changed.is_blocked;
        continue;
      end if;
      names := '{}';
    else
      names := array(
        select n.name
        from erasure_names n
        where n.project_id = project and n.erasure_id = erasure.id and n.name > erasure.done_to
        order by n.name
        limit 100
      );
    end if;

    if names = '{}' then
      erasure.stage := stages[array_position(stages, erasure.stage) + 1];
      erasure.done_to := '';
      continue;
    end if;

    if erasure.stage = 'responses' then
      erased := erase_responses_of_user(project, names, erasure.last_seq, 20);
    elsif erasure.stage = 'history' then
      erased := erase_history_of_user(project, names, erasure.user_id, erasure.last_change, 200);
    else
      erased := erase_events_of_user(project, names, erasure.last_seq, 200);
      erasure.events := erasure.events + coalesce(erased, 0);
    end if;
    exit when erased = 0;
    if erased is null then
      erasure.done_to := names[cardinality(names)];
    end if;
  end loop;

  -- The names are needed until they are listed.
  is_done := erasure.stage = 'names' and not exists (
    select from erasure_names n where n.project_id = project and n.erasure_id = erasure.id and not n.is_listed
  );
  update erased_users u set events = erasure.events
    where u.project_id = project and u.id = erasure.id and u.events <> erasure.events;
  if is_done then
    delete from erasure_names n where n.project_id = project and n.erasure_id = erasure.id;
    delete from erasures e where e.project_id = project and e.id = erasure.id;
  else
    update erasures e set
        stage = erasure.stage, done_to = erasure.done_to, events = erasure.events, touched_at = now()
      where e.project_id = project and e.id = erasure.id;
  end if;
  events := erasure.events;
  identity_id := erasure.identity_id;
  author := erasure.author;
  return next;
end
$$;

-- Begins an erasure again, in a restored database that is older than it. `name` is the user_id, or
-- else an alias; `names` has all names that the database contains. Any server continues it at once.
create or replace function repeat_erasure(project uuid, erasure_id uuid, name text, names text[]) returns void
language plpgsql
as $$
declare
  months constant text[] := exported_months_of(project, name);
begin
  insert into erasures (id, project_id, user_id, touched_at) values (erasure_id, project, name, 'epoch');
  insert into erasure_names (project_id, erasure_id, user_id, name, is_listed)
    select project, erasure_id, repeat_erasure.name, n.name, true from (select distinct unnest(names)) as n (name);
  perform forget_words_of_users(
    project, array(select a.user_id from aliases a where a.project_id = project and a.alias = any(names))
  );
  update erased_users u set exported_months = months
    where u.project_id = project and u.id = erasure_id;
  delete from aliases a where a.project_id = project and a.alias = any(names);
  perform erase_identity(project, name);
end
$$;
