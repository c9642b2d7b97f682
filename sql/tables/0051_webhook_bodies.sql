-- Oldest server: 0.3.0

-- The own body and headers of a webhook, sealed, and the view whose matches it gets. There is no
-- foreign key, because 0.3.0 could not say why a view is not deleted.
alter table webhooks add column own_request text, add column view_id uuid;

-- The views that a range is matched with: those with a bell (push), or those of webhooks.
alter table bell_ranges add column kind text not null default 'push' check (kind in ('webhook', 'push'));
