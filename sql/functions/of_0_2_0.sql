-- Functions that servers of 0.2.0 call, and later ones do not. They keep their meaning while such
-- servers run beside newer ones. The version after 0.3.0 drops them.

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
create or replace function find_search_candidates(
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

-- Returns what attempts of deliveries need: the webhook, and the event_text of its event. A
-- deleted webhook has no row; a deleted event, or none, is null. With may_probe, one delivery of a
-- webhook that has failed failures_to_pause times, and whose pause is over, becomes its probe. The
-- others wait probe_s seconds for its outcome.
create or replace function read_webhook_attempts(
  project_ids uuid[], webhook_ids uuid[], event_ids uuid[], may_probe boolean, failures_to_pause int, probe_s float8
) returns table (
  ord int, url text, preset text, secret text, previous_secret text, disabled_at timestamptz, paused_until timestamptz,
  is_probe boolean, type text, project text, organization_id uuid, organization text, now timestamptz,
  event_text text
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
  return query
    with wanted as materialized (
      select t.project_id, t.id, t.event_id, t.ord
      from unnest(project_ids, webhook_ids, event_ids) with ordinality as t (project_id, id, event_id, ord)
    ), probe_candidates as materialized (
      select f.project_id, f.id, f.ord
      from (
          select wanted.project_id, wanted.id, min(wanted.ord) as ord
          from wanted
          group by wanted.project_id, wanted.id
        ) f
        cross join lateral (
          select w.id
          from webhooks w
          where w.project_id = f.project_id and w.id = f.id
            and w.failures >= failures_to_pause and w.paused_until <= now() and w.disabled_at is null
            and may_probe
          -- A locked webhook must not delay the others.
          for no key update skip locked
        ) w
    ), probes as (
      update webhooks w set paused_until = now() + make_interval(secs => probe_s)
      from probe_candidates f
      where w.project_id = f.project_id and w.id = f.id
      returning f.ord
    )
    select
      t.ord::int, w.url, w.preset, w.secret,
      case when w.previous_until > now() then w.previous_secret end,
      w.disabled_at, w.paused_until, exists (select from probes p where p.ord = t.ord),
      w.type, p.name, o.id, o.name, clock_timestamp(),
      x.text
    from wanted t
      join webhooks w on w.project_id = t.project_id and w.id = t.id and w.deleted_at is null
      join projects p on p.id = w.project_id and p.deleted_at is null
      join organizations o on o.id = p.organization_id and o.deleted_at is null
      left join lateral event_by_id(t.project_id, t.event_id) e on e.deleted_at is null
      left join lateral channel_by_id(e.project_id, e.channel_id) c on true
      left join lateral event_text(
        e.project_id, e.id, e.seq, c.public_id, c.name, e.user_ref, e.occurred_at, e.created_at,
        e.title, e.description, e.icon, e.tags, e.metadata, e.source, e.notify
      ) x on e.id is not null;
end
$$;

-- Stores the settlements of claimed deliveries. A delivery that has ended becomes a record, and
-- also a dead letter if it was given up; any other waits for its next attempt. Returns the ids
-- whose token the caller still held; other deliveries stay unchanged. Rows are locked in the order
-- of their ids.
create or replace function settle_deliveries(
  ids uuid[], tokens uuid[], states text[], made_attempts int[], delays_ms float8[], reasons text[], latencies_ms bigint[]
) returns setof uuid
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
  return query
    with held as materialized (
      select i.id, i.state, i.attempts, i.delay_ms, i.reason, i.latency_ms
      from unnest(ids, tokens, states, made_attempts, delays_ms, reasons, latencies_ms)
          as i (id, token, state, attempts, delay_ms, reason, latency_ms)
        join outbox o on o.id = i.id and o.token = i.token
      order by o.id
      for update of o
    ), ended as (
      delete from outbox o
      using held h
      where o.id = h.id and h.state is not null
      returning
        o.id, o.project_id, o.event_id, o.kind, o.target_id, h.state, o.attempts + h.attempts as attempts,
        coalesce(h.reason, o.reason) as reason, h.latency_ms
    ), records as (
      insert into deliveries (
        id, project_id, event_id, kind, target_id, state, attempts, latency_ms, reason
      )
      select
        id, project_id, event_id, kind, target_id, state, attempts, latency_ms,
        case when state <> 'delivered' then reason end
      from ended
      on conflict (project_id, event_id, kind, target_id) do update set
        id = excluded.id, state = excluded.state, attempts = excluded.attempts,
        latency_ms = excluded.latency_ms, reason = excluded.reason, at = excluded.at
    ), new_dead_letters as (
      insert into dead_letters (id, project_id, event_id, kind, target_id, attempts, reason)
      select id, project_id, event_id, kind, target_id, attempts, coalesce(reason, '')
      from ended
      where state = 'dead'
      on conflict (project_id, event_id, kind, target_id) do update set
        id = excluded.id, attempts = excluded.attempts, reason = excluded.reason, at = excluded.at
    ), waiting as (
      update outbox o set
        available_at = now() + h.delay_ms * interval '1 ms',
        token = null, claim_count = 0, attempts = o.attempts + h.attempts, reason = coalesce(h.reason, o.reason)
      from held h
      where o.id = h.id and h.state is null
    )
    select id from held;
end
$$;
