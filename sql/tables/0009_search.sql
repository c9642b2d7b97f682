-- Postgres' text parser takes quadratic time on a long run of characters without white space. At
-- each punctuation mark it tries again to read an address or a path. 60,000 characters take most of
-- a minute. So texts over 1,000 bytes get a space after each punctuation mark that follows 99
-- characters without white space. For the same reason, a space breaks up the start of each HTML
-- comment.

-- Returns the words of an event that search matches.
create function words_of_event(title text, description text) returns tsvector
language sql immutable parallel safe as $$
  select to_tsvector('simple', case
    when octet_length(title) + coalesce(octet_length(description), 0) > 1000 then
      regexp_replace(replace(title || ' ' || coalesce(description, ''), '<!', '< !'), '\S{99}[^[:alnum:]\s]', '\& ', 'g')
    else title || ' ' || coalesce(description, '')
  end)
$$;

-- One row is the progress of the indexer in a project's log: the search index has all events up to
-- seq. The events after it are the tail, which a search reads from the log. A project without a row
-- is not indexed yet.
create table search_cursors (
  project_id uuid primary key references projects,
  seq bigint not null default 0
) with (fillfactor = 50);

-- One row is a part of the search index. It covers the events from first_seq to last_seq, in one
-- segment of 4,096 seqs, as in event_segments. Parts do not overlap, and reach up to the cursor. A
-- complete segment is one part, unless its texts are long.
create table search_parts (
  project_id uuid not null,
  first_seq bigint not null,
  last_seq bigint not null,
  primary key (project_id, first_seq)
);

-- One row is a range of tokens of a part, and the events that have them. A token is a word, a tag,
-- a source or a channel. The range reaches from first_token to the first_token of the next row. An
-- event is stored as its offset from first_seq, and can be deleted since. A row has one of two
-- forms:
--   * Up to 64 tokens. `counts` has the number of offsets of each, and `offsets` has all of them.
--   * One token with more than 256 offsets, as bits.
create table event_tokens (
  project_id uuid not null,
  first_seq bigint not null,
  first_token text collate "C" not null,
  tokens text[] collate "C",
  counts smallint[],
  offsets smallint[],
  bits bit(4096),
  primary key (project_id, first_seq, first_token),
  check (num_nonnulls(tokens, counts, offsets) = case when bits is null then 3 else 0 end)
);

-- One row is a segment whose parts may name deleted events. The indexer indexes it anew, but not
-- at once, because more deletions often follow. first_at and last_at are the times of deletions.
create table stale_segments (
  project_id uuid not null references projects,
  segment bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  primary key (project_id, segment)
);

-- Returns the search tokens of an event: its words, tags, source and channel. Long words are cut
-- off. An event with more than 500 words has the token '*' in their place, which stands for every
-- word. A token only yields candidates, which the caller must check: a word can look like a tag.
create function search_tokens(channel_id uuid, source text, tags text[], title text, description text)
returns text[]
language plpgsql immutable parallel safe as $$
declare
  tokens text[] := tsvector_to_array(words_of_event(title, description));
begin
  if octet_length(title) + coalesce(octet_length(description), 0) > 1000 then
    if cardinality(tokens) > 500 then
      tokens := '{*}';
    else
      tokens := array(select distinct left(w.word, 200) from unnest(tokens) as w (word));
    end if;
  end if;
  if tags <> '{}' then
    tokens := tokens || array(select '#' || t.tag from unnest(tags) as t (tag));
  end if;
  return tokens || array['@' || source, '=' || channel_id];
end
$$;

-- Returns offsets in a part as bits.
create function offsets_to_bits(offsets smallint[]) returns bit(4096)
language plpgsql immutable parallel safe as $$
declare
  bits bit(4096) := 0::bit(4096);
  n smallint;
begin
  foreach n in array offsets loop
    bits := set_bit(bits, n, 1);
  end loop;
  return bits;
end
$$;

-- Concatenates arrays of offsets.
create aggregate concat_offsets(smallint[]) (sfunc = array_cat, stype = smallint[]);

