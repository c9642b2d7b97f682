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

-- Returns every column with a time, and what becomes of it when the clock jumps:
--   * written_by: whose clock wrote it
--   * is_extended: a jump forward moves it by the length of the jump
--   * when_back: a jump back sets a time after now + latest to that ('bounded'), or moves it by the
--     length of the jump ('moved'). It is null if the time stays. Other statements take care of
--     the 'other' ones.
create or replace function stored_times()
returns table (place text, written_by text, is_extended boolean, when_back text, latest interval, reason text)
language sql stable as $$
  select p.place, r.written_by, r.is_extended, r.when_back, r.latest, r.reason
  from (
    values
      -- Deliveries
      (
        array['outbox.available_at'],
        'database', false, 'moved', interval '1 minute',
        'A retry would wait for the clock. A lease ends within a minute.'
      ),
      (
        array['outbox.requested_at', 'webhooks.failing_since', 'webhooks.disabled_at'],
        'database', true, 'bounded', '0',
        'Days of the wait of a delivery, or of the failure of a webhook, are days with a running server.'
      ),
      (
        array['wait_extensions.until'],
        'database', false, 'bounded', '0',
        'It extends what was requested before. A delivery of the present has not waited.'
      ),
      (
        array['wait_extensions.jump'],
        'database', false, null, null,
        'It is a length.'
      ),
      (
        array['outbox.claimed_at', 'delivery_targets.resumed_at'],
        'database', false, 'bounded', '0',
        'A delivery that waits would be resumed later, or would not be.'
      ),
      (
        array['delivery_targets.paused_until', 'delivery_targets.single_until'],
        'database', false, 'moved', '0',
        'The pause would wait for the clock.'
      ),
      (
        array['webhooks.paused_until', 'outbox.failed_at', 'resumed_targets.since', 'resumed_targets.next_at'],
        'database', false, null, null,
        'Only servers of 0.3.0 use it, during an upgrade.'
      ),
      (
        array['webhooks.created_at', 'push_subscriptions.created_at'],
        'database', false, 'bounded', '-5 minutes',
        'A target gets newer events. Five minutes include all that are not dispatched yet.'
      ),
      (
        array['webhooks.tested_at', 'push_subscriptions.tested_at'],
        'database', false, 'bounded', '0',
        'The next test would wait for the clock.'
      ),
      (
        array['webhooks.previous_until'],
        'database', false, 'bounded', '168 hours',
        'A former secret signs for a week at most.'
      ),
      (
        array['webhooks.deleted_at'],
        'database', false, 'bounded', '0',
        'The row would wait for the clock.'
      ),
      (
        array['dead_letters.at'],
        'database', false, 'bounded', '0',
        'The doctor and the overview count those of the last days.'
      ),
      (
        array['push_bursts.burst_at', 'push_bursts.collapsed_at', 'push_bursts.summary_at', 'push_bursts.touched_at'],
        'database', false, 'bounded', '0',
        'The burst would not end.'
      ),
      (
        array['push_bursts.recent'],
        'database', false, 'other', null,
        'It is emptied, so that the next pushes are not collapsed.'
      ),
      (
        array['push_subscriptions.accepted_at', 'push_subscriptions.refused_at'],
        'database', false, null, null,
        'While it is in the future, nothing is known from it.'
      ),
      (
        array[
          'deliveries.at', 'withheld_deliveries.at', 'webhook_attempts.started_at', 'view_pushes.created_at',
          'key_usage.hour', 'audit_log.at', 'openid_used.expires_at', 'used_challenges.expires_at'
        ],
        'database', false, null, null,
        'The row is only kept for longer.'
      ),

      -- Events
      (
        array['events.created_at'],
        'database', false, null, null,
        'A response contains it. Retention goes by the events that follow.'
      ),
      (
        array['events.occurred_at', 'event_counts.hour', 'event_segments.first_at', 'event_segments.last_at'],
        'sender', false, null, null,
        'The sender can choose it. Counts and segments follow from it.'
      ),
      (
        array['events.deleted_at'],
        'database', false, 'bounded', '0',
        'The event could be restored until then, and would not be purged.'
      ),
      (
        array['stale_segments.first_at', 'stale_segments.last_at'],
        'database', false, 'bounded', '0',
        'Words of deleted events would stay in the index.'
      ),
      (
        array['idempotency_keys.expires_at'],
        'database', false, 'other', null,
        'A key is free again after 24 hours. There can be millions, so delete_expired_keys corrects them.'
      ),

      -- Users, and their erasure
      (
        array['erasures.touched_at'],
        'database', false, 'bounded', '0',
        'No process would continue what another one has left.'
      ),
      (
        array['erased_users.erased_at'],
        'database', false, null, null,
        'A response contains it.'
      ),
      (
        array['identities.updated_at', 'unindexed_users.changed_at'],
        'database', false, null, null,
        'It increases with each change, and is only compared with itself.'
      ),
      (
        array['exports.month'],
        'database', false, null, null,
        'It is the month of created_at.'
      ),

      -- Accounts and keys
      (
        array['sessions.created_at', 'sessions.last_seen_at', 'sessions.verified_at'],
        'database', false, 'bounded', '0',
        'The session, and its verification, would last for longer.'
      ),
      (
        array['sign_in_failures.last_at'],
        'database', false, 'bounded', '0',
        'The delay would wait for the clock.'
      ),
      (
        array['known_devices.last_used_at'],
        'database', false, 'bounded', '0',
        'The browser would be known for longer.'
      ),
      (
        array['reset_links.expires_at'],
        'database', false, 'bounded', '1 hour',
        'The link is valid for an hour.'
      ),
      (
        array['setup_links.expires_at'],
        'database', false, 'bounded', '30 minutes',
        'The link is valid for 30 minutes.'
      ),
      (
        array['invites.expires_at'],
        'database', false, 'bounded', '7 days',
        'The invite is valid for 7 days.'
      ),
      (
        array['sign_in_steps.expires_at'],
        'database', false, 'bounded', '5 minutes',
        'Servers of 0.2.0 wait for a code for 5 minutes.'
      ),
      (
        array['management_tokens.expires_at'],
        'database', false, 'other', null,
        'It is moved if the token was created in the future.'
      ),
      (
        array['management_tokens.created_at'],
        'database', false, 'bounded', '0',
        'The next jump would move expires_at again.'
      ),
      (
        array['management_tokens.last_used_at', 'api_keys.last_used_at'],
        'database', false, 'bounded', '0',
        'The next use would not be recorded.'
      ),
      (
        array['memberships.created_at'],
        'database', false, 'bounded', '0',
        'New events would not count as unread.'
      ),
      (
        array['api_keys.expires_at', 'api_keys.chosen_expires_at', 'notification_settings.mute_until'],
        'member', false, null, null,
        'A member chooses the moment.'
      ),

      -- The server
      (
        array['scheduled_backups.attempted_at', 'scheduled_backups.succeeded_at'],
        'server', false, null, null,
        'While it is in the future, nothing is known from it, and the next one is due.'
      ),
      (
        array['rate_windows.started_at', 'organization_usage.minute', 'organization_usage.day'],
        'database', false, null, null,
        'In the future, it counts as over.'
      ),
      (
        array['delivery_kinds.since'],
        'database', false, null, null,
        'It only explains why an old event has no push.'
      ),
      (
        array['clock.checked_at', 'clock.untrusted_until'],
        'database', false, null, null,
        'Only check_clock uses it.'
      ),
      (
        array[
          'organizations.deleted_at', 'projects.deleted_at', 'webhooks.backlog_full_at', 'api_keys.revoked_at',
          'passkeys.disabled_at', 'recovery_codes.used_at', 'totp_secrets.confirmed_at'
        ],
        'database', false, null, null,
        'It only matters whether it is null.'
      ),
      (
        array[
          'accounts.created_at', 'alias_changes.at', 'aliases.created_at', 'api_keys.created_at', 'channels.created_at',
          'identities.created_at', 'insight_cards.created_at', 'invites.created_at', 'migrations.applied_at',
          'openid_connections.created_at', 'openid_connections.last_used_at', 'openid_providers.created_at',
          'organizations.created_at', 'passkeys.created_at', 'passkeys.last_used_at', 'projects.created_at',
          'push_subscriptions.last_push_at', 'reset_links.created_at', 'totp_secrets.created_at',
          'vapid_keys.created_at', 'views.created_at', 'webhooks.updated_at'
        ],
        'database', false, null, null,
        'It is only shown.'
      )
    ) as r (places, written_by, is_extended, when_back, latest, reason)
    cross join lateral unnest(r.places) as p (place)
