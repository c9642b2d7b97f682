-- The quota of channels, which servers set at their start: see take_channels.
alter table installation add column max_channels int;

-- One row is how many channels an organization has, or had when one of its projects was deleted.
create unlogged table organization_channels (
  organization_id uuid primary key references organizations on delete cascade,
  channels int not null,
  counted_at timestamptz not null
);
