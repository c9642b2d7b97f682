-- The functions that write pin one plan each. Planning each time costs more than the work. Their
-- tables are often empty when a plan is made, so no plan may read a whole table. Their first
-- setting also plans the checks of foreign keys once.

-- Returns a new UUID of version 7. Postgres 17 and earlier have no function for it.
create or replace function new_delivery_id() returns uuid
language sql volatile parallel safe
return encode(
  set_bit(
    set_bit(
      overlay(
        uuid_send(gen_random_uuid())
        placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
        from 1 for 6
      ),
      52, 1
    ),
    53, 1
  ),
  'hex'
)::uuid;

-- One row is the outcome of one delivery, including withheld ones. A later outcome replaces
-- 'withheld'.
create or replace view delivery_records as
select d.id, d.project_id, d.event_id, d.kind, d.target_id, d.state, d.attempts, d.latency_ms, d.reason, d.at
from deliveries d
union all
select
  md5(w.event_id::text || t.id::text)::uuid, w.project_id, w.event_id, w.kind, t.id, 'withheld', 0::smallint, null,
  w.reason, w.at
from withheld_deliveries w
  cross join lateral unnest(w.target_ids) as t (id)
where not exists (
  select
  from deliveries d
  where d.project_id = w.project_id and d.event_id = w.event_id and d.kind = w.kind and d.target_id = t.id
);

-- Returns the current time, but at most an hour after the last check of the clock, and the time
-- before a jump forward until extend_waits is done with it. Deadlines are compared with it, so none
-- passes in a jump before its row was moved. Its body is text: Citus distributes no function that
-- is bound to a table of the coordinator.
create or replace function checked_now() returns timestamptz
language sql stable as $$
  select least(
    now(),
    (select c.checked_at + interval '1 hour' from clock c where c.singleton),
    (select min(e.until - e.jump) from wait_extensions e)
  )
$$;

