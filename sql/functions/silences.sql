-- Returns whether members are not told now of an event of a thread, or of an event without one.
create or replace function is_silenced(project uuid, channel uuid, thread_key text, event_thread_seq bigint)
returns boolean
language sql stable as $$
  select exists (
    select
    from silences s
    where s.project_id = project and s.starts_at <= now() and (s.ends_at is null or s.ends_at > now())
      and (s.channel_id is null or s.channel_id = channel)
      and (s.thread is null or s.thread = thread_key)
      and (s.thread_seq is null or s.thread_seq = event_thread_seq)
  )
$$;

-- Returns the threads in a silence that have not ended. `loud_seq` is the event that tells of each:
-- of a storm, what spoke for it last among them, or what is critical and is repeated.
create or replace function open_threads(project uuid, silence_id uuid)
returns table (thread_seq bigint, state smallint, severity smallint, loud_seq bigint)
language plpgsql stable
as $$
#variable_conflict use_column
declare
  silence silences;
begin
  select * into silence from silences s where s.project_id = project and s.id = silence_id;
  return query
    select
      t.thread_seq, t.state, t.severity,
      greatest(
        t.loud_seq, t.storm_seq,
        case when e.telling = 4 and e.level = 3 then e.seq else max(e.seq) over (partition by t.storm_seq) end
      )
    from threads t
      left join lateral events_between(t.project_id, t.thread_seq - 1, t.thread_seq) e
        on t.storm_seq is not null and e.telling > 3
    where t.project_id = silence.project_id and t.severity >= 0
      and (silence.channel_id is null or t.channel_id = silence.channel_id)
      and (silence.thread is null or t.key = silence.thread)
      and (silence.thread_seq is null or t.thread_seq = silence.thread_seq);
end
$$;

-- Tells members of what a silence kept quiet and still fires, ten notifications at most, the worst
-- first. The thread of a silence is told in any case. A storm is told in place of its threads.
-- Returns whether others are left. The silence is locked, and has ended.
create or replace function tell_after_silence(project uuid, silence_id uuid, sentences jsonb) returns boolean
language plpgsql
as $$
declare
  silence silences;
  dispatched bigint;
  seqs bigint[];
  -- The events of `seqs`, and those that opened their threads, which have the timers.
  ids uuid[];
  opening_ids uuid[];
  n int;
begin
  -- A dispatch holds it, too. So all events that it took are recorded.
  select c.seq into dispatched
    from delivery_cursors c
    where c.project_id = project and c.kind = 'push'
    for update;
  -- One without an end ends now, also for what was silenced since it was found to be over.
  update silences s set ends_at = coalesce(s.ends_at, now())
    where s.project_id = project and s.id = silence_id
    returning s.* into silence;
  select array_agg(w.seq), array_agg(w.id), array_agg(w.opening_id) into seqs, ids, opening_ids
    from (
      select e.seq, e.id, o.id as opening_id
      from (
          select t.loud_seq as seq, max(t.severity) as severity
          from open_threads(project, silence_id) t
          where t.state = 3
          group by 1
        ) f
        cross join lateral events_between(project, f.seq - 1, f.seq) e
        left join lateral events_between(project, e.thread_seq - 1, e.thread_seq) o on true
      where e.seq <= dispatched and e.deleted_at is null
        and not is_silenced(project, e.channel_id, e.thread, e.thread_seq)
        and (
          (silence.thread is not null and e.created_at < silence.ends_at)
          -- A dispatch that began before the end has silenced events after it, too. 0.3.0 has no
          -- sentence, and records the word.
          or exists (
            select
            from deliveries d
            where d.project_id = project and d.event_id in (e.id, o.id) and (starts_with(d.reason, sentences ->> 'silenced') or d.reason = 'silenced')
          )
        )
      order by f.severity desc, f.seq
      limit 11
    ) w;
  n := least(10, cardinality(seqs));
  if n > 0 then
    perform dispatch_pushes(
      project_ids => array_fill(project, array[n]),
      from_seqs => array(select u.seq - 1 from unnest(seqs[:n]) as u (seq)),
      to_seqs => seqs[:n],
      sentences => sentences
    );
    -- Stages tell others. These knew of it.
    insert into outbox (project_id, event_id, kind, target_id)
      select d.project_id, d.event_id, 'push', d.target_id
      from deliveries d
      where d.project_id = project and d.event_id = any(ids[:n]) and d.kind = 'push' and d.state = 'delivered'
      order by d.event_id, d.target_id
      on conflict (project_id, event_id, kind, target_id) do nothing;
    insert into bell_ranges (project_id, from_seq, to_seq)
      select project, u.seq - 1, u.seq
      from unnest(seqs[:n]) as u (seq)
      where exists (select from view_bells b where b.project_id = project);
    update deliveries d set reason = sentences ->> 'wasSilenced'
      where d.project_id = project and d.event_id = any(ids[:n] || opening_ids[:n])
        and (starts_with(d.reason, sentences ->> 'silenced') or d.reason = 'silenced');
  end if;
  return n < cardinality(seqs);
end
$$;
