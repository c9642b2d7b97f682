-- Returns how urgent a thread is; null unless its state is running or firing.
create or replace function thread_severity(state smallint, level smallint) returns smallint
language sql immutable parallel safe
return case when state in (2, 3) then (coalesce(level, 1) * 2 + (state = 3)::int)::smallint end;

-- Returns a generation of a thread. Unlike an equation, its condition fits only the key, also in a
-- plan that was made on an empty table.
create or replace function thread_by_seq(project uuid, seq bigint) returns setof threads
language sql stable as $$
  select t.*
  from threads t
  where t.project_id = project and t.thread_seq >= seq and t.thread_seq <= seq
  order by t.thread_seq
  limit 1
$$;

-- Counts the threads of a project that fire, each up to `max_rows`: those that nobody has
-- acknowledged, and the others.
create or replace function count_alarms(project uuid, max_rows int)
returns table (firing int, acknowledged int)
language sql stable as $$
  with fires as not materialized (
    -- Firing makes a severity odd.
    select a.id is not null as is_acknowledged
    from threads t
      left join acknowledgements a on a.project_id = t.project_id and a.thread_seq = t.thread_seq
        and (a.until is null or a.until > now())
    where t.project_id = project and t.severity in (1, 3, 5, 7)
  )
  select
    (select count(*)::int from (select from fires where not is_acknowledged limit max_rows) n),
    (select count(*)::int from (select from fires where is_acknowledged limit max_rows) n)
$$;

-- Counts the questions of a project that wait for an answer, up to `max_rows`.
create or replace function count_questions(project uuid, max_rows int) returns int
language sql stable as $$
  select count(*)::int
  from (
    select
    from questions q
    where q.project_id = project and q.ended_at is null and q.expires_at > now()
    limit max_rows
  ) q
$$;

