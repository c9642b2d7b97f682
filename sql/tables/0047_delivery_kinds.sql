-- Every installation has both kinds. Former servers registered them at their start.
insert into delivery_kinds (kind) values ('webhook'), ('push') on conflict (kind) do nothing;