-- Adds a part with the events from first_seq to last_seq to the search index. The caller has locked
-- the project's search cursor.
create function add_search_part(project uuid, first_seq bigint, last_seq bigint) returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set work_mem = '64MB'
set jit = off
as $$
begin
  insert into event_tokens (project_id, first_seq, first_token, tokens, counts, offsets, bits)
  with found as (
    select t.token collate "C" as token, array_agg((e.seq - add_search_part.first_seq)::smallint) as offsets
    from events e
      cross join lateral unnest(
        search_tokens(e.channel_id, e.source, e.tags, e.title, e.description)
      ) as t (token)
    where e.project_id = project and e.seq >= add_search_part.first_seq and e.seq <= add_search_part.last_seq
    group by 1
  ), numbered as (
    select
      f.token, f.offsets, cardinality(f.offsets) as n,
      -- A token with bits has a row of its own, and the next token begins another row.
      row_number() over (order by f.token) / 64 as group_number,
      count(*) filter (where cardinality(f.offsets) > 256) over (order by f.token rows unbounded preceding) as bits_before
    from found f
  )
  select
    project, add_search_part.first_seq, min(n.token),
    array_agg(n.token order by n.token), array_agg(n.n::smallint order by n.token),
    concat_offsets(n.offsets order by n.token), null
  from numbered n
  where n.n <= 256
  group by n.group_number, n.bits_before
  union all
  select project, add_search_part.first_seq, n.token, null, null, null, offsets_to_bits(n.offsets)
  from numbered n
  where n.n > 256;
  insert into search_parts (project_id, first_seq, last_seq)
    values (project, add_search_part.first_seq, add_search_part.last_seq);
end
$$;

-- Removes the parts between two seqs.
create function remove_search_parts(project uuid, first_seq bigint, last_seq bigint) returns void
language sql as $$
  delete from event_tokens t
    where t.project_id = project
      and t.first_seq >= remove_search_parts.first_seq and t.first_seq <= remove_search_parts.last_seq;
  delete from search_parts p
    where p.project_id = project
      and p.first_seq >= remove_search_parts.first_seq and p.first_seq <= remove_search_parts.last_seq;
$$;

-- Locks a project's search cursor until the transaction ends, and returns its seq. Returns null
-- when another transaction has locked it, or when the project is deleted.
create function try_lock_search_cursor(project uuid) returns bigint
language plpgsql as $$
declare
  cursor_seq bigint;
begin
  select c.seq into cursor_seq
    from search_cursors c where c.project_id = project for update skip locked;
  if found then
    return cursor_seq;
  end if;
  insert into search_cursors (project_id)
    select p.id from projects p where p.id = project and p.deleted_at is null
    on conflict (project_id) do nothing
    returning seq into cursor_seq;
  return cursor_seq;
end
$$;

-- Returns the last seq, up to last_seq, for which the texts of the events from first_seq on have at
-- most max_bytes. It is at least first_seq.
create function limit_search_part(project uuid, first_seq bigint, last_seq bigint, max_bytes int) returns bigint
language sql stable as $$
  select greatest(coalesce(min(s.seq) - 1, limit_search_part.last_seq), limit_search_part.first_seq)
  from (
    select e.seq, sum(octet_length(e.title) + coalesce(octet_length(e.description), 0)) over (order by e.seq) as bytes
    from events e
    where e.project_id = project and e.seq >= limit_search_part.first_seq and e.seq <= limit_search_part.last_seq
  ) s
  where s.bytes > max_bytes
$$;

-- Indexes the next events of a project, up to the end of a segment, or fewer whose texts have up to
-- max_bytes. The beginning of a segment is only indexed if it has at least min_events. At its end,
-- a segment is indexed anew as one part. Returns the last indexed seq, the number of seqs that this
-- call indexed, and the last seq of the log; no row when another transaction indexes the project.
create function index_next_events(project uuid, min_events int, max_bytes int)
returns table (indexed_seq bigint, indexed int, last_seq bigint)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  cursor_seq bigint := try_lock_search_cursor(project);
  part_seq bigint := cursor_seq + 1;
  segment_seq bigint := greatest(part_seq & ~4095::bigint, 1);
  end_seq bigint;
