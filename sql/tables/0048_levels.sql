-- Levels are 0 low, 2 high and 3 critical; null is normal. Only append_batch and append_event write
-- those of events: a constraint would scan the table. The search index serves searches.
alter table events add column level smallint, add column url text;

-- The level of events that are sent without one.
alter table channels add column level smallint check (level in (0, 2, 3));

-- True if a channel of the project has a level. The append locks this row anyway, so it looks up no
-- channel of other projects.
alter table event_logs add column has_levels boolean not null default false;

-- True if critical events pass the quiet hours and mutes of the device's member; null until the
-- member is asked.
alter table push_subscriptions add column lets_critical_through boolean;
