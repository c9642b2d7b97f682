-- The browser of a session and of a subscription: the id of one of the account's known_devices.
alter table sessions add column browser_id uuid;

alter table push_subscriptions add column browser_id uuid;

-- The settings of the browser's last subscription, which is gone. The next one takes them over.
alter table known_devices add column push_settings jsonb;

-- The expiry that a rotated key had, which the keys in its place get; infinity for none. The key
-- itself expires with its overlap. Null if it was not rotated.
alter table api_keys add column chosen_expires_at timestamptz;
