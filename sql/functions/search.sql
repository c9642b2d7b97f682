-- Returns offsets in a part as bits.
create or replace function offsets_to_bits(offsets smallint[]) returns bit(4096)
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
create or replace aggregate concat_offsets(smallint[]) (sfunc = array_cat, stype = smallint[]);

-- Adds a part with the events from first_seq to last_seq to the search index, unless all of them
-- are gone. The caller has locked the project's search cursor.
--
-- The tokens of an event are those of its words, its tags, source and channel, of a level that is
-- not normal, and of its thread and state. A token only yields candidates, which the caller must
-- check.
create or replace function add_search_part(project uuid, first_seq bigint, last_seq bigint) returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set work_mem = '64MB'
set jit = off
as $$
begin
  insert into event_tokens (project_id, first_seq, first_token, tokens, counts, offsets, bits)
  with part as (
    select (e.seq - add_search_part.first_seq)::smallint as n, e.channel_id, e.source, e.level, e.thread, e.state, e.tags, e.title, e.description
    from events e
    where e.project_id = project and e.seq >= add_search_part.first_seq and e.seq <= add_search_part.last_seq
  ), placed as (
    select p.n, unnest(tokens_of_words(words_to_find(fold_text(p.title || ' ' || coalesce(p.description, ''))))) as token
    from part p
    union all
    select p.n, '#' || unnest(p.tags) from part p
  ), found as (
    select p.token collate "C" as token, array_agg(p.n) as offsets from placed p group by 1
    union all
    select '@' || p.source, array_agg(p.n) from part p group by p.source
    union all
    select '=' || p.channel_id, array_agg(p.n) from part p group by p.channel_id
    union all
    select '!' || level_name(p.level), array_agg(p.n) from part p where p.level is not null group by p.level
    union all
    select '!' || state_name(p.state), array_agg(p.n) from part p where p.state is not null group by p.state
    union all
    select '%' || p.thread, array_agg(p.n) from part p where p.thread is not null group by p.thread
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
  select
    project, add_search_part.first_seq, n.token, null, null, null,
    -- Most events have one source, and often a word or tag in common.
    case when n.n = (select count(*) from part)
      then (select offsets_to_bits(array_agg(p.n)) from part p)
      else offsets_to_bits(n.offsets)
    end
  from numbered n
  where n.n > 256;
  if exists (
    select from events e
    where e.project_id = project and e.seq >= add_search_part.first_seq and e.seq <= add_search_part.last_seq
  ) then
    insert into search_parts (project_id, first_seq, last_seq, rules)
      values (project, add_search_part.first_seq, add_search_part.last_seq, search_rules());
  end if;
end
$$;

-- Removes the parts between two seqs.
create or replace function remove_search_parts(project uuid, first_seq bigint, last_seq bigint) returns void
language sql
set search_path from current
as $$
  delete from event_tokens t
    where t.project_id = project
      and t.first_seq >= remove_search_parts.first_seq and t.first_seq <= remove_search_parts.last_seq;
  delete from search_parts p
    where p.project_id = project
      and p.first_seq >= remove_search_parts.first_seq and p.first_seq <= remove_search_parts.last_seq;
$$;

-- Returns the search cursor of a project; no row before the first part.
create or replace function search_cursor_of(project uuid) returns setof search_cursors
language sql stable as $$
  select c.* from search_cursors c where c.project_id = project
$$;

-- Locks a project's search cursor until the transaction ends, and returns its seq. Returns null
-- when another transaction has locked it, or when the project is deleted and has no log.
create or replace function try_lock_search_cursor(project uuid) returns bigint
language plpgsql
as $$
declare
  cursor_seq bigint;
begin
  select c.seq into cursor_seq
    from search_cursors c where c.project_id = project for update skip locked;
  if found then
    return cursor_seq;
  end if;
  insert into search_cursors (project_id)
    select l.project_id from event_logs l where l.project_id = project
    on conflict (project_id) do nothing
    returning seq into cursor_seq;
  return cursor_seq;
end
$$;

-- Returns the last seq, up to last_seq, for which the texts of the events from first_seq on have at
-- most max_bytes. It is at least first_seq.
create or replace function limit_search_part(project uuid, first_seq bigint, last_seq bigint, max_bytes int) returns bigint
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
create or replace function index_next_events(project uuid, min_events int, max_bytes int)
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

-- Forgets the times of a segment whose events are all gone. Further events come into later segments
-- only, so no lock is needed.
create or replace function forget_empty_segment(project uuid, segment_number bigint) returns void
language sql
set search_path from current
as $$
  delete from event_segments s
    where s.project_id = project and s.segment = segment_number
      and s.segment < (select (l.last_seq + 1) >> 12 from event_logs l where l.project_id = project)
      and not exists (
        select from events e
        where e.project_id = project
          and e.seq >= segment_number << 12 and e.seq <= (segment_number << 12 | 4095)
      );
$$;

-- Indexes a segment anew, in parts whose texts have up to max_bytes. Returns false when another
-- transaction indexes the project.
create or replace function reindex_segment(project uuid, segment_number bigint, max_bytes int) returns boolean
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
  perform forget_empty_segment(project, segment_number);
  return true;
end
$$;

-- Indexes one part of the search index anew. Returns false when another transaction indexes the
-- project.
create or replace function reindex_part(project uuid, part_seq bigint) returns boolean
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
    perform forget_empty_segment(project, part_seq >> 12);
  end if;
  return true;
end
$$;

-- Returns the offsets of all tokens from `low` to `high` in a row of event_tokens. Some exist.
create or replace function offsets_of_tokens(tokens text[], counts smallint[], offsets smallint[], low text, high text)
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
create or replace function find_tokens(project uuid, parts bigint[], groups int[], lows text[], highs text[])
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
create or replace function intersect_offsets(a smallint[], a_bits bit(4096), b smallint[], b_bits bit(4096)) returns smallint[]
language sql immutable parallel safe
return array(
  select o.n from unnest(a) as o (n) where get_bit(b_bits, o.n) = 1
  union all
  select o.n from unnest(b) as o (n) where get_bit(a_bits, o.n) = 1
  union all
  (select o.n from unnest(a) as o (n) intersect select o.n from unnest(b) as o (n))
);

-- Returns the seqs of up to `max_rows` candidates, in order, from first_seq to last_seq. An event
-- must have a token of each group. A group is a number, from 1 on without holes, and each range of
-- tokens has the number of its group in `groups`. Each event of the tail is a candidate, and so is
-- each one of a part of former rules. There are no parts where all events are gone.
--
-- It stops after time_limit_ms. When it stops before max_rows, the last seq is the last one that it
-- examined, which may not match.
--
-- The settings force the primary keys, whatever the statistics say. Fewer parts follow slow ones,
-- and more follow fast ones.
create or replace function find_token_candidates(
  project uuid, groups int[], lows text[], highs text[],
  first_seq bigint, last_seq bigint, is_newest_first boolean, max_rows int, time_limit_ms float8
) returns setof bigint
language plpgsql stable
set search_path from current
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
  group_count int := (select max(g.number) from unnest(groups) as g (number));
  -- The range that is not examined yet, and the end of the range that is examined next.
  low bigint := first_seq;
  high bigint := last_seq;
  reached bigint;
  max_parts int := 4;
  parts bigint[];
  former_parts bigint[];
  part record;
  offsets smallint[];
  bits bit(4096);
  found_seqs bigint[];
  missing int := max_rows;
begin
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
      select
          array_agg(p.first_seq) filter (where p.rules = search_rules()),
          array_agg(p.first_seq) filter (where p.rules <> search_rules()),
          case when is_newest_first
            then greatest(low, min(p.first_seq))
            else least(high, coalesce(max(p.last_seq), cursor_seq))
          end
        into parts, former_parts, reached
        from (
          (
            select p.first_seq, p.last_seq, p.rules
            from search_parts p
            where is_newest_first and p.project_id = project and p.first_seq <= high
            order by p.first_seq desc
            limit max_parts
          )
          union all
          (
            select p.first_seq, p.last_seq, p.rules
            from search_parts p
            where not is_newest_first and p.project_id = project
              and p.first_seq >= coalesce((
                select case when b.last_seq >= low then b.first_seq end
                from search_parts b
                where b.project_id = project and b.first_seq <= low
                order by b.first_seq desc
                limit 1
              ), low)
            order by p.first_seq
            limit max_parts
          )
        ) p;
      for part in select t.* from find_tokens(project, parts, groups, lows, highs) t loop
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
        select f.seq
        from (
          select s.seq from unnest(found_seqs) as s (seq)
          union
          select n.seq
          from search_parts p
            cross join lateral generate_series(p.first_seq, p.last_seq) as n (seq)
          where p.project_id = project and p.first_seq = any(former_parts)
        ) f
        where f.seq >= low and f.seq <= high
        order by case when is_newest_first then -f.seq else f.seq end
        limit missing
      );
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
