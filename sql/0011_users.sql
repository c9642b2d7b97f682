-- Returns the words of a user's properties. Each word starts with a short hash of the project, so a
-- search reads no other project. Matches are only candidates, which the caller must check: two
-- projects can have the same hash, and long words are cut off. It reads the first 65,536 characters
-- of long properties as text, prepared as in words_of_event. As jsonb they could contain numbers
-- that are out of range. The body calls only built-in functions, because Postgres builds indexes
-- without our search path.
create function words_of_user(project uuid, properties json) returns tsvector
language plpgsql immutable parallel safe as $$
declare
  name text := encode(substr(int8send(uuid_hash_extended(project, 0)), 1, 6), 'base64') || ' ';
  content text := properties::text;
  parsed tsvector;
begin
  if content = '{}' then
    return ''::tsvector;
  end if;
  if octet_length(content) <= 1000 then
    parsed := json_to_tsvector('simple', properties, '["string", "numeric"]');
  else
    content := left(content, 65536);
    -- Removes keys, escapes, quotes and brackets.
    content := regexp_replace(content, '"(?:[^"\\]|\\.)*":', ' ', 'g');
    content := regexp_replace(content, '\\(?:u[0-9a-f]{4}|.)', ' ', 'g');
    content := translate(content, '"[]{}', '     ');
    content := regexp_replace(replace(content, '<!', '< !'), '\S{99}[^[:alnum:]\s]', '\& ', 'g');
    parsed := to_tsvector('simple', content);
  end if;
  return array_to_tsvector(array(
    select name || left(w.word, 200) from unnest(tsvector_to_array(parsed)) as w (word)
  ));
end
$$;

-- Serves the search for users by a prefix of the user_id.
create index identities_of_name on identities (project_id, lower(user_id) text_pattern_ops);

-- Serves the search for users by a prefix of an alias.
create index aliases_of_name on aliases (project_id, lower(alias) text_pattern_ops);

-- Serves the search for users by words in their properties. A pending list of new rows keeps
-- identify cheap. It is very short, because the identify that fills it must merge it into the index
-- while the project's log is locked.
create index identities_words on identities using gin (words_of_user(project_id, properties))
  with (gin_pending_list_limit = 64);

-- Returns the tsquery term for all words with the prefix `word`.
create function to_prefix_lexeme(word text) returns text
language sql immutable
return '''' || replace(replace(word, E'\\', E'\\\\'), '''', '''''') || ''':*';

-- Returns a tsquery for words_of_user. Each of `words`, or else all parts that Postgres splits it
-- into, must be a prefix of a word.
create function user_words_query(project uuid, words text[]) returns tsquery
language sql immutable as $$
  with tokens as (
    select w.ord, w.word as whole, p.part
    from unnest(words) with ordinality as w (word, ord)
      cross join lateral (
        select null as part
        union all
        select t.part from unnest(tsvector_to_array(to_tsvector('simple', w.word))) as t (part)
      ) p
  ), quoted as (
    select ord, part is null as is_whole,
      to_prefix_lexeme(
        encode(substr(int8send(uuid_hash_extended(project, 0)), 1, 6), 'base64')
          || ' ' || left(coalesce(part, lower(whole)), 200)
      ) as token
    from tokens
  ), alternatives as (
    select ord,
      '(' || string_agg(token, '&') filter (where is_whole)
        || coalesce('|(' || string_agg(token, '&') filter (where not is_whole) || ')', '') || ')' as text
    from quoted
    group by ord
  )
  select string_agg(text, '&')::tsquery from alternatives
$$;

-- Returns the ids of up to `max_rows` users, newest first. Their user_id or an alias matches
-- `pattern`, or their properties have all of `words`. With `before`, only users with an earlier id
-- are returned. It reads up to 10,000 matches of each kind. When a kind has more, it also reads the
-- newest 2,000 users: with so many matches, these usually fill a page.
--
-- It is planned each time, because `like` uses its index only for a known pattern. The settings
-- force the index of words, whatever the statistics say.
create function find_users(project uuid, pattern text, words text[], before uuid, max_rows int) returns setof uuid
language plpgsql stable
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set jit = off
as $$
declare
  query tsquery := user_words_query(project, words);
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
  described uuid[] := array(
    select i.id
    from identities i
    where words_of_user(i.project_id, i.properties) @@ query and (i.project_id = project) is true
    limit 10000
  );
  newest uuid[];
begin
  if 10000 in (cardinality(named), cardinality(aliased), cardinality(described)) then
    newest := array(
      select i.id
      from (
        select i.id, i.project_id, i.user_id, i.properties
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
        or words_of_user(i.project_id, i.properties) @@ query
      order by i.id desc
      limit max_rows
    );
  end if;
  return query
  select distinct f.id
  from unnest(named || aliased || described || newest) as f (id)
  where before is null or f.id < before
  order by f.id desc
  limit max_rows;
end
$$;

-- Returns the earliest and the latest occurred_at of a user's events. A backfilled event can be
-- anywhere in the log. So it first reads the user's first and last event in the log, and then each
-- segment that can contain an earlier or a later time.
create function user_seen_times(project uuid, names text[], out first_at timestamptz, out last_at timestamptz)
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  first_seq bigint;
  last_seq bigint;
  part record;
begin
  select min(e.seq), max(e.seq), min(e.occurred_at), max(e.occurred_at)
    into first_seq, last_seq, first_at, last_at
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
      ) e;

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
      from unnest(names) as n (name)
        join events e on e.project_id = project and e.user_ref = n.name and e.user_ref is not null
          and e.seq between part.segment << 12 and ((part.segment + 1) << 12) - 1
      where e.deleted_at is null
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
      from unnest(names) as n (name)
        join events e on e.project_id = project and e.user_ref = n.name and e.user_ref is not null
          and e.seq between part.segment << 12 and ((part.segment + 1) << 12) - 1
      where e.deleted_at is null
    ));
  end loop;
end
$$;

-- Summarizes a user's events: their number, up to 10,000, the earliest and the latest time, and the
-- ten channels with the most of the counted events.
create function user_activity(project uuid, name text)
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
