-- True for the project with sample data, which an admin can remove without a confirmation.
alter table projects add column is_sample boolean not null default false;

-- An organization has at most one.
create unique index projects_sample on projects (organization_id)
where is_sample and deleted_at is null;
