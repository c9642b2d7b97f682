-- Postgres' text parser takes quadratic time on a long run of characters without white space. At
-- each punctuation mark it tries again to read an address or a path. 60,000 characters take most of
-- a minute, while the project's log is locked. So texts over 1,000 bytes get a space after each
-- punctuation mark that follows 99 characters without white space. For the same reason, a space
-- breaks up the start of each HTML comment.

-- Returns the words of an event that search matches.
create function words_of_event(title text, description text) returns tsvector
language sql immutable parallel safe as $$
  select to_tsvector('simple', case
    when octet_length(title) + coalesce(octet_length(description), 0) > 1000 then
      regexp_replace(replace(title || ' ' || coalesce(description, ''), '<!', '< !'), '\S{99}[^[:alnum:]\s]', '\& ', 'g')
    else title || ' ' || coalesce(description, '')
  end)
$$;

-- Returns the search tokens of an event: its channel, source, tags and words. Each token starts
-- with the name of a bucket, a range of 16,384 seqs of one project. So a search reads no other
-- project, and only the buckets that it needs.
--
-- Matches are only candidates, which the caller must check: two buckets can have the same name, a
-- tag can look like a token, and long words are cut off.
--
-- The body repeats words_of_event and calls only built-in functions, because Postgres builds
-- indexes without our search path.
create function search_tokens(
  project uuid, seq bigint, channel_id uuid, source text, tags text[], title text, description text
) returns tsvector
language plpgsql immutable parallel safe as $$
declare
  bucket text := encode(substr(int8send(uuid_hash_extended(project, seq >> 14)), 1, 6), 'base64');
  content text := title || ' ' || coalesce(description, '');
  words text[];
begin
  if octet_length(content) > 1000 then
    content := regexp_replace(replace(content, '<!', '< !'), '\S{99}[^[:alnum:]\s]', '\& ', 'g');
  end if;
  words := tsvector_to_array(to_tsvector('simple', content));
  if octet_length(title) + coalesce(octet_length(description), 0) > 2000 then
    words := array(select left(word, 200) from unnest(words) as w (word));
  end if;
  return array_to_tsvector(array_remove(
    string_to_array(
      bucket || '=' || encode(substr(uuid_send(channel_id), 11), 'base64')
        || E'\x01' || bucket || '@' || source
        || E'\x01' || bucket || ' ' || array_to_string(words, E'\x01' || bucket || ' ')
        || case
          when tags = '{}' then ''
          else E'\x01' || bucket || '#' || array_to_string(tags, E'\x01' || bucket || '#')
        end,
      E'\x01', ''
    ),
    null
  ));
end
$$;

-- Serves the search by words, tags and sources (find_search_candidates). A pending list of new rows
-- keeps inserts cheap. It is short, because every search reads it, and because the insert that
-- fills it must merge it into the index.
create index events_tokens on events
  using gin (search_tokens(project_id, seq, channel_id, source, tags, title, description))
  with (gin_pending_list_limit = 256);

-- Returns a tsquery for the search tokens of a range of a project's buckets. An event must be in
-- one of the channels, come from one of the sources, have all `tags`, and have a word with each
-- prefix in `words`. An empty list does not filter.
create function search_query(
  project uuid, first_bucket bigint, last_bucket bigint,
  channel_ids uuid[], sources text[], tags text[], words text[]
) returns tsquery
language sql immutable as $$
  with wanted as (
    -- An event must have one token of each group. Each word and each tag is its own group.
    select 'channel' as what, '=' || encode(substr(uuid_send(id), 11), 'base64') as token, '' as how
    from unnest(channel_ids) as c (id)
    union all
    select 'source', '@' || split_part(source, E'\x01', 1), '' from unnest(sources) as s (source)
    union all
    select 'tag ' || tag, '#' || split_part(tag, E'\x01', 1), '' from unnest(tags) as t (tag)
    union all
    select 'word ' || word, ' ' || left(word, 200), ':*' from unnest(words) as w (word)
  ), quoted as (
    select what, replace(replace(token, E'\\', E'\\\\'), '''', '''''') || '''' || how as token from wanted
  ), buckets as (
    select '''' || encode(substr(int8send(uuid_hash_extended(project, n)), 1, 6), 'base64') as name
    from generate_series(first_bucket, last_bucket) as s (n)
  ), groups as (
    select s.name, '(' || string_agg(s.name || q.token, '|') || ')' as one_of
    from buckets s, quoted q
    group by s.name, q.what
  ), parts as (
    select '(' || string_agg(one_of, '&') || ')' as all_of from groups group by name
  )
  select string_agg(all_of, '|')::tsquery from parts
$$;

-- Returns the seqs of up to `max_rows` candidates for search_query, in order, from first_seq to
-- last_seq. It stops after time_limit_ms. When it stops before max_rows, the last seq is the last
-- one that it examined, which may not match.
--
-- The settings force the index events_tokens, whatever the statistics say. The cost of a query
-- grows with its number of buckets. So fewer buckets follow a slow query, and more follow a fast
-- one.
create function find_search_candidates(
  project uuid, channel_ids uuid[], sources text[], tags text[], words text[],
  first_seq bigint, last_seq bigint, is_newest_first boolean, max_rows int, time_limit_ms float8
) returns setof bigint
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_indexscan = off
set enable_indexonlyscan = off
set max_parallel_workers_per_gather = 0
set jit = off
as $$
declare
  ends_at timestamptz := clock_timestamp() + time_limit_ms * interval '1 ms';
  at timestamptz;
  buckets int := 1;
  part_first bigint := first_seq;
  part_last bigint := last_seq;
  end_seq bigint := case when is_newest_first then first_seq else last_seq end;
  reached bigint;
  query tsquery;
  found bigint[];
  missing int := max_rows;
begin
  loop
    at := clock_timestamp();
    if is_newest_first then
      part_first := greatest(first_seq, ((part_last >> 14) - buckets + 1) << 14);
    else
      part_last := least(last_seq, (((part_first >> 14) + buckets) << 14) - 1);
    end if;
    query := search_query(project, part_first >> 14, part_last >> 14, channel_ids, sources, tags, words);
    found := array(
      select e.seq
      from events e
      where search_tokens(e.project_id, e.seq, e.channel_id, e.source, e.tags, e.title, e.description) @@ query
        -- `is true` keeps the planner from using other indexes for these conditions.
        and (e.project_id = project) is true
        and (e.seq between part_first and part_last) is true
      order by case when is_newest_first then -e.seq else e.seq end
      limit missing
    );
    return query select f.seq from unnest(found) as f (seq);
    missing := missing - cardinality(found);
    exit when missing <= 0;
    reached := case when is_newest_first then part_first else part_last end;
    if clock_timestamp() >= ends_at or reached = end_seq then
      return query select reached where reached is distinct from found[cardinality(found)];
      exit;
    end if;
    if clock_timestamp() < at + interval '2 ms' then
      buckets := least(2 * buckets, 16);
    elsif clock_timestamp() > at + interval '8 ms' then
      buckets := greatest(buckets / 2, 1);
    end if;
    if is_newest_first then
      part_last := part_first - 1;
    else
      part_first := part_last + 1;
    end if;
  end loop;
end
$$;