begin
  if cursor_seq is null then
    return;
  end if;
  -- Commits without waiting for fsync. After a crash, the events are indexed again.
  perform set_config('synchronous_commit', 'off', true);
  -- Every event up to the head is visible, because a log is in the order of commits.
  last_seq := coalesce((select l.last_seq from event_logs l where l.project_id = project), cursor_seq);
  indexed_seq := cursor_seq;
  indexed := 0;
  end_seq := least(index_next_events.last_seq, part_seq | 4095);
  if (end_seq & 4095) <> 4095 and end_seq - cursor_seq < min_events then
    return next;
    return;
  end if;
  if part_seq > segment_seq and (end_seq & 4095) = 4095
    and limit_search_part(project, segment_seq, end_seq, max_bytes) = end_seq
  then
    perform remove_search_parts(project, segment_seq, end_seq);
    part_seq := segment_seq;
  else
    end_seq := limit_search_part(project, part_seq, end_seq, max_bytes);
  end if;
  perform add_search_part(project, part_seq, end_seq);
  update search_cursors c set seq = end_seq where c.project_id = project;
  indexed_seq := end_seq;
  indexed := end_seq - cursor_seq;
  return next;
end
$$;

-- Indexes a segment anew, in parts whose texts have up to max_bytes. Returns false when another
-- transaction indexes the project.
create function reindex_segment(project uuid, segment_number bigint, max_bytes int) returns boolean
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  cursor_seq bigint := try_lock_search_cursor(project);
  part_seq bigint := greatest(segment_number << 12, 1);
  last_seq bigint := least(cursor_seq, (segment_number << 12) | 4095);
  end_seq bigint;
begin
  if cursor_seq is null then
    return false;
  end if;
  perform remove_search_parts(project, part_seq, last_seq);
  while part_seq <= last_seq loop
    end_seq := limit_search_part(project, part_seq, last_seq, max_bytes);
    perform add_search_part(project, part_seq, end_seq);
    part_seq := end_seq + 1;
  end loop;
  return true;
end
$$;

-- Indexes one part of the search index anew. Returns false when another transaction indexes the
-- project.
create function reindex_part(project uuid, part_seq bigint) returns boolean
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  end_seq bigint;
begin
  if try_lock_search_cursor(project) is null then
    return false;
  end if;
  perform set_config('synchronous_commit', 'off', true);
  -- The part can be gone, because its segment has become one part.
  select p.last_seq into end_seq
    from search_parts p where p.project_id = project and p.first_seq = part_seq;
  if found then
    perform remove_search_parts(project, part_seq, part_seq);
    perform add_search_part(project, part_seq, end_seq);
  end if;
  return true;
end
$$;

-- Returns the offsets of all tokens from `low` to `high` in a row of event_tokens. Some exist.
create function offsets_of_tokens(tokens text[], counts smallint[], offsets smallint[], low text, high text)
returns smallint[]
language plpgsql immutable parallel safe as $$
declare
  -- width_bucket returns the number of tokens up to a bound, because tokens are in order.
  from_token int := width_bucket(low collate "C", tokens);
  to_token int := width_bucket(high collate "C", tokens);
  n int := 0;
begin
  if from_token = 0 or tokens[from_token] <> low then
    from_token := from_token + 1;
  end if;
  n := (select coalesce(sum(c.n), 0) from unnest(counts[1:from_token - 1]) as c (n));
  return offsets[n + 1:n + (select sum(c.n) from unnest(counts[from_token:to_token]) as c (n))];
end
$$;

