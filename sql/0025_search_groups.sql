-- Returns the seqs of up to `max_rows` candidates, in order, from first_seq to last_seq. An event
-- must have a token of each group. A group is a number, from 1 on without holes, and each range of
-- tokens has the number of its group in `groups`. Each event of the tail is a candidate.
--
-- It stops after time_limit_ms. When it stops before max_rows, the last seq is the last one that it
-- examined, which may not match.
--
-- Unlike find_search_candidates, which servers of 0.2.0 call, it also serves alternatives of
-- different kinds, such as a tag or a word.
--
-- The settings force the primary keys, whatever the statistics say. Fewer parts follow slow ones,
-- and more follow fast ones.
create function find_token_candidates(
  project uuid, groups int[], lows text[], highs text[],
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
  group_count int := (select max(g.number) from unnest(groups) as g (number));
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
