-- Returns the search words of a text in lower case. A word is a run of characters other than white
-- space and punctuation. The punctuation is listed, so words do not depend on the database's
-- locale.
create or replace function split_words(content text) returns text[]
language sql immutable parallel safe
return string_to_array(
  trim(regexp_replace(
    lower(content),
    '[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00bf\u2000-\u206f\u3000-\u3003\u3008-\u301f]+', ' ', 'g'
  )),
  ' '
);

-- Returns the start of a project's words in the index. So a search hardly reads other projects: few
-- have the same start.
create or replace function word_prefix(project uuid) returns text
language sql immutable parallel safe
return encode(substr(int8send(uuid_hash_extended(project, 0)), 1, 6), 'base64') || ' ';

-- Returns the search words of a user's properties, without their keys. It reads the first 16,384
-- characters as text. As jsonb they could contain numbers that are out of range. Each word starts
-- with word_prefix.
create or replace function words_of_user(project uuid, properties json) returns tsvector
language sql immutable parallel safe as $$
  with content as (
    -- Removes keys and escapes.
    select regexp_replace(
      regexp_replace(left(properties::text, 16384), '"(?:[^"\\]|\\.)*":', ' ', 'g'),
      '\\(?:u[0-9a-f]{4}|.)', ' ', 'g'
    ) as text
  ), words as materialized (
    select distinct left(w.word, 200) as word
    from content c
      cross join lateral unnest(split_words(c.text)) as w (word)
    where w.word <> ''
  ), prefix as materialized (
    select word_prefix(project) as start
  )
  select array_to_tsvector(array(select p.start || w.word from prefix p cross join words w))
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
    select words_of_user(project, i.properties) into parsed
      from identities i where i.project_id = project and i.id = changed.id;
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

-- Returns the projects with unindexed users.
create or replace function unindexed_project_ids() returns setof uuid
language sql stable
set enable_seqscan = off
as $$
  with recursive found (id) as (
    (select u.project_id from unindexed_users u order by u.project_id limit 1)
    union all
    select (
      select u.project_id from unindexed_users u where u.project_id > f.id order by u.project_id limit 1
    )
    from found f
    where f.id is not null
  )
  select f.id from found f where f.id is not null
$$;

-- Returns the projects with unindexed users, and their organizations.
create or replace function list_unindexed_projects() returns table (project_id uuid, organization_id uuid)
language sql stable as $$
  select p.id, p.organization_id
  from unindexed_project_ids() as f (id)
    join projects p on p.id = f.id and p.deleted_at is null
$$;

-- Returns the tsquery term for all words with the prefix `word`.
create or replace function to_prefix_lexeme(word text) returns text
language sql immutable
return '''' || replace(replace(word, E'\\', E'\\\\'), '''', '''''') || ''':*';

-- Returns a tsquery for words_of_user. The first 10 words of `search` must each be a prefix of a
-- word. Returns null when it has no words.
create or replace function user_words_query(project uuid, search text) returns tsquery
language sql immutable
return (
  select string_agg(to_prefix_lexeme(word_prefix(project) || left(w.word, 200)), '&')::tsquery
  from (select distinct w.word from unnest(split_words(search)) as w (word) where w.word <> '' limit 10) w
);

