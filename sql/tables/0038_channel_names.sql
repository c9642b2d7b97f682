-- The slug of the present name of a channel, which differs from its first slug if it was renamed.
-- The server computes it, and fills in those of channels from before. Null is not known yet.
alter table channels add column name_slug text;

-- Serves names that channels were given later.
create index channels_of_name on channels (project_id, name_slug) where name_slug <> slug;

-- Serves the filling.
create index channels_without_name_slug on channels (id) where name_slug is null;