-- Leases at most max_deliveries due deliveries: first the oldest of each requested target, then the
-- second oldest of each, and so on. It skips locked rows, and locks up to `room` of each target, of
-- deliveries that are due at its due_at or later. A target that waits gives none, and one with an
-- attempt at a time gives one, if the last one has ended. The result says what an attempt needs to
-- know: is_gone means that the event or its project no longer exists, and hidden_ms is the time
-- since the event was deleted.
create or replace function claim_deliveries(
  of_kind text, target_ids uuid[], rooms int[], due_ats timestamptz[], max_deliveries int, lease_ms float8, new_token uuid
) returns table (
  id uuid, project_id uuid, event_id uuid, target_id uuid, claim_count smallint, attempts smallint, is_gone boolean,
  age_ms float8, waited_ms float8, hidden_ms float8
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  singles uuid[];
begin
  -- After a crash the deliveries are claimed again, so the commit need not wait for fsync.
  perform set_config('synchronous_commit', 'off', true);
  -- The lock lets one process look for the attempt of a target. The next statement sees the latest.
  singles := array(
    select t.id
    from unnest(target_ids) as w (id)
      join delivery_targets t on t.kind = of_kind and t.id = w.id
    where t.single_until > now()
    order by t.id
    for update of t skip locked
  );
  return query
    with wanted as materialized (
      select
        w.target_id, w.due_at, w.place, coalesce(t.resumed_at, '-infinity') as resumed_at,
        case
          when t.id is null or t.single_until <= now() then w.room
          when t.id = any(singles) and not exists (
            select from outbox o where o.id = t.probe_id and o.token is not null and o.available_at > now()
          ) then least(w.room, 1)
          else 0
        end as room
      from unnest(target_ids, rooms, due_ats) with ordinality as w (target_id, room, due_at, place)
        left join delivery_targets t on t.kind = of_kind and t.id = w.target_id
      where t.id is null or t.paused_until <= now()
    ), locked as materialized (
      select r.row
      from wanted w
        cross join lateral (
          select d.row, row_number() over () as rank
          from (
            select due.row
            from (
              select o.ctid as row
              from outbox o
              where o.kind = of_kind and o.target_id = w.target_id
                and o.available_at >= w.due_at and o.available_at <= now()
              order by o.available_at, o.id
              limit w.room
              for update skip locked
            ) due
            union all
            select resumed.row
            from (
              select o.ctid as row
              from outbox o
              where o.kind = of_kind and o.target_id = w.target_id
                and o.claimed_at < w.resumed_at and o.token is null and o.available_at > now()
              order by o.claimed_at
              limit w.room
              for update skip locked
            ) resumed
            limit w.room
          ) d
        ) r
      order by r.rank, w.place
      limit max_deliveries
    ), taken as (
      update outbox o set
        available_at = now() + lease_ms * interval '1 ms', claimed_at = now(), token = new_token,
        claim_count = least(o.claim_count + 1, 32767)
      from locked l
      where o.ctid = l.row
      returning o.id, o.project_id, o.event_id, o.target_id, o.claim_count, o.attempts, o.requested_at
    ), probes as (
      update delivery_targets t set probe_id = k.id
      from taken k
      where t.kind = of_kind and t.id = k.target_id and t.id = any(singles)
    )
    select
      t.id, t.project_id, t.event_id, t.target_id, t.claim_count, t.attempts,
      p.id is null or p.deleted_at is not null or coalesce(
        e.id,
        -- Messages about an acknowledgement have its id in place of that of an event.
        (select f.id from event_by_id(t.project_id, (acknowledgement_by_id(t.project_id, t.event_id)).event_id) f)
      ) is null,
      coalesce(extract(epoch from clock_timestamp() - e.created_at) * 1000, 0)::float8,
      greatest(extract(epoch from (select checked_now()) - t.requested_at) * 1000, 0)::float8,
      (extract(epoch from clock_timestamp() - e.deleted_at) * 1000)::float8
    from taken t
      left join projects p on p.id = t.project_id
      left join lateral event_by_id(t.project_id, t.event_id) e on true;
end
$$;

-- Stores the settlements of claimed deliveries. A delivery that has ended becomes a record, and
-- also a dead letter if it was given up; any other waits for its next attempt. Rows are locked in
-- the order of their ids, and those that another transaction locks are skipped. It fails soon if
-- something else is locked. Returns the ids of deliveries that stay unchanged: locked ones, and
-- those whose token the caller no longer held.
create or replace function settle_free_deliveries(
  ids uuid[], tokens uuid[], states text[], made_attempts int[], delays_ms float8[], reasons text[], latencies_ms bigint[]
) returns table (id uuid, is_locked boolean)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set lock_timeout = '50ms'
as $$
#variable_conflict use_column
begin
  return query
    with given as materialized (
      select i.id, i.token, i.state, i.attempts, i.delay_ms, i.reason, i.latency_ms
      from unnest(ids, tokens, states, made_attempts, delays_ms, reasons, latencies_ms)
          as i (id, token, state, attempts, delay_ms, reason, latency_ms)
    ), free as materialized (
      select g.*
      from given g
        join outbox o on o.id = g.id and o.token = g.token
      order by o.id
      for update of o skip locked
    ), ended as (
      delete from outbox o
      using free g
      where o.id = g.id and g.state is not null
      returning
        o.id, o.project_id, o.event_id, o.kind, o.target_id, g.state, o.attempts + g.attempts as attempts,
        coalesce(g.reason, o.reason) as reason, g.latency_ms
    ), records as (
      insert into deliveries as d (
        id, project_id, event_id, kind, target_id, state, attempts, latency_ms, reason
      )
      select
        id, project_id, event_id, kind, target_id, state, attempts, latency_ms,
        case when state <> 'delivered' then reason end
      from ended
      order by project_id, event_id, kind, target_id
      on conflict (project_id, event_id, kind, target_id) do update set
        id = excluded.id, state = excluded.state, attempts = excluded.attempts,
        latency_ms = excluded.latency_ms, reason = excluded.reason, at = excluded.at
        -- A withheld repetition leaves that the device was told.
        where d.kind <> 'push' or d.state <> 'delivered' or excluded.state <> 'withheld'
    ), new_dead_letters as (
      insert into dead_letters (id, project_id, event_id, kind, target_id, attempts, reason)
      select id, project_id, event_id, kind, target_id, attempts, coalesce(reason, '')
      from ended
      -- A summary of quiet hours belongs to no event.
      where state = 'dead' and event_id <> target_id
      order by project_id, event_id, kind, target_id
      on conflict (project_id, event_id, kind, target_id) do update set
        id = excluded.id, attempts = excluded.attempts, reason = excluded.reason, at = excluded.at
    ), summed_up as (
      delete from quiet_pushes q using ended e where e.event_id = e.target_id and q.target_id = e.target_id
    ), waiting as (
      update outbox o set
        available_at = now() + g.delay_ms * interval '1 ms', token = null, claim_count = 0,
        attempts = o.attempts + g.attempts, reason = coalesce(g.reason, o.reason)
      from free g
      where o.id = g.id and g.state is null
    )
    select g.id, exists (select from outbox o where o.id = g.id and o.token = g.token)
    from given g
    where g.id not in (select f.id from free f);
end
$$;

-- Cancels the deliveries of deleted events. Like the settler, it locks rows in the order of their
-- ids.
--
-- The settings of expire_events also hold here. Without sorts, a plan has to read the whole outbox
-- in the order of ids. The other settings leave a look-up for each event.
create or replace function cancel_deliveries() returns trigger
language plpgsql
set plan_cache_mode = force_custom_plan
set enable_indexscan = on
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = on
as $$
begin
  with found as materialized (
    select o.id
    from deleted_events g
      join outbox o on o.project_id = g.project_id and o.event_id = g.id
    order by o.id
    for update of o
  ), ended as (
    delete from outbox o
      using found f
      where o.id = f.id
      returning o.id, o.project_id, o.event_id, o.kind, o.target_id, o.attempts
  )
  insert into deliveries as d (id, project_id, event_id, kind, target_id, state, attempts, reason)
    select e.id, e.project_id, e.event_id, e.kind, e.target_id, 'cancelled', e.attempts, 'The event was deleted'
    from ended e
      join projects p on p.id = e.project_id and p.deleted_at is null
    order by e.project_id, e.event_id, e.kind, e.target_id
    on conflict (project_id, event_id, kind, target_id) do update set
      id = excluded.id, state = excluded.state, attempts = excluded.attempts,
      latency_ms = null, reason = excluded.reason, at = excluded.at
      -- A delivery that succeeded before its event was sent again stays delivered.
      where d.state <> 'delivered';
  delete from dead_letters d
    using deleted_events g
    where d.project_id = g.project_id and d.event_id = g.id;
  return null;
end
$$;

create or replace trigger events_cancel_deliveries after delete on events
  referencing old table as deleted_events
  for each statement execute function cancel_deliveries();

-- Cancels the deliveries of deleted events on Citus. Elsewhere a trigger of events does, and this
-- does nothing.
create or replace function cancel_deliveries_of(project uuid, event_ids uuid[]) returns void
language plpgsql
as $$
begin
end
$$;

-- Locks the cursors of the projects that have new events, and returns these ranges. A missing
-- cursor is created at the beginning of its log. Cursors that another dispatcher holds or creates
-- are skipped. The caller then looks for targets, so it sees each target that existed when an event
-- of the ranges was committed.
create or replace function lock_event_ranges(of_kind text, project_ids uuid[]) returns setof event_range
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
  -- After a crash the events are dispatched again, so the commit need not wait for fsync.
  perform set_config('synchronous_commit', 'off', true);
  with missing as materialized (
    select l.project_id
    from unnest(project_ids) as w (project_id)
      cross join lateral log_of(w.project_id) l
    where not exists (select from delivery_cursors c where c.project_id = l.project_id and c.kind = of_kind)
  )
  insert into delivery_cursors (project_id, kind, seq)
  select m.project_id, of_kind, 0
  from missing m
  -- An insert would wait for that of another dispatcher.
  where pg_try_advisory_xact_lock(71342009, hashtext(of_kind || m.project_id))
  order by m.project_id
  on conflict (project_id, kind) do nothing;
  return query
    select c.project_id, c.seq, l.last_seq, false, true, 0::float8
    from unnest(project_ids) as w (project_id)
      join delivery_cursors c on c.project_id = w.project_id and c.kind = of_kind
      cross join lateral log_of(c.project_id) l
    where l.last_seq > c.seq
    for update of c skip locked;
end
$$;

-- Moves the cursors of locked ranges, and returns the ranges that were taken. Projects without
-- targets are moved to the end of their log. The others share max_events: each gets an equal part,
-- and long ranges also get what short ones leave. Later statements of the transaction see all
-- events of the ranges, because a log has no gaps and is in commit order.
create or replace function take_ranges(of_kind text, new_ranges event_range[], with_targets uuid[], max_events int)
returns setof event_range
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
    with locked as materialized (
      select
        f.project_id, f.from_seq as seq, f.to_seq as last_seq, f.to_seq - f.from_seq as length,
        f.project_id = any(with_targets) as has_targets
      from unnest(new_ranges) f
    ), parts as (
      -- The part that the nth shortest range and each longer one can have.
      select
        (max_events - coalesce(sum(l.length) over (n rows between unbounded preceding and 1 preceding), 0))
          / (count(*) over () - row_number() over n + 1) as part
      from locked l
      where l.has_targets
      window n as (order by l.length)
    ), ranges as materialized (
      select
        l.project_id, l.seq, l.last_seq, l.has_targets,
        case when l.has_targets then least(l.last_seq, l.seq + greatest(1, m.part)) else l.last_seq end as to_seq
      from locked l
        cross join (select floor(max(p.part))::bigint as part from parts p) m
    ), moved as (
      update delivery_cursors c set seq = r.to_seq
      from ranges r
      where c.project_id = r.project_id and c.kind = of_kind
    )
    select
      r.project_id, r.seq, r.to_seq, r.has_targets, r.to_seq = r.last_seq,
      coalesce(case when r.has_targets then (
        select extract(epoch from clock_timestamp() - f.created_at) * 1000
        from first_event_from(r.project_id, r.seq + 1) f
      ) end, 0)::float8
    from ranges r;
end
$$;

-- Writes new deliveries, which are due at once. With a lease, each target gets one delivery with
-- the lease, then a second one, and so on: at most `free` in all, and `perTarget` for a target, or
-- its room. A target that waits, or gets one attempt at a time, has none. Returns the number of
-- deliveries, and those with the lease. Rows are inserted in the order of their keys. The caller
-- sets how its statements are planned.
create or replace function insert_deliveries(of_kind text, wanted new_delivery[], refusal text, lease json)
returns table (count bigint, leased json)
language plpgsql
as $$
#variable_conflict use_column
declare
  written bigint;
begin
  if lease is null then
    insert into outbox (project_id, event_id, kind, target_id)
    select w.project_id, w.event_id, of_kind, w.target_id
    from unnest(wanted) w
    where not w.is_full
    order by w.project_id, w.event_id, w.target_id
    on conflict (project_id, event_id, kind, target_id) do nothing;
    get diagnostics written = row_count;
    return query select written, null::json;
  else
    return query
      with ranked as materialized (
        select
          w.*, new_delivery_id() as id,
          row_number() over (partition by w.target_id, w.is_deleted order by w.created_at, w.event_id) as rank
        from unnest(wanted) w
        where not w.is_full
      ), roomy as materialized (
        select
          r.*,
          not r.is_deleted and r.rank <= coalesce(b.room, (lease ->> 'perTarget')::int) and not exists (
            select
            from delivery_targets t
            where t.kind = of_kind and t.id = r.target_id and greatest(t.paused_until, t.single_until) > now()
          ) as has_room
        from ranked r
          left join json_to_recordset(lease -> 'rooms') as b ("targetId" uuid, room int) on b."targetId" = r.target_id
      ), chosen as materialized (
        select
          r.*,
          r.has_room and row_number() over (order by r.has_room desc, r.rank) <= (lease ->> 'free')::int as is_leased
        from roomy r
      ), queued as (
        insert into outbox (id, project_id, event_id, kind, target_id, available_at, claimed_at, token, claim_count)
        select
          c.id, c.project_id, c.event_id, of_kind, c.target_id,
          case when c.is_leased then now() + (lease ->> 'leaseMs')::float8 * interval '1 ms' else now() end,
          case when c.is_leased then now() end, case when c.is_leased then (lease ->> 'token')::uuid end, c.is_leased::int
        from chosen c
        order by c.project_id, c.event_id, c.target_id
        on conflict (project_id, event_id, kind, target_id) do nothing
        returning id
      )
      select
        (select count(*) from queued),
        (
          select json_agg(json_build_object(
            'id', c.id, 'projectId', c.project_id, 'eventId', c.event_id, 'targetId', c.target_id,
            'ageMs', extract(epoch from clock_timestamp() - c.created_at) * 1000
          ))
          from queued q
            join chosen c on c.id = q.id
          where c.is_leased
        );
  end if;

  insert into deliveries (project_id, event_id, kind, target_id, state, reason)
  select w.project_id, w.event_id, of_kind, w.target_id, 'failed', refusal
  from unnest(wanted) w
  where w.is_full
  order by w.project_id, w.event_id, w.target_id
  on conflict (project_id, event_id, kind, target_id) do nothing;
end
$$;
