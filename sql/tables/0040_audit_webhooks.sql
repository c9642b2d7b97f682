-- Webhooks of the audit log are removed. The update disables them, and shows why. An index of the
-- outbox serves the deletion.
with former as (
  update webhooks set
    disabled_at = now(),
    disabled_reason = 'Webhooks of the audit log were removed in 0.4.0. Read it at /api/organizations/{organizationId}/audit',
    generation = generation + 1,
    updated_at = now()
  where type = 'audit.entry' and deleted_at is null
  returning project_id, id
), given_up as (
  delete from dead_letters d using former f
  where d.project_id = f.project_id and d.kind = 'webhook' and d.target_id = f.id
)
delete from outbox o using former f
where o.project_id = f.project_id and o.kind = 'webhook' and o.target_id = f.id;