-- Finds tokens in some parts of the search index. A group is a number, and each of its ranges of
-- tokens has this number in `groups`, from 1 on. Returns the events of each part that has a token
-- of each group: a row for each group, in order, with the offsets and bits of its events. A group
-- with very many tokens matches all events, because a search checks its candidates anyway.
create function find_tokens(project uuid, parts bigint[], groups int[], lows text[], highs text[])
returns table (part_seq bigint, group_number int, offsets smallint[], bits bit(4096))
language sql stable as $$
  select h.part_seq, h.group_number, h.offsets, h.bits
  from (
    select
      p.seq as part_seq, r.number as group_number, concat_offsets(t.offsets) as offsets,
      case when count(*) > 100 then (-1)::bit(4096) else bit_or(t.bits) end as bits,
      count(*) over (partition by p.seq) as groups_found
    from unnest(parts) as p (seq)
      cross join unnest(groups, lows, highs) as r (number, low, high)
      cross join lateral (
        select
          t.bits,
          case when t.bits is null then offsets_of_tokens(t.tokens, t.counts, t.offsets, r.low, r.high) end as offsets
        from (
          -- The row that has the first token of the range begins at it, or before it.
          (
            select t.first_token, t.tokens, t.counts, t.offsets, t.bits
            from event_tokens t
            where t.project_id = project and t.first_seq = p.seq and t.first_token <= r.low
            order by t.first_token desc
            limit 1
          )
          union all
          select t.first_token, t.tokens, t.counts, t.offsets, t.bits
          from event_tokens t
          where r.low < r.high
            and t.project_id = project and t.first_seq = p.seq and t.first_token > r.low and t.first_token <= r.high
        ) t
        where case
            when t.bits is null then
              width_bucket(r.high collate "C", t.tokens) > width_bucket(r.low collate "C", t.tokens)
              or t.tokens[width_bucket(r.low collate "C", t.tokens)] = r.low
            else t.first_token >= r.low
          end
        limit 101
      ) t
    group by p.seq, r.number
  ) h
  where h.groups_found = (select max(g.number) from unnest(groups) as g (number))
  order by h.part_seq, h.group_number
$$;

-- Returns the offsets of events that are in both of two sets. A set is offsets and bits, and each
-- can be null.
create function intersect_offsets(a smallint[], a_bits bit(4096), b smallint[], b_bits bit(4096)) returns smallint[]
language sql immutable parallel safe as $$
  select array(
    select o.n from unnest(a) as o (n) where get_bit(b_bits, o.n) = 1
    union all
    select o.n from unnest(b) as o (n) where get_bit(a_bits, o.n) = 1
    union all
    (select o.n from unnest(a) as o (n) intersect select o.n from unnest(b) as o (n))
  )
$$;

-- Returns the seqs of up to `max_rows` candidates, in order, from first_seq to last_seq. An event
-- must be in one of the channels, come from one of the sources, have all `tags`, and have a word
-- with each prefix in `words`. An empty list does not filter. Each event of the tail is a
-- candidate.
--
-- It stops after time_limit_ms. When it stops before max_rows, the last seq is the last one that it
-- examined, which may not match.
--
-- The settings force the primary keys, whatever the statistics say. Fewer parts follow slow ones,
-- and more follow fast ones.
create function find_search_candidates(
  project uuid, channel_ids uuid[], sources text[], tags text[], words text[],
  first_seq bigint, last_seq bigint, is_newest_first boolean, max_rows int, time_limit_ms float8
) returns setof bigint
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set max_parallel_workers_per_gather = 0
set jit = off
as $$
declare
  ends_at timestamptz := clock_timestamp() + time_limit_ms * interval '1 ms';
  at timestamptz;
  cursor_seq bigint := coalesce((select c.seq from search_cursors c where c.project_id = project), 0);
  groups int[];
  lows text[];
  highs text[];
  group_count int;
  -- The range that is not examined yet, and the end of the range that is examined next.
  low bigint := first_seq;
  high bigint := last_seq;
  reached bigint;
  max_parts int := 4;
  parts bigint[];
  part record;
  offsets smallint[];
  bits bit(4096);
  found_seqs bigint[];
  missing int := max_rows;
