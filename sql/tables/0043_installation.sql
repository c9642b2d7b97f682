-- The installation, whose backups have its first eight digits in their names. A restore changes it.
alter table installation add column id uuid not null default gen_random_uuid();

-- The names had the epoch before.
update installation set id = epoch;
