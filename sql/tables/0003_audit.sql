-- One row is an action, written in the transaction that performed it. It has no foreign keys,
-- because it outlives the rows that it refers to. account_id is set if the actor is an account, or
-- a token that it created; key_id if it is an API key.
-- organization_id is null for actions on the whole installation.
create table audit_log (
  id uuid primary key,
  organization_id uuid,
  project_id uuid,
  at timestamptz not null default now(),
  actor text not null check (
    actor in ('account', 'token', 'API key', 'command line', 'server', 'anonymous')
  ),
  account_id uuid,
  session_id uuid,
  token_id uuid,
  -- The name outlives the token.
  token_name text,
  key_id uuid,
  action text not null,
  -- The public id of the object. It never contains a secret or the id of a user.
  target text,
  details json not null,
  address text,
  user_agent text,
  check ((actor in ('account', 'token')) = (account_id is not null)),
  check ((actor = 'token') = (token_id is not null and token_name is not null)),
  check ((actor = 'API key') = (key_id is not null))
);

-- Serves an organization's log, newest first. Ids ascend with time.
create index audit_log_of_organization on audit_log (organization_id, id);

-- Serves the log of an organization, filtered by account.
create index audit_log_of_account on audit_log (organization_id, account_id, id);

-- Serves the log of an organization, filtered by action.
create index audit_log_of_action on audit_log (organization_id, action, id);

-- Serves the export of an account's own data.
create index audit_log_by_account on audit_log (account_id, id) where account_id is not null;

-- Serves the sweep of old entries.
create index audit_log_of_time on audit_log (at);

-- Rejects updates and truncation, and the deletion of entries that are younger than a year.
create function reject_audit_log_change() returns trigger
language plpgsql as $$
begin
  if tg_op = 'DELETE' and old.at < now() - interval '1 year' then
    return old;
  end if;
  raise exception 'the audit log is append-only' using errcode = 'restrict_violation';
end
$$;

create trigger audit_log_is_append_only before update or delete on audit_log
  for each row execute function reject_audit_log_change();

create trigger audit_log_is_not_truncated before truncate on audit_log
  for each statement execute function reject_audit_log_change();
