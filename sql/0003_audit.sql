-- One row is an action, written in the transaction that performed it. It has no foreign keys: it outlives its subjects.
-- account_id is null for the command line and the server; organization_id is null for what concerns the installation.
create table audit_log (
  id uuid primary key,
  organization_id uuid,
  project_id uuid,
  at timestamptz not null default now(),
  actor text not null check (actor in ('account', 'command line', 'server', 'anonymous')),
  account_id uuid,
  session_id uuid,
  action text not null,
  -- The public id of the object. It is never a secret and never the name of an erased user.
  target text,
  details json not null,
  address text,
  user_agent text,
  check ((actor = 'account') = (account_id is not null))
);

-- Serves an organization's log, newest first: ids ascend with time.
create index audit_log_of_organization on audit_log (organization_id, id);

-- Serves the log of one account's actions in an organization.
create index audit_log_of_account on audit_log (organization_id, account_id, id);

-- Serves the log of one kind of action in an organization.
create index audit_log_of_action on audit_log (organization_id, action, id);

-- Serves the sweep of old entries.
create index audit_log_of_time on audit_log (at);

-- Refuses every change of an entry, and its deletion before it is a year old.
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
