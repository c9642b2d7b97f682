-- Oldest server: 0.3.0

-- Quiet hours of all devices of an account that have none of their own: an array of
-- {"days": [1], "from": "22:00", "to": "07:00", "timeZone": "UTC"}.
alter table accounts add column quiet_hours jsonb check (jsonb_array_length(quiet_hours) <= 14);

-- The quiet hours of the device; null if those of the account apply.
alter table push_subscriptions add column quiet_hours jsonb check (jsonb_array_length(quiet_hours) <= 14);

-- Channels and projects that are muted on the device: an array of {"id": "chn_…", "until": null}.
alter table push_subscriptions add column mutes jsonb not null default '[]' check (jsonb_array_length(mutes) <= 100);

-- True if one push after quiet hours says what they withheld.
alter table push_subscriptions add column has_quiet_summary boolean not null default false;

-- The window of 0.3.0 is one on all days. keep_quiet_window keeps it, until no such server is left.
update push_subscriptions d set quiet_hours = jsonb_build_array(jsonb_build_object(
  'days', '[1, 2, 3, 4, 5, 6, 7]'::jsonb, 'from', to_char(make_interval(mins => d.quiet_from), 'HH24:MI'),
  'to', to_char(make_interval(mins => d.quiet_to), 'HH24:MI'), 'timeZone', d.quiet_zone
))
where d.quiet_from is not null;

update known_devices k set push_settings = k.push_settings || jsonb_build_object('quietHours', jsonb_build_array(jsonb_build_object(
  'days', '[1, 2, 3, 4, 5, 6, 7]'::jsonb, 'from', to_char(make_interval(mins => (k.push_settings #>> '{quiet,0}')::int), 'HH24:MI'),
  'to', to_char(make_interval(mins => (k.push_settings #>> '{quiet,1}')::int), 'HH24:MI'),
  'timeZone', k.push_settings #>> '{quiet,2}'
)))
where k.push_settings #>> '{quiet,0}' is not null;

-- One row is a push that quiet hours withheld from a device, until its summary ends.
create table quiet_pushes (
  project_id uuid not null,
  event_id uuid not null,
  target_id uuid not null references push_subscriptions on delete cascade,
  -- True if the push stood for a burst.
  is_summary boolean not null,
  -- Serves the deletion of a project.
  primary key (project_id, event_id, target_id)
);

-- Serves the summary of a device.
create index quiet_pushes_of_target on quiet_pushes (target_id);