-- Adds the events of a batch that have a key to their threads, in order. append_batch calls it with
-- its columns, after it locked the logs. Events without a seq are not appended. Returns the level
-- and the state that each event has, its generation, and how members are told (see events).
create or replace function append_threads(
  project_ids uuid[], numbers int[], seqs bigint[], channel_ids uuid[], occurred_ats timestamptz[],
  at timestamptz, keys text[], notifies boolean[],
  inout levels smallint[], inout states smallint[], out thread_seqs bigint[], out tellings smallint[]
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  nulls constant smallint[] := array_fill(null::smallint, array[cardinality(keys)]);
  project uuid;
  last threads;
  -- True if the thread had ended.
  was_over boolean;
  is_late boolean;
  is_new boolean;
  is_over boolean;
  is_loud boolean;
  -- The threads whose timers are cancelled, and their projects.
  ended bigint[];
  ended_projects uuid[];
begin
  levels := coalesce(levels, nulls);
  states := coalesce(states, nulls);
  tellings := nulls;
  thread_seqs := nulls;
  for n in 1 .. cardinality(keys) loop
    continue when keys[n] is null or seqs[n] is null;
    project := project_ids[numbers[n]];
    -- Rows are compared, because an order by columns that are equal could use another index.
    select * into last
      from threads t
      where t.project_id = project
        and (t.channel_id, t.key) >= (channel_ids[n], keys[n]) and (t.channel_id, t.key) <= (channel_ids[n], keys[n])
      order by t.channel_id desc, t.key desc, t.thread_seq desc
      limit 1;
    was_over := coalesce(last.state in (0, 1, 4), last.thread_seq is null);
    -- 5 is running, unless the thread has ended: then its event changes nothing.
    is_late := states[n] is not distinct from 5 and was_over and last.thread_seq is not null;
    states[n] := case when is_late then last.state when states[n] = 5 then 2 else states[n] end;
    is_new := last.thread_seq is null or (was_over and states[n] is distinct from 0 and not is_late);
    if is_new then
      thread_seqs[n] := seqs[n];
      levels[n] := coalesce(
        levels[n],
        (
          select c.level
          from channels c
          where c.project_id = project and c.id >= channel_ids[n] and c.id <= channel_ids[n]
          order by c.id
          limit 1
        ),
        1
      );
    else
      thread_seqs[n] := last.thread_seq;
      levels[n] := coalesce(levels[n], last.level, 1);
      states[n] := coalesce(states[n], last.state);
    end if;
    is_over := coalesce(states[n] in (0, 1, 4), false);
    tellings[n] := case
      when was_over and states[n] = 0 then 2
      -- Running is worse than ended, and firing and failed are worse than running.
      when not is_new and levels[n] <= coalesce(last.level, 1)
        and least(greatest(states[n], 1), 3) <= least(greatest(last.state, 1), 3) then 1
    end;
    is_loud := tellings[n] is null and notifies[n] is not false and levels[n] <> 0;
    -- A thread that fires again within five minutes waits until they are over.
    if is_loud and states[n] = 3 and (
      is_new and levels[n] <= last.told_level and last.told_at between at - interval '5 minutes' and at
    ) is not true then
      last.told_at := at;
      last.told_level := levels[n];
    end if;
    insert into threads as t (
      project_id, thread_seq, channel_id, key, last_seq, state, level, severity, count, opened_at, updated_at,
      loud_seq, told_at, told_level
    )
    values (
      project, thread_seqs[n], channel_ids[n], keys[n], seqs[n], states[n], nullif(levels[n], 1),
      thread_severity(states[n], levels[n]), 1, coalesce(occurred_ats[n], at), coalesce(occurred_ats[n], at),
      case when is_loud then seqs[n] end, last.told_at, last.told_level
    )
    on conflict (project_id, thread_seq) do update set
      last_seq = excluded.last_seq, state = excluded.state, level = excluded.level, severity = excluded.severity,
      count = t.count + 1, updated_at = excluded.updated_at, loud_seq = coalesce(excluded.loud_seq, t.loud_seq),
      told_at = excluded.told_at, told_level = excluded.told_level;
    if (is_new and states[n] = 3 and notifies[n] is not false and levels[n] <> 0)
      or (not was_over and is_over and last.storm_seq is not null)
    then
      tellings[n] := storm_telling(
        project, channel_ids[n], thread_seqs[n], levels[n], is_new, tellings[n], at
      );
    end if;
    if not was_over and is_over and tellings[n] is not null then
      -- The timers of threads that speak for a storm go on until all of it has ended.
      ended := ended || case when tellings[n] = 4 or last.storm_seq is null then last.thread_seq end
        || case when tellings[n] = 4 then last.storm_seq end;
      ended_projects := ended_projects || array[project, project];
    end if;
  end loop;
  if ended is not null then
    perform cancel_timers(array_agg(e.project_id), array_agg(e.id), 'The thread has ended')
      from unnest(ended_projects, ended) as u (project_id, thread_seq)
        cross join lateral events_between(u.project_id, u.thread_seq - 1, u.thread_seq) e;
  end if;
  insert into thread_events (project_id, thread_seq, seq)
    select project_ids[u.number], u.thread_seq, u.seq
    from unnest(numbers, thread_seqs, seqs) as u (number, thread_seq, seq)
    where u.thread_seq is not null;
end
$$;

-- Takes events that became hidden out of their threads, or puts those back that became visible.
-- Folds these threads anew. A thread without events loses its row, and one that comes back has the
-- `loud_seq` of its latest events, like one that lost its own. thread_seqs are those of seqs; null
-- for an event without a thread. The caller must have locked the project's log.
create or replace function refold_threads(project uuid, seqs bigint[], thread_seqs bigint[], are_visible boolean)
returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  changed constant bigint[] := array(
    select distinct u.thread_seq from unnest(thread_seqs) as u (thread_seq) where u.thread_seq is not null
  );
  -- Those that come back, or lost their loud event.
  unsaid bigint[];
  channels uuid[];
  keys text[];
  -- The newest generation of each key, and the newest one that is not in `changed`.
  newest bigint[];
  others bigint[];
  one bigint;
begin
  if changed = '{}' then
    return;
  end if;
  unsaid := array(
    select u.thread_seq
    from unnest(changed) as u (thread_seq)
      left join lateral thread_by_seq(project, u.thread_seq) t on true
    where case when are_visible then t.thread_seq is null else t.loud_seq = any(seqs) end
  );
  if are_visible then
    insert into thread_events (project_id, thread_seq, seq)
      select project, u.thread_seq, u.seq
      from unnest(seqs, thread_seqs) as u (seq, thread_seq)
      where u.thread_seq is not null;
  else
    -- A join with the table could read all its rows of the project.
    for n in 1 .. cardinality(seqs) loop
      delete from thread_events e where e.project_id = project and e.thread_seq = thread_seqs[n] and e.seq = seqs[n];
    end loop;
  end if;
  insert into threads as t (
    project_id, thread_seq, channel_id, key, last_seq, state, level, count, opened_at, updated_at, loud_seq
  )
    select
      project, c.thread_seq, z.channel_id, z.thread, z.seq, z.state, z.level, c.n, a.occurred_at, z.occurred_at,
      case when c.thread_seq = any(unsaid) then (
        select max(e.seq)
        from (
            select h.seq
            from thread_events h
            where h.project_id = project and h.thread_seq = c.thread_seq
            order by h.seq desc
            limit 100
          ) h
          cross join lateral (
            select *
            from events e
            where e.project_id = project and e.seq >= h.seq and e.seq <= h.seq
            order by e.seq
            limit 1
          ) e
        where e.telling is null and e.notify and e.level is distinct from 0
      ) end
    from (
        select u.thread_seq, count(*) as n
        from unnest(thread_seqs) as u (thread_seq)
        where u.thread_seq is not null
        group by u.thread_seq
      ) c
      cross join lateral (
        select e.seq
        from thread_events e
        where e.project_id = project and e.thread_seq = c.thread_seq
        order by e.seq
        limit 1
      ) f
      cross join lateral (
        select e.seq
        from thread_events e
        where e.project_id = project and e.thread_seq = c.thread_seq
        order by e.seq desc
        limit 1
      ) l
      cross join lateral (
        select e.occurred_at
        from events e
        where e.project_id = project and e.seq >= f.seq and e.seq <= f.seq
        order by e.seq
        limit 1
      ) a
      cross join lateral (
        select e.channel_id, e.thread, e.seq, e.state, e.level, e.occurred_at
        from events e
        where e.project_id = project and e.seq >= l.seq and e.seq <= l.seq
        order by e.seq
        limit 1
      ) z
    on conflict (project_id, thread_seq) do update set
      last_seq = excluded.last_seq, state = excluded.state, level = excluded.level, severity = null,
      count = t.count + case when are_visible then excluded.count else -excluded.count end,
      opened_at = excluded.opened_at, updated_at = excluded.updated_at,
      loud_seq = case when t.thread_seq = any(unsaid) then excluded.loud_seq else t.loud_seq end;
  select array_agg(t.channel_id), array_agg(t.key) into channels, keys
    from unnest(changed) as u (thread_seq)
      cross join lateral thread_by_seq(project, u.thread_seq) t;
  foreach one in array changed loop
    delete from threads t
      where t.project_id = project and t.thread_seq = one and not exists (
        select from thread_events e where e.project_id = project and e.thread_seq = one
      );
  end loop;
  -- Only the newest generation of a key is open, and another one can be that now.
  select array_agg(n.thread_seq), array_agg(o.thread_seq) into newest, others
    from (select distinct u.channel_id, u.key from unnest(channels, keys) as u (channel_id, key)) k
      cross join lateral (
        select t.thread_seq
        from threads t
        where t.project_id = project
          and (t.channel_id, t.key) >= (k.channel_id, k.key) and (t.channel_id, t.key) <= (k.channel_id, k.key)
        order by t.channel_id desc, t.key desc, t.thread_seq desc
        limit 1
      ) n
      left join lateral (
        select t.thread_seq
        from threads t
        where t.project_id = project and t.thread_seq <> all(changed)
          and (t.channel_id, t.key) >= (k.channel_id, k.key) and (t.channel_id, t.key) <= (k.channel_id, k.key)
        order by t.channel_id desc, t.key desc, t.thread_seq desc
        limit 1
      ) o on true;
  foreach one in array coalesce(newest || others, '{}') loop
    update threads t set severity = case when one = any(newest) then thread_severity(t.state, t.level) end
      where t.project_id = project and t.thread_seq = one;
  end loop;
end
$$;