begin
  select
      array_agg(r.number), array_agg(r.low), array_agg(r.high), max(r.number)
    into groups, lows, highs, group_count
    from (
      select dense_rank() over (order by t.kind, t.name) as number, t.low, t.high
      from (
        select 'channel', '', '=' || c.id, '=' || c.id from unnest(channel_ids) as c (id)
        union all
        select 'source', '', '@' || s.source, '@' || s.source from unnest(sources) as s (source)
        union all
        select 'tag', t.tag, '#' || t.tag, '#' || t.tag from unnest(tags) as t (tag)
        union all
        select 'word', w.word, left(w.word, 200), left(w.word, 200) || chr(1114111) from unnest(words) as w (word)
        union all
        select 'word', w.word, '*', '*' from unnest(words) as w (word)
      ) t (kind, name, low, high)
    ) r;
  loop
    at := clock_timestamp();
    found_seqs := '{}';
    if is_newest_first and high > cursor_seq then
      reached := greatest(low, cursor_seq + 1);
      found_seqs := array(
        select e.seq
        from events e
        where e.project_id = project and e.seq >= reached and e.seq <= high
        order by e.seq desc
        limit missing
      );
    elsif low > cursor_seq then
      reached := high;
      found_seqs := array(
        select e.seq
        from events e
        where e.project_id = project and e.seq >= low and e.seq <= high
        order by e.seq
        limit missing
      );
    else
      if is_newest_first then
        select array_agg(p.first_seq), min(p.first_seq) into parts, reached
          from (
            select p.first_seq
            from search_parts p
            where p.project_id = project and p.first_seq <= high
            order by p.first_seq desc
            limit max_parts
          ) p;
        reached := greatest(low, reached);
      else
        select array_agg(p.first_seq), max(p.last_seq) into parts, reached
          from (
            select p.first_seq, p.last_seq
            from search_parts p
            where p.project_id = project
              and p.first_seq >= coalesce((
                select b.first_seq
                from search_parts b
                where b.project_id = project and b.first_seq <= low
                order by b.first_seq desc
                limit 1
              ), low)
            order by p.first_seq
            limit max_parts
          ) p;
        reached := least(high, coalesce(greatest(low, reached), high));
      end if;
      for part in select * from find_tokens(project, parts, groups, lows, highs) loop
        if part.group_number = 1 then
          offsets := part.offsets;
          bits := part.bits;
        else
          offsets := intersect_offsets(offsets, bits, part.offsets, part.bits);
          bits := bits & part.bits;
        end if;
        if part.group_number = group_count then
          if bits <> 0::bit(4096) then
            offsets := offsets || array(
              select b.n::smallint from generate_series(0, 4095) as b (n) where get_bit(bits, b.n) = 1
            );
          end if;
          found_seqs := found_seqs || array(
            select part.part_seq + o.n from unnest(offsets) as o (n)
          );
        end if;
      end loop;
      found_seqs := array(
        select distinct s.seq
        from unnest(found_seqs) as s (seq)
        where s.seq >= low and s.seq <= high
      );
      found_seqs := case when is_newest_first
        then array(select s.seq from unnest(found_seqs) as s (seq) order by s.seq desc limit missing)
        else array(select s.seq from unnest(found_seqs) as s (seq) order by s.seq limit missing)
      end;
    end if;
    return query select f.seq from unnest(found_seqs) as f (seq);
    missing := missing - cardinality(found_seqs);
    exit when missing <= 0;
    if is_newest_first then
      high := reached - 1;
    else
      low := reached + 1;
    end if;
    if low > high or clock_timestamp() >= ends_at then
      return query select reached where reached is distinct from found_seqs[cardinality(found_seqs)];
      exit;
    end if;
    if clock_timestamp() < at + interval '2 ms' then
      max_parts := least(2 * max_parts, 64);
    elsif clock_timestamp() > at + interval '8 ms' then
      max_parts := greatest(max_parts / 2, 1);
    end if;
  end loop;
end
$$;