$$;

-- Extends deadlines by the length of a jump forward. There can be millions of deliveries, so
-- extend_waits extends theirs afterwards.
create or replace function extend_deadlines(jump interval) returns void
language plpgsql
set search_path from current
as $$
declare
  t record;
begin
  -- Others lock webhooks in this order, too.
  perform from webhooks w
    where w.failing_since is not null or w.disabled_at is not null
    order by w.id
    for no key update;
  for t in
    select split_part(s.place, '.', 1) as name, split_part(s.place, '.', 2) as col
    from stored_times() s
    where s.is_extended and s.place <> 'outbox.requested_at'
  loop
    -- Times that were written after the jump are the present already.
    execute format('update %1$I set %2$I = least(%2$I + $1, now()) where %2$I < now()', t.name, t.col) using jump;
  end loop;
  -- check_clock holds the row of the clock, so no other transaction takes the same number.
  insert into wait_extensions (number, jump, until)
    select coalesce(max(e.number), 0) + 1, extend_deadlines.jump, now() from wait_extensions e;
end
$$;

-- Extends the waits of up to max_rows deliveries by a jump that check_clock has found. Returns true
-- if it did. It returns false without a jump, or while another transaction does the same.
-- checked_now() stands still until all are extended.
create or replace function extend_waits(max_rows int) returns boolean
language plpgsql
set search_path from current
-- A plan that was made on small tables would scan large ones.
set enable_seqscan = off
as $$
declare
  extension wait_extensions;
  ids uuid[];
