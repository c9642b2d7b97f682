-- Returns whether a time is in the future, and not later than a rule with this duration allows. A
-- later one was written while the clock was ahead, by a day or more, and is over.
create or replace function is_unexpired(expires_at timestamptz, duration interval) returns boolean
language sql stable
return expires_at > now() and expires_at <= now() + duration + interval '1 day';

-- Returns whether a session has expired: after 7 days without use, or after 30 days. A long session
-- expires after a year. One whose times are ahead has expired, too. An argument with a subquery is
-- used once, so that Postgres can inline the function.
create or replace function is_session_expired(is_long boolean, created_at timestamptz, last_seen_at timestamptz)
returns boolean
language sql stable
return not case
  when is_long then is_unexpired(created_at + interval '1 year', interval '1 year')
  else is_unexpired(least(last_seen_at + interval '7 days', created_at + interval '30 days'), interval '7 days')
end;

-- Returns the delay before the next attempt: none up to four failures, then one second, doubling up
-- to 15 minutes.
create or replace function sign_in_delay(failures int) returns interval
language sql immutable
return case
  when failures < 5 then interval '0'
  else least(interval '15 minutes', interval '1 second' * power(2, least(failures, 20) - 5))
end;

-- Counts an attempt as a failure, before its password or code is checked. Returns 0, or the seconds
-- to wait if the attempt is refused. Failures of a lane are forgotten a day after the last one. The
-- budget of all networks, if any, holds `capacity` failures, and loses one in `refill_s` seconds. A
-- lane leaves a part of it to lanes with fewer failures: a twentieth for each failure and for each
-- five refused attempts, half of it at most.
--
-- The budget is locked before the lane, so that transactions cannot deadlock.
create or replace function count_attempt(
  p_account bytea, p_lane bytea, p_budget bytea, capacity int, refill_s float8
) returns float8
language plpgsql
set search_path from current
as $$
declare
  t constant timestamptz := clock_timestamp();
  l sign_in_failures;
  used float8;
  reserve float8;
  wait_s float8;
begin
  if p_budget is not null then
    insert into sign_in_failures as f (account, lane, failures, last_at)
    values (p_account, p_budget, 0, t)
    on conflict (account, lane) do update set
      failures = greatest(0, f.failures - greatest(0, extract(epoch from t - f.last_at)) / refill_s), last_at = t
    returning failures into used;
  end if;
  insert into sign_in_failures as f (account, lane, failures, last_at)
  values (p_account, p_lane, 0, t)
  on conflict (account, lane) do update set
    failures = case when f.last_at < t - interval '1 day' then 0 else f.failures end,
    refused = case when f.last_at < t - interval '1 day' then 0 else f.refused end,
    -- It is in the future after the clock was set back.
    last_at = least(f.last_at, t)
  returning * into l;
  wait_s := extract(epoch from l.last_at + sign_in_delay(l.failures::int) - t);
  if p_budget is not null then
    reserve := capacity / 2.0 * least(l.failures + l.refused / 5, 10) / 10;
    wait_s := greatest(wait_s, (used + 1 + reserve - capacity) * refill_s);
  end if;
  if wait_s > 0 then
    update sign_in_failures set refused = least(refused + 1, 1000) where account = p_account and lane = p_lane;
    return wait_s;
  end if;
  update sign_in_failures set failures = least(failures + 1, 1000), last_at = t
  where account = p_account and lane in (p_lane, p_budget);
  return 0;
end
$$;

-- Takes an attempt out of the counts again.
create or replace function uncount_attempt(p_account bytea, p_lane bytea, p_budget bytea) returns void
language plpgsql
as $$
begin
  update sign_in_failures set failures = greatest(failures - 1, 0) where account = p_account and lane = p_budget;
  update sign_in_failures set failures = greatest(failures - 1, 0) where account = p_account and lane = p_lane;
end
$$;

-- Returns whether the password of an account can be used. While passwords are off, only those of
-- owners and operators can that were set from the machine.
create or replace function is_password_usable(account uuid) returns boolean
language sql stable as $$
  select not i.are_passwords_off or exists (
    select
    from accounts a
    where a.id = account and a.is_password_from_machine and (
      a.is_operator
      or exists (select from memberships m where m.account_id = a.id and m.role = 'owner')
    )
  )
  from installation i
$$;

-- Returns whether an account has a usable passkey or a confirmed authenticator app.
create or replace function has_factor(account uuid) returns boolean
language sql stable as $$
  select
    exists (select from passkeys k where k.account_id = account and k.disabled_at is null)
    or exists (select from totp_secrets t where t.account_id = account and t.confirmed_at is not null)
$$;

-- Returns true if a session may not reach an organization, because it began with a password alone.
create or replace function lacks_second_factor(requires_second_factor boolean, is_multi_factor boolean)
returns boolean
language sql immutable
return requires_second_factor and not is_multi_factor;

-- Rejects updates and truncation, and the deletion of entries that are younger than a year.
create or replace function reject_audit_log_change() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'DELETE' and old.at < now() - interval '1 year' then
    return old;
  end if;
  raise exception 'the audit log is append-only' using errcode = 'restrict_violation';
end
$$;

create or replace trigger audit_log_is_append_only before delete or update on audit_log
  for each row execute function reject_audit_log_change();

create or replace trigger audit_log_is_not_truncated before truncate on audit_log
  for each statement execute function reject_audit_log_change();
