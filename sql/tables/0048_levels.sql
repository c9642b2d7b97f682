-- Oldest server: 0.3.0

-- Levels are 0 low, 2 high and 3 critical; null is normal. Appends lock these tables in this order.

-- True if a channel of the project has a level. The append locks this row anyway, so it looks up no
-- channel of other projects.
alter table event_logs add column has_levels boolean not null default false;

-- The level of events that are sent without one. Citus takes no check beside a new column.
alter table channels add column level smallint;
alter table channels add constraint channels_level_check check (level in (0, 2, 3));

-- Only append_batch and append_single write levels of events: a constraint would scan the table.
-- The search index serves searches.
alter table events add column level smallint, add column url text;

-- True if critical events pass the quiet hours and mutes of the device's member; null until the
-- member is asked.
alter table push_subscriptions add column lets_critical_through boolean;
