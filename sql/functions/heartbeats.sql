-- Stores the changes of a heartbeat with the time at which it is due, as healthchecks.io has it: a
-- period and the grace after the last ping, or the grace after the start of a run. Sets the timer
-- only if that is earlier. Times from before the clock was set back count as now. The caller has
-- locked the row.
create or replace function store_heartbeat(h heartbeats) returns void
language plpgsql
as $$
declare
  former timestamptz := h.due_at;
begin
  h.last_ping_at := case when h.last_ping_at is not null then least(h.last_ping_at, clock_timestamp()) end;
  h.started_at := case when h.started_at is not null then least(h.started_at, clock_timestamp()) end;
  h.due_at := case when h.status in ('new', 'up') then
    least(case when h.status = 'up' then h.last_ping_at + h.period_s * interval '1 s' end, h.started_at)
      + h.grace_s * interval '1 s'
  end;
  if h.due_at is distinct from former then
    h.extended_to := null;
  end if;
  if h.due_at is distinct from former and h.due_at < coalesce(h.timer_at, 'infinity') then
    h.timer_at := h.due_at;
    -- A step that has begun loses its lease, because it would wait for the former time.
    insert into outbox as o (project_id, event_id, kind, target_id, requested_at, available_at)
      values (h.project_id, h.id, 'timer', h.id, now(), greatest(h.due_at, now()))
      on conflict (project_id, event_id, kind, target_id) do update set
        available_at = excluded.available_at, requested_at = excluded.requested_at, token = null;
  end if;
  update heartbeats t set
      status = h.status, last_ping_at = h.last_ping_at, started_at = h.started_at, run_id = h.run_id,
      due_at = h.due_at, extended_to = h.extended_to, timer_at = h.timer_at, ping_count = h.ping_count,
      minute = h.minute, minute_pings = h.minute_pings, minute_told = h.minute_told
    where t.project_id = h.project_id and t.id = h.id;
end
$$;

-- Returns when a heartbeat is down without another ping. If no server ran when it was due, its
-- grace begins anew. A stop during that grace lets it begin once more.
create or replace function due_of(h heartbeats) returns timestamptz
language sql stable
return greatest(h.due_at, (
  select case when c.down_from < greatest(h.due_at, h.extended_to) then c.down_to + h.grace_s * interval '1 s'
      else h.extended_to
    end
  from clock c
));

-- Records a ping by its address. Returns what became of the heartbeat: `failed` or `recovered` if
-- members are told of it; `limited` after 300 pings, or 10 that members are told of, in a minute;
-- else `ok`. Unless the caller has locked the log, it records nothing that members are told of, and
-- returns `unlocked`. Returns no row for an unknown address.
create or replace function ping_heartbeat(
  ping_address uuid, ping_kind text, ping_exit_code smallint, ping_run_id uuid, ping_method text, ping_user_agent text,
  ping_body text, has_log boolean
) returns table (outcome text, project_id uuid, heartbeat_id uuid, channel_id uuid, name text, took_ms bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
  h heartbeats;
  pinged_at timestamptz;
  result text := 'ok';
  took bigint;
begin
  select * into h from heartbeats t where t.address = ping_address for update;
  if h.id is null then
    return;
  end if;
  pinged_at := clock_timestamp();
  if ping_kind = 'fail' and h.status <> 'down' then
    result := 'failed';
  elsif ping_kind = 'success' and h.status = 'down' then
    result := 'recovered';
  end if;
  if h.minute is distinct from date_trunc('minute', pinged_at) then
    h.minute := date_trunc('minute', pinged_at);
    h.minute_pings := 0;
    h.minute_told := 0;
  end if;
  if h.minute_pings >= 300 or result <> 'ok' and h.minute_told >= 10 then
    result := 'limited';
  elsif result <> 'ok' and not has_log then
    result := 'unlocked';
  end if;
  if result in ('limited', 'unlocked') then
    return query select result, h.project_id, h.id, h.channel_id, h.name, null::bigint;
    return;
  end if;
  if ping_kind = 'start' then
    h.started_at := pinged_at;
    h.run_id := ping_run_id;
  elsif ping_kind in ('success', 'fail') then
    if h.started_at is not null and h.run_id is not distinct from ping_run_id then
      took := extract(epoch from pinged_at - least(h.started_at, pinged_at)) * 1000;
    elsif ping_run_id is not null then
      -- A run that began before another one.
      select case when p.kind = 'start' then extract(epoch from pinged_at - least(p.at, pinged_at)) * 1000 end into took
        from heartbeat_pings p
        where p.project_id = h.project_id and p.heartbeat_id = h.id and p.run_id = ping_run_id and p.kind <> 'log'
        order by p.number desc
        limit 1;
    end if;
    if ping_kind = 'fail' or ping_run_id is null or h.run_id is not distinct from ping_run_id then
      h.started_at := null;
      h.run_id := null;
    end if;
    h.status := case when ping_kind = 'fail' then 'down' else 'up' end;
    h.last_ping_at := pinged_at;
  end if;
  h.ping_count := h.ping_count + 1;
  h.minute_pings := h.minute_pings + 1;
  h.minute_told := h.minute_told + (result <> 'ok')::int;
  perform store_heartbeat(h);
  insert into heartbeat_pings (
    project_id, heartbeat_id, number, at, kind, exit_code, run_id, took_ms, method, user_agent, body
  ) values (
    h.project_id, h.id, h.ping_count, pinged_at, ping_kind, ping_exit_code, ping_run_id, took, ping_method, ping_user_agent,
    ping_body
  );
  delete from heartbeat_pings p
    where p.project_id = h.project_id and p.heartbeat_id = h.id and p.number <= h.ping_count - 20;
  return query select result, h.project_id, h.id, h.channel_id, h.name, took;
end
$$;
