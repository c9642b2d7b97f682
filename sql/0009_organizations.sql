-- Serves the list of what one person did in an organization.
create index audit_log_of_person on audit_log (organization_id, person_id, id);

-- Serves the list of where one thing was done in an organization.
create index audit_log_of_action on audit_log (organization_id, action, id);

-- Serves the sweep of expired invites.
create index invites_expired on invites (expires_at);

-- Serves the withdrawal of the invites of somebody who may no longer invite.
create index invites_of_inviter on invites (invited_by);

-- The tables that belong to projects, in the order in which rows go: what points at others first. Those that only a
-- later migration makes are passed over until then. audit_log is none of them: it outlives projects.
create function tables_of_projects() returns text[]
language sql immutable as $$
  select array[
    'events', 'event_counts', 'event_stretches', 'read_marks', 'channels', 'alias_changes', 'aliases', 'identities',
    'idempotency_keys', 'event_logs', 'key_usage', 'rate_windows', 'api_keys'
  ]
$$;

-- Clears away what is left of one deleted project: at most so many rows of one table at a time, and the project itself
-- when there are none. Then of deleted organizations. Returns whether it found work. One process at a time does it:
-- the number of the lock means nothing.
-- Planned anew each time: a plan made on a small table would scan it when it is big.
create function reap(most int) returns boolean
language plpgsql
set plan_cache_mode = force_custom_plan
as $$
declare
  project uuid;
  organization uuid;
  name text;
  n int;
begin
  if not pg_try_advisory_xact_lock(7134203962) then
    return false;
  end if;

  select p.id into project from projects p where p.deleted_at is not null order by p.deleted_at, p.id limit 1;
  if not found then
    select o.id into organization
      from organizations o
      where o.deleted_at is not null and not exists (select from projects p where p.organization_id = o.id)
      limit 1;
    if found then
      delete from organizations o where o.id = organization;
    end if;
    return found;
  end if;

  foreach name in array tables_of_projects() loop
    continue when to_regclass(name) is null;
    execute format(
      'delete from %1$I where ctid = any (array(select t.ctid from %1$I t where t.%2$s limit $2))', name,
      case when name in ('key_usage', 'rate_windows')
        then 'key_id in (select k.id from api_keys k where k.project_id = $1)' else 'project_id = $1' end
    ) using project, most;
    get diagnostics n = row_count;
    if n > 0 then
      return true;
    end if;
  end loop;
  delete from projects p where p.id = project;
  return true;
end
$$;
