-- Rejects updates and truncation, and the deletion of entries that are younger than a year.
create or replace function reject_audit_log_change() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'DELETE' and old.at < now() - interval '1 year' then
    return old;
  end if;
  raise exception 'the audit log is append-only' using errcode = 'restrict_violation';
end
$$;

create or replace trigger audit_log_is_append_only before delete or update on audit_log
  for each row execute function reject_audit_log_change();

create or replace trigger audit_log_is_not_truncated before truncate on audit_log
  for each statement execute function reject_audit_log_change();
