-- Returns a time as responses show it: ISO 8601 in UTC, with milliseconds.
create or replace function to_iso(ts timestamptz) returns text
language sql stable parallel safe
return to_char(ts at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');

-- Returns the start of the hour (UTC) of a time, whatever the session's time zone.
create or replace function hour_of(ts timestamptz) returns timestamptz
language sql immutable parallel safe
return date_trunc('hour', ts at time zone 'UTC') at time zone 'UTC';

-- Returns the next millisecond. Immutable, because Citus accepts no other function in the update of
-- a conflict.
create or replace function next_millisecond(at timestamptz) returns timestamptz
language sql immutable parallel safe
return to_timestamp(0) + (at - to_timestamp(0)) + interval '1 ms';

-- Returns a time after a move by the length of a jump, which is negative for one back. Times from
-- the other side of `until`, the first check after the jump, stay.
create or replace function moved_time(at timestamptz, jump interval, until timestamptz) returns timestamptz
language sql immutable parallel safe
return case when jump > '0' and at < until or jump < '0' and at > until then least(at + jump, until) else at end;

-- Returns the end of a wait after a jump back. It does not wait until the clock catches up.
create or replace function ended_wait(at timestamptz, jump interval, until timestamptz) returns timestamptz
language sql immutable parallel safe
return case when jump < '0' and at > until and isfinite(at) then greatest(at + jump, until) else at end;

-- Moves the times of up to max_rows webhooks, targets or deliveries by a jump that check_clock has
-- found. So the time that a delivery has waited, or a webhook has failed, is one with a running
-- server. After a jump back, it also ends waits that would last until the clock catches up. Returns
-- true if it did. It returns false without a jump, or while another transaction does the same.
-- checked_now() stands still until all are moved.
create or replace function extend_waits(max_rows int) returns boolean
language plpgsql
set search_path from current
-- A plan that was made on small tables would scan large ones.
set enable_seqscan = off
as $$
declare
  move wait_extensions;
  ids uuid[];
begin
  -- A later jump waits for the earlier one.
  select e.* into move
    from wait_extensions e
    where e.number = (select min(f.number) from wait_extensions f)
    for update skip locked;
  if move.number is null then
    return false;
  end if;
  if move.place = 'webhooks' then
    ids := array(
      select w.id from webhooks w where w.id > move.last_id order by w.id limit max_rows for no key update
    );
    update webhooks w set
        failing_since = moved_time(w.failing_since, move.jump, move.until),
        disabled_at = moved_time(w.disabled_at, move.jump, move.until)
      where w.id = any(ids) and (w.failing_since is not null or w.disabled_at is not null);
  elsif move.place = 'delivery_targets' then
    ids := array(
      select t.id from delivery_targets t where t.id > move.last_id order by t.id limit max_rows for no key update
    );
    update delivery_targets t set
        paused_until = ended_wait(t.paused_until, move.jump, move.until),
        single_until = ended_wait(t.single_until, move.jump, move.until),
        resumed_at = moved_time(t.resumed_at, move.jump, move.until)
      where t.id = any(ids) and move.jump < '0';
  else
    -- Like the settler, it locks rows in the order of their ids.
    ids := array(
      select o.id from outbox o where o.id > move.last_id order by o.id limit max_rows for update
    );
    update outbox o set
        requested_at = moved_time(o.requested_at, move.jump, move.until),
        available_at = case
          -- A lease ends within a minute.
          when o.available_at > move.until + interval '1 minute' then ended_wait(o.available_at, move.jump, move.until)
          else o.available_at
        end,
        claimed_at = case
          when move.jump < '0' then moved_time(o.claimed_at, move.jump, move.until) else o.claimed_at
        end
      where o.id = any(ids) and case
        when move.jump > '0' then o.requested_at < move.until
        else greatest(o.requested_at, o.claimed_at, o.available_at - interval '1 minute') > move.until
      end;
  end if;
  if cardinality(ids) < max_rows then
    delete from wait_extensions e where e.number = move.number;
  else
    update wait_extensions e set last_id = ids[max_rows] where e.number = move.number;
  end if;
  return true;
end
$$;

-- Records the current time. If the last check was over an hour ago, or is in the future, the clock
-- has jumped, or no server ran: extend_waits moves the times of deliveries and webhooks by that.
-- Returns its length in seconds (0 for none, negative for back), and until when nothing is deleted
-- for its age: a day after a jump that a server has seen. A start cannot tell a jump from a time
-- without a server, so it takes only one of over 30 days for a jump. Notes a time of over 15
-- seconds, in which heartbeats could not report.
create or replace function check_clock() returns table (jump_s float8, untrusted_until timestamptz)
language plpgsql
as $$
declare
  noted clock;
  jump interval;
begin
  insert into clock (checked_at) values (now()) on conflict (singleton) do nothing;
  select * into noted from clock c for update;
  jump := now() - noted.checked_at;
  if jump > interval '15 seconds' then
    if noted.checked_at - noted.down_to < interval '1 hour' is not true then
      noted.down_from := noted.checked_at;
    end if;
    noted.down_to := now();
  end if;
  -- Another process can record a time slightly later than the start of this transaction.
  if jump > interval '1 hour' or jump < interval '-20 seconds' then
    -- This transaction holds the row of the clock, so no other one takes the same numbers.
    insert into wait_extensions (number, place, jump, until)
      select coalesce((select max(e.number) from wait_extensions e), 0) + p.nth, p.place, jump, now()
      from (values (1, 'webhooks'), (2, 'delivery_targets'), (3, 'outbox')) as p (nth, place);
  else
    jump := interval '0';
  end if;
  if jump > interval '30 days' then
    noted.untrusted_until := now() + interval '1 day';
  end if;
  update clock c set
      checked_at = now(), untrusted_until = noted.untrusted_until, down_from = case when noted.down_from < now() then noted.down_from end,
      down_to = case when noted.down_to <= now() then noted.down_to end;
  return query select extract(epoch from jump)::float8, noted.untrusted_until;
end
$$;
