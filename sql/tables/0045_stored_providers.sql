-- True once the operator knows the settings that replace the provider. Servers of 0.3.0 still use
-- it, so the next version drops the table.
alter table openid_providers add column is_handed_over boolean not null default false;
