-- The last time that the push service accepted a push to the device, and the last time that it
-- refused one since; null if it has not. refusals counts refusals of this device alone: another
-- device of the same push service was accepted since the one before.
alter table push_subscriptions
  add column accepted_at timestamptz,
  add column refused_at timestamptz,
  -- How far the clock of the push service was ahead when it refused the last push, in seconds. Null
  -- if the response had no date.
  add column service_ahead_s int;

update push_subscriptions set accepted_at = last_push_at where is_proven and refusals = 0;
