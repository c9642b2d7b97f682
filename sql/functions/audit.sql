-- Rejects updates and truncation, and the deletion of entries that are younger than a year.
create or replace function reject_audit_log_change() returns trigger
language plpgsql
set search_path from current
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

-- Writes the deliveries of an audit entry, in the transaction of the entry. A webhook with a full
-- backlog gets a record instead.
create or replace function enqueue_audit_entry() returns trigger
language plpgsql
set search_path from current
as $$
begin
  with matching as materialized (
    select w.project_id, w.id, w.backlog_full_at is not null as is_full
    from projects p
      join webhooks w on w.project_id = p.id
    where p.organization_id = new.organization_id and p.deleted_at is null
      and w.type = 'audit.entry' and w.deleted_at is null and w.disabled_at is null
  ), refused as (
    insert into deliveries (project_id, event_id, kind, target_id, state, reason)
    select
      m.project_id, new.id, 'webhook', m.id, 'failed',
      'backlog_full: This webhook already has 100,000 pending deliveries. Recover the time range once it works again'
    from matching m
    where m.is_full
  )
  insert into outbox (project_id, event_id, kind, target_id)
  select m.project_id, new.id, 'webhook', m.id
  from matching m
  where not m.is_full;
  return null;
end
$$;

create or replace trigger audit_log_is_delivered after insert on audit_log
  for each row when (new.organization_id is not null) execute function enqueue_audit_entry();
