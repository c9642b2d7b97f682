-- The browser of a session and of a subscription: the id of one of the account's known_devices.
alter table sessions add column browser_id uuid;

alter table push_subscriptions add column browser_id uuid;

-- The settings of the browser's last subscription, which is gone. The next one takes them over.
alter table known_devices add column push_settings jsonb;
