-- Returns the tables with rows of projects, in the order of removal. A table comes before the
-- tables that it references. audit_log is not included, because its rows are kept after a project
-- is deleted.
create function list_project_tables() returns text[]
language sql immutable as $$
  select array[
    'push_bursts', 'notification_settings', 'outbox', 'dead_letters', 'deliveries', 'withheld_deliveries', 'delivery_cursors',
    'webhook_attempts', 'webhook_channels', 'webhooks',
    'events', 'event_counts', 'event_segments', 'event_tokens', 'search_parts', 'stale_segments', 'search_cursors',
    'read_marks', 'channels', 'alias_changes', 'aliases',
    'user_words', 'unindexed_users', 'identities', 'erasure_names', 'erasures',
    'erased_names', 'erased_users',
    'idempotency_keys', 'event_logs', 'key_usage', 'rate_windows', 'api_keys'
  ]
$$;

-- Deletes up to `batch_size` rows of a project from the first table that has any. Returns true when
-- it deleted some.
create function reap_rows(project uuid, batch_size int) returns boolean
language plpgsql as $$
declare
  name text;
  n int;
begin
  foreach name in array list_project_tables() loop
    execute format(
      'delete from %1$I where ctid = any (array(select t.ctid from %1$I t where t.%2$s limit $2))', name,
      case when name in ('key_usage', 'rate_windows')
        then 'key_id in (select k.id from api_keys k where k.project_id = $1)' else 'project_id = $1' end
    ) using project, batch_size;
    get diagnostics n = row_count;
    if n > 0 then
      return true;
    end if;
  end loop;
  return false;
end
$$;

-- Does one step of removing deleted projects. It deletes up to `batch_size` rows of a project, or
-- an empty project, or an organization without projects. Returns false when there is nothing left
-- to do. Only one process works at a time. The number of the lock is arbitrary. Custom plans,
-- because a cached plan for a small table would scan the table after it has grown.
create function reap(batch_size int) returns boolean
language plpgsql
set plan_cache_mode = force_custom_plan
as $$
declare
  project uuid;
  organization uuid;
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

  if reap_rows(project, batch_size) then
    return true;
  end if;
  delete from projects p where p.id = project;
  return true;
end
$$;
