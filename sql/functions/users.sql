-- Returns the start of a project's words in the index. So a search hardly reads other projects: few
-- have the same start.
create or replace function word_prefix(project uuid) returns text
language sql immutable parallel safe
return encode(substr(int8send(uuid_hash_extended(project, 0)), 1, 6), 'base64') || ' ';

-- Returns the text that a user is found by: the user_id, the aliases, and the values of the
-- properties, without their keys. It reads the first 16,384 characters of all aliases, and of the
-- properties as text. As jsonb they could contain numbers that are out of range.
create or replace function text_of_user(user_id text, aliases text, properties json) returns text
language plpgsql immutable parallel safe as $$
declare
  -- The longest match counts, so a key is no value.
  found_values text := regexp_replace(
    left(properties::text, 16384), '"(?:[^"\\]|\\.)*":|"((?:[^"\\]|\\.)*)"|[][{},]+', ' \1', 'g'
  );
begin
  if strpos(found_values, '\') > 0 then
    -- Escapes other than those of quotes and backslashes are control characters.
    found_values := replace(replace(found_values, '\\', E'\x01'), '\"', '"');
    found_values := replace(regexp_replace(found_values, '\\(u[0-9a-f]{4}|.)', ' ', 'g'), E'\x01', '\');
  end if;
  return user_id || ' ' || coalesce(left(aliases, 16384), '') || found_values;
end
$$;

-- Returns what text_of_user needs of the user with an id.
create or replace function user_to_search(project uuid, identity_id uuid)
returns table (id uuid, user_id text, aliases text, properties json)
language sql stable as $$
  select i.id, i.user_id, (
      select string_agg(a.alias, ' ' order by a.alias collate "C") from aliases_of_user(project, i.user_id) a
    ), i.properties
  from identity_by_id(project, identity_id) i
$$;

-- Returns the tokens of a user's text for the index, each after word_prefix.
create or replace function tokens_of_user(project uuid, content text) returns tsvector
language sql immutable parallel safe as $$
  select array_to_tsvector(array(
    select p.start || t.token
    from (select word_prefix(project) as start offset 0) p
      cross join unnest(tokens_of_words(words_to_find(fold_text(content)))) as t (token)
  ))
$$;

-- Returns the tsquery term for all words with the prefix `word`.
create or replace function to_prefix_lexeme(word text) returns text
language sql immutable
return '''' || replace(replace(word, E'\\', E'\\\\'), '''', '''''') || ''':*';

-- Returns a tsquery for users who have a token with each of these beginnings, or the token of very
-- many words. Returns null without tokens.
create or replace function user_tokens_query(project uuid, tokens text[]) returns tsquery
language sql immutable as $$
  select ('(' || string_agg(to_prefix_lexeme(word_prefix(project) || t.token), '&') || ')|'
    || to_prefix_lexeme(word_prefix(project) || '*'))::tsquery
  from unnest(tokens) as t (token)
  where t.token <> ''
$$;

-- Marks a user as changed at a time: index_users indexes it anew. A later mark has a later time,
-- whatever the clock says. The caller has locked the project's log.
create or replace function mark_changed_user(project uuid, user_uuid uuid, changed_at timestamptz) returns void
language plpgsql
as $$
#variable_conflict use_variable
declare
  last_at timestamptz := (
    select max(u.changed_at) from unindexed_users u where u.project_id = project and u.id = user_uuid
  );
begin
  insert into unindexed_users (project_id, id, changed_at)
    values (project, user_uuid, greatest(changed_at, next_millisecond(last_at)));
end
$$;

-- Marks users whose aliases changed. Former users have no identity.
create or replace function mark_users_of_aliases(project uuid, user_ids text[]) returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  user_uuid uuid;
begin
  for user_uuid in
    select i.id
    from (select distinct n.name from unnest(user_ids) as n (name)) u
      cross join lateral identity_of_user(project, u.name) i
  loop
    perform mark_changed_user(project, user_uuid, date_trunc('milliseconds', clock_timestamp()));
  end loop;
end
$$;

-- Marks former owners of aliases, and deletes their words, which have the names of others. A user
-- without words is found until it is indexed anew.
create or replace function forget_words_of_users(project uuid, user_ids text[]) returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
begin
  perform mark_users_of_aliases(project, user_ids);
  delete from user_words w
    where w.project_id = project and w.id = any(array(
      select i.id from unnest(user_ids) as u (name) cross join lateral identity_of_user(project, u.name) i
    ));
end
$$;

-- Adds the words of up to 100 changed users of a project to user_words, from the first id after
-- `after` on, until time_limit_ms have passed. Returns the last id. Returns null when there is none
-- and when another transaction works on this project.
--
-- It parses before it locks any row. An identify does not wait for it, and an erasure only while
-- the words are stored. A user who changes meanwhile is indexed again.
--
-- The commit does not wait for fsync. A crash undoes the work, and it is done again.
--
-- The settings force the primary key. Only it finds the next rows without reading all of them.
create or replace function index_users(project uuid, after uuid, time_limit_ms float8) returns uuid
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashagg = off
set enable_sort = off
as $$
declare
  ends_at timestamptz := clock_timestamp() + time_limit_ms * interval '1 ms';
  changed record;
  last_id uuid;
  parsed tsvector;
  ids uuid[] := '{}';
  changed_ats timestamptz[] := '{}';
  words_list tsvector[] := '{}';
begin
  perform set_config('synchronous_commit', 'off', true);
  if not pg_try_advisory_xact_lock(71342007, hashtext(project::text)) then
    return null;
  end if;
  for changed in
    select u.id, max(u.changed_at) as at
    from unindexed_users u
    where u.project_id = project and u.id > after
    group by u.id
    order by u.id
    limit 100
  loop
    exit when clock_timestamp() >= ends_at and last_id is not null;
    last_id := changed.id;
    select tokens_of_user(project, text_of_user(u.user_id, u.aliases, u.properties)) into parsed
      from user_to_search(project, changed.id) u;
    -- An erasure has also deleted the rows of unindexed_users.
    continue when not found;
    ids := ids || changed.id;
    changed_ats := changed_ats || changed.at;
    words_list := words_list || parsed;
  end loop;

  with parsed_users as (
    select p.id, p.changed_at, p.words
    from unnest(ids, changed_ats, words_list) as p (id, changed_at, words)
  ), existing as materialized (
    select i.id
    from identities i
    where i.project_id = project and i.id = any(ids)
    for key share skip locked
  ), stored as (
    insert into user_words as w (project_id, id, words)
    select project, p.id, p.words from parsed_users p join existing e using (id)
    on conflict (project_id, id) do update set words = excluded.words
      where w.words is distinct from excluded.words
  )
  delete from unindexed_users u
    using existing e, parsed_users p
    where u.project_id = project and u.id = e.id and p.id = e.id and u.changed_at <= p.changed_at;
  return last_id;
end
$$;

-- Returns the projects with users to index.
create or replace function unindexed_project_ids() returns setof uuid
language plpgsql stable
set enable_seqscan = off
as $$
begin
  return query
    with recursive found (id) as (
      (select u.project_id from unindexed_users u order by u.project_id limit 1)
      union all
      select (
        select u.project_id from unindexed_users u where u.project_id > f.id order by u.project_id limit 1
      )
      from found f
      where f.id is not null
    )
    select f.id from found f where f.id is not null;
end
$$;

-- Returns the projects with users to index, and their organizations.
create or replace function list_unindexed_projects() returns table (project_id uuid, organization_id uuid)
language sql stable as $$
  select p.id, p.organization_id
  from unindexed_project_ids() as f (id)
    join projects p on p.id = f.id and p.deleted_at is null
$$;

-- Finds the users whose text has all of `words`, as text_patterns says: the ids of up to
-- `max_rows`, newest first. With `before`, only earlier ids are returned. After time_limit_ms it
-- ends, and `reached` is the last id that it has examined; null otherwise. `is_searchable` is false
-- if the words have nothing to find.
--
-- The index yields candidates, and each user without current words is one. They are listed before
-- the index is read: on Citus each statement has a snapshot of its own, and the indexer works
-- meanwhile. If there are more than 100,000, every user is one: with so many, the newest users
-- usually fill a page.
--
-- The settings force the indexes, whatever the statistics say.
create or replace function search_users(
  project uuid, words text[], before uuid, max_rows int, time_limit_ms float8,
  out ids uuid[], out reached uuid, out is_searchable boolean
)
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
declare
  ends_at timestamptz := clock_timestamp() + time_limit_ms * interval '1 ms';
  needles text[];
  patterns text[];
  have_symbols boolean;
  query tsquery;
  -- Null for every user.
  candidates uuid[];
  part uuid[];
  one record;
  last_id uuid := coalesce(before, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
begin
  ids := '{}';
  select
      array_agg(p.needle), array_agg(p.pattern), bool_or(p.has_symbols),
      user_tokens_query(project, string_to_array(string_agg(array_to_string(p.tokens, ' '), ' '), ' '))
    into needles, patterns, have_symbols, query
    from text_patterns(words, array_fill(false, array[cardinality(words)])) p;
  is_searchable := patterns is not null;
  if not is_searchable then
    return;
  end if;

  if query is not null then
    candidates := array(
      select distinct u.id from unindexed_users u where u.project_id = project limit 100001
    );
    candidates := candidates || array(
      select w.id from user_words w where w.words @@ query and (w.project_id = project) is true limit 100001
    );
    candidates := case when cardinality(candidates) <= 100000 then array(
      select distinct c.id from unnest(candidates) as c (id) where c.id < last_id order by c.id desc
    ) end;
  end if;

  <<parts>>
  loop
    if candidates is null then
      part := array(
        select i.id from identities i where i.project_id = project and i.id < last_id order by i.id desc limit 20
      );
    else
      part := candidates[1:20];
      candidates := candidates[21:];
    end if;
    for one in
      select u.* from unnest(part) as c (id) cross join lateral user_to_search(project, c.id) u order by u.id desc
    loop
      if matches_texts(text_of_user(one.user_id, one.aliases, one.properties), null, needles, patterns, '{}', have_symbols) then
        ids := ids || one.id;
      end if;
      exit parts when cardinality(ids) = max_rows;
      if clock_timestamp() >= ends_at then
        reached := one.id;
        exit parts;
      end if;
    end loop;
    exit when cardinality(part) < 20;
    last_id := part[20];
  end loop;
end
$$;

-- Returns the earliest and the latest occurred_at of a user's events. A backfilled event can be
-- anywhere in the log. So it first reads the first and the last event of each name in the log, and
-- then each segment that can contain an earlier or a later time, for the names with events there.
create or replace function user_seen_times(project uuid, names text[], out first_at timestamptz, out last_at timestamptz)
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  first_seq bigint;
  last_seq bigint;
  -- The names with events, and the first and last seq of each.
  present text[];
  first_seqs bigint[];
  last_seqs bigint[];
  part record;
begin
  select
      min(f.first_seq), max(f.last_seq), min(f.first_at), max(f.last_at),
      array_agg(f.name), array_agg(f.first_seq), array_agg(f.last_seq)
    into first_seq, last_seq, first_at, last_at, present, first_seqs, last_seqs
    from (
      select
        n.name, min(e.seq) as first_seq, max(e.seq) as last_seq,
        min(e.occurred_at) as first_at, max(e.occurred_at) as last_at
      from unnest(names) as n (name)
        cross join lateral (
          (
            select e.seq, e.occurred_at
            from events e
            where e.project_id = project and e.user_ref is not null and e.deleted_at is null
              and (e.user_ref, e.seq) > (n.name, 0)
              and (e.user_ref, e.seq) <= (n.name, 9223372036854775807)
            order by e.user_ref, e.seq
            limit 1
          )
          union all
          (
            select e.seq, e.occurred_at
            from events e
            where e.project_id = project and e.user_ref is not null and e.deleted_at is null
              and (e.user_ref, e.seq) > (n.name, 0)
              and (e.user_ref, e.seq) <= (n.name, 9223372036854775807)
            order by e.user_ref desc, e.seq desc
            limit 1
          )
        ) e
      group by n.name
    ) f;

  -- First the segments that can change a time by the most.
  for part in
    select s.segment, s.first_at as starts_at, s.last_at as ends_at
    from event_segments s
    where s.project_id = project and s.segment between first_seq >> 12 and last_seq >> 12
      and (s.first_at < user_seen_times.first_at or s.last_at > user_seen_times.last_at)
    order by least(s.first_at - user_seen_times.first_at, user_seen_times.last_at - s.last_at)
  loop
    continue when part.starts_at >= first_at and part.ends_at <= last_at;
    select least(first_at, min(e.occurred_at)), greatest(last_at, max(e.occurred_at)) into first_at, last_at
      from unnest(present, first_seqs, last_seqs) as n (name, first_seq, last_seq)
        join events e on e.project_id = project and e.user_ref = n.name and e.user_ref is not null
          and e.seq between part.segment << 12 and ((part.segment + 1) << 12) - 1
      where e.deleted_at is null
        and n.first_seq >> 12 <= part.segment and n.last_seq >> 12 >= part.segment;
  end loop;
end
$$;

-- Summarizes a user's events: their number, up to 10,000, the earliest and the latest time, and the
-- ten channels with the most of the counted events.
create or replace function user_activity(project uuid, name text)
returns table (events int, first_at timestamptz, last_at timestamptz, channels text)
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
begin
  return query
  with names as (
    select n.name from unnest(names_of_user(project, user_activity.name)) as n (name)
  ), counted as materialized (
    select e.channel_id
    from names n
      cross join lateral (
        select e.channel_id
        from events e
        where e.project_id = project and e.user_ref is not null and e.deleted_at is null
          and (e.user_ref, e.seq) > (n.name, 0)
          and (e.user_ref, e.seq) <= (n.name, 9223372036854775807)
        order by e.user_ref desc, e.seq desc
        limit 10000
      ) e
    limit 10000
  ), top as (
    select c.public_id, c.name, c.icon, t.n
    from (select k.channel_id, count(*) as n from counted k group by k.channel_id) t
      join channels c on c.project_id = project and c.id = t.channel_id
    order by t.n desc, c.id
    limit 10
  )
  select
    (select count(*)::int from counted),
    seen.first_at,
    seen.last_at,
    (
      select coalesce(
        json_agg(
          json_build_object('id', t.public_id, 'name', t.name, 'icon', t.icon, 'events', t.n)
          order by t.n desc, t.public_id
        ),
        '[]'
      )::text
      from top t
    )
  from user_seen_times(project, array(select n.name from names n)) as seen;
end
$$;

-- Returns a name as a page shows it: with single spaces.
create or replace function one_line(name text) returns text
language sql immutable parallel safe
return trim(regexp_replace(name, '[\s\u00A0]+', ' ', 'g'));

-- Returns the names of a user in its properties, in the order in which they are preferred: a name,
-- the first and the last name as one, the e-mail address.
create or replace function names_in_properties(properties json) returns text[]
language sql immutable parallel safe as $$
  with texts as (
    select least(k.n, 7 + k.n / 11) as rank, string_agg(trim(properties ->> k.key), ' ' order by k.n) as value
    from unnest(array[
      'name', 'fullName', 'full_name', 'displayName', 'display_name', '$name',
      'firstName', 'first_name', 'lastName', 'last_name', 'email'
    ]) with ordinality as k (key, n)
    where json_typeof(properties -> k.key) = 'string' and trim(properties ->> k.key) <> ''
    group by 1
  )
  select array(select t.value from texts t order by t.rank)
$$;

-- Returns how events refer to the users of a project who have this name, a folded text, or a name
-- that begins with it: a user_id, an alias, a name or an e-mail address. References that begin so
-- themselves are left out, because they can also be those of users who were never identified.
-- Returns null if there are 1,000 such users, or if the index does not yield them in time_limit_ms.
create or replace function references_of_name(
  project uuid, wanted text, is_whole boolean, time_limit_ms float8
) returns text[]
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  words text[] := regexp_split_to_array(trim(wanted), '\s+');
  candidates uuid[];
  reached uuid;
  found_references text[];
begin
  select f.ids, f.reached into candidates, reached
    from search_users(project, words, null, 1000, time_limit_ms) f;
  if cardinality(candidates) = 1000 or reached is not null then
    return null;
  end if;
  found_references := array(
    select r.reference
    from unnest(candidates) as c (id)
      cross join lateral identity_by_id(project, c.id) i
      cross join lateral (select array(select a.alias from aliases_of_user(project, i.user_id) a) as names) a
      cross join lateral unnest(i.user_id || a.names) as r (reference)
    where exists (
        select
        from unnest(i.user_id || a.names || names_in_properties(i.properties)) as n (name)
        where case
          when is_whole then fold_text(one_line(n.name)) = wanted
          else starts_with(fold_text(n.name), wanted)
        end
      )
      and (is_whole or not starts_with(fold_text(r.reference), wanted))
      -- An alias that equals another user's user_id refers to that user instead.
      and (r.reference = i.user_id or not exists (select from identity_of_user(project, r.reference)))
    limit 10000
  );
  return case when cardinality(found_references) < 10000 then found_references end;
end
$$;