begin
  -- A later jump waits for the earlier one.
  select e.* into extension
    from wait_extensions e
    where e.number = (select min(f.number) from wait_extensions f)
    for update skip locked;
  if extension.number is null then
    return false;
  end if;
  -- Like the settler, it locks rows in the order of their ids.
  ids := array(
    select o.id from outbox o where o.id > extension.last_id order by o.id limit max_rows for update
  );
  update outbox o set requested_at = least(o.requested_at + extension.jump, extension.until)
    where o.id = any(ids) and o.requested_at < extension.until;
  if cardinality(ids) < max_rows then
    delete from wait_extensions e where e.number = extension.number;
  else
    update wait_extensions e set last_id = ids[max_rows] where e.number = extension.number;
  end if;
  return true;
end
$$;

-- Corrects future times after the clock was set back, as stored_times says.
create or replace function clamp_future_times(jump_back interval) returns void
language plpgsql
set search_path from current
-- A plan that was made on small tables would scan large ones.
set enable_seqscan = off
as $$
declare
  t record;
begin
  -- Others lock webhooks, extensions and targets before deliveries, and the settler locks
  -- deliveries in this order, too.
  perform from webhooks w order by w.id for no key update;
  perform from wait_extensions e order by e.number for update;
  perform from delivery_targets d order by d.kind, d.id for no key update;
  perform from outbox o
    where o.available_at > now() + interval '1 minute' or o.requested_at > now() or o.claimed_at > now()
    order by o.id
    for update;
  update push_bursts b set recent = '{}' where b.touched_at > now();
  update management_tokens m set expires_at = m.expires_at - jump_back where m.created_at > now();
  for t in
    select split_part(s.place, '.', 1) as name, split_part(s.place, '.', 2) as col, s.when_back, s.latest
    from stored_times() s
    where s.when_back in ('bounded', 'moved')
  loop
    execute format(
        case t.when_back
          when 'moved' then 'update %1$I set %2$I = greatest(%2$I - $1, now()) where %2$I > now() + $2'
          else 'update %1$I set %2$I = now() + $2 where %2$I > now() + greatest($2, interval ''0'')'
        end,
        t.name, t.col
      ) using jump_back, t.latest;
  end loop;
end
$$;

-- Records the current time, and handles a jump of the clock. Returns the length of the jump in
-- seconds (0 for none, negative for back), and until when the clock is untrusted. After a jump
-- forward of more than an hour, the clock is untrusted for the length of the jump, up to three
-- days. Deadlines of deliveries are extended, because the server may not have been running. After a
-- jump back, future times are corrected, so that nothing waits for the clock to catch up. The work
-- after a jump forward is little, because the next check finds a longer jump if this one fails.
create or replace function check_clock() returns table (jump_s float8, untrusted_until timestamptz)
language plpgsql
set search_path from current
as $$
declare
  noted clock;
  jump interval;
begin
  insert into clock (checked_at) values (now()) on conflict (singleton) do nothing;
  select c.singleton, c.checked_at, c.untrusted_until into noted from clock c for update;
  jump := now() - noted.checked_at;
  if jump > interval '1 hour' then
    noted.untrusted_until := greatest(noted.untrusted_until, now() + least(jump, interval '3 days'));
    perform extend_deadlines(jump);
  -- Another process can record a time slightly later than the start of this transaction.
  elsif jump < interval '-20 seconds' then
    -- A step back alone deletes nothing too early. least would ignore the null of a trusted clock.
    if noted.untrusted_until > now() + interval '3 days' then
      noted.untrusted_until := now() + interval '3 days';
    end if;
    perform clamp_future_times(-jump);
  else
    jump := interval '0';
    -- Servers of 0.2.0 do not call it. A delivery that is locked must not undo the check.
    begin
      perform set_config('lock_timeout', '100', true);
      perform extend_waits(5000);
    exception when lock_not_available then
      null;
    end;
  end if;
  update clock c set checked_at = now(), untrusted_until = noted.untrusted_until;
  return query select extract(epoch from jump)::float8, noted.untrusted_until;
end
$$;