-- Returns the ids of up to `max_rows` users, newest first. Their user_id or an alias matches
-- `pattern`, or their properties have all words of `search`. With `before`, only users with an
-- earlier id are returned. It reads up to 10,000 matches of each kind. When a kind has more, it
-- also reads the newest 2,000 users: with so many matches, these usually fill a page. Users without
-- current words in the index are parsed, the newest first, for up to 500 ms. They are listed before
-- the index is read: on Citus each statement has a snapshot of its own, and the indexer works
-- meanwhile.
--
-- It is planned each time, because `like` uses its index only for a known pattern. The settings
-- force the index of words, whatever the statistics say.
create or replace function find_users(project uuid, pattern text, search text, before uuid, max_rows int) returns setof uuid
language plpgsql stable
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set jit = off
as $$
declare
  ends_at timestamptz;
  query tsquery := user_words_query(project, search);
  named uuid[] := array(
    select i.id
    from identities i
    where i.project_id = project and lower(i.user_id) like pattern
    limit 10000
  );
  aliased uuid[] := array(
    select i.id
    from aliases a
      join identities i on i.project_id = a.project_id and i.user_id = a.user_id
    where a.project_id = project and lower(a.alias) like pattern
    limit 10000
  );
  changed uuid[] := array(
    select distinct u.id from unindexed_users u where u.project_id = project order by u.id desc limit 20000
  );
  described uuid[] := array(
    select w.id
    from user_words w
    where w.words @@ query and (w.project_id = project) is true
      and not exists (select from unindexed_users u where u.project_id = w.project_id and u.id = w.id)
    limit 10000
  );
  unindexed uuid[] := '{}';
  newest uuid[];
begin
  if query is not null then
    ends_at := clock_timestamp() + interval '500 ms';
    for n in 1 .. cardinality(changed) by 20 loop
      exit when clock_timestamp() >= ends_at;
      unindexed := unindexed || array(
        select i.id
        from identities i
        where i.project_id = project and i.id = any(changed[n:n + 19])
          and words_of_user(project, i.properties) @@ query
      );
    end loop;
  end if;
  if 10000 in (cardinality(named), cardinality(aliased), cardinality(described)) then
    newest := array(
      select i.id
      from (
        select i.id, i.project_id, i.user_id
        from identities i
        where i.project_id = project and (before is null or i.id < before)
        order by i.id desc
        limit 2000
      ) i
      where lower(i.user_id) like pattern
        or exists (
          select from aliases a
          where a.project_id = i.project_id and a.user_id = i.user_id and lower(a.alias) like pattern
        )
        or (
          exists (
            select from user_words w where w.project_id = i.project_id and w.id = i.id and w.words @@ query
          )
          and not exists (select from unindexed_users u where u.project_id = i.project_id and u.id = i.id)
        )
      order by i.id desc
      limit max_rows
    );
  end if;
  return query
  select distinct f.id
  from unnest(named || aliased || described || unindexed || newest) as f (id)
  where before is null or f.id < before
  order by f.id desc
  limit max_rows;
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

  for part in
    select s.segment, s.first_at as starts_at
    from event_segments s
    where s.project_id = project and s.segment between first_seq >> 12 and last_seq >> 12
      and s.first_at < user_seen_times.first_at
    order by s.first_at
  loop
    exit when part.starts_at >= first_at;
    first_at := least(first_at, (
      select min(e.occurred_at)
      from unnest(present, first_seqs, last_seqs) as n (name, first_seq, last_seq)
        join events e on e.project_id = project and e.user_ref = n.name and e.user_ref is not null
          and e.seq between part.segment << 12 and ((part.segment + 1) << 12) - 1
      where e.deleted_at is null
        and n.first_seq >> 12 <= part.segment and n.last_seq >> 12 >= part.segment
    ));
  end loop;

  for part in
    select s.segment, s.last_at as ends_at
    from event_segments s
    where s.project_id = project and s.segment between first_seq >> 12 and last_seq >> 12
      and s.last_at > user_seen_times.last_at
    order by s.last_at desc
  loop
    exit when part.ends_at <= last_at;
    last_at := greatest(last_at, (
      select max(e.occurred_at)
      from unnest(present, first_seqs, last_seqs) as n (name, first_seq, last_seq)
        join events e on e.project_id = project and e.user_ref = n.name and e.user_ref is not null
          and e.seq between part.segment << 12 and ((part.segment + 1) << 12) - 1
      where e.deleted_at is null
        and n.first_seq >> 12 <= part.segment and n.last_seq >> 12 >= part.segment
    ));
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
