-- Returns the tables with rows of projects, in the order of removal. A table comes before the
-- tables that it references. audit_log is not included, because its rows are kept after a project
-- is deleted.
create or replace function list_project_tables() returns text[]
language sql immutable
return array[
  'view_pushes', 'bell_ranges', 'view_bells', 'view_marks', 'views', 'insight_cards',
  'push_bursts', 'quiet_pushes', 'shown_pushes', 'notification_settings', 'outbox', 'dead_letters', 'deliveries', 'withheld_deliveries', 'delivery_cursors',
  'hook_requests', 'hooks', 'webhook_attempts', 'webhook_channels', 'webhooks', 'acknowledgements', 'questions',
  'events', 'thread_events', 'threads', 'event_counts', 'event_segments', 'event_tokens', 'search_parts', 'stale_segments', 'search_cursors',
  'read_marks', 'storms', 'heartbeat_pings', 'heartbeats', 'silences', 'escalations', 'rules', 'channels', 'alias_changes', 'aliases',
  'user_words', 'unindexed_users', 'identities', 'erasure_names', 'erasures',
  'erased_names', 'erased_users',
  'idempotency_keys', 'exports', 'event_logs', 'key_usage', 'rate_windows', 'api_keys'
];

-- Deletes up to `batch_size` rows of a project from the first table that has any. Returns true when
-- it deleted some, false when none is left, and null when other transactions hold all that are left
-- in the table. It never waits for them. A delete that waits for a changed row skips its new
-- version.
create or replace function reap_rows(project uuid, batch_size int) returns boolean
language plpgsql
set search_path from current
as $$
declare
  name text;
  own text;
  n int;
  is_left boolean;
begin
  foreach name in array list_project_tables() loop
    own := case when name in ('key_usage', 'rate_windows')
      then 'key_id in (select k.id from api_keys k where k.project_id = $1)' else 'project_id = $1' end;
    execute format(
      'delete from %1$I where %2$s and ctid = any (array(
        select t.ctid from %1$I t where t.%2$s limit $2 for update of t skip locked
      ))', name, own
    ) using project, batch_size;
    get diagnostics n = row_count;
    if n > 0 then
      return true;
    end if;
    execute format('select exists (select from %1$I where %2$s)', name, own) into is_left using project;
    if is_left then
      return null;
    end if;
  end loop;
  return false;
end
$$;

-- Does one step of removing deleted projects. It deletes up to `batch_size` rows of a project, or
-- an empty project, or an organization without projects. It tries ten projects, which are others in
-- the next step. So a step has a bound, and projects with rows that other transactions hold keep no
-- other project for long. Returns false when there is nothing left to do, or when other
-- transactions hold what it tried. Only one process works at a time. Custom plans, because a cached
-- plan for a small table would scan the table after it has grown.
create or replace function reap(batch_size int) returns boolean
language plpgsql
set plan_cache_mode = force_custom_plan
as $$
declare
  project uuid;
  organization uuid;
  is_deleted boolean;
begin
  if not pg_try_advisory_xact_lock(71342002, 0) then
    return false;
  end if;

  for project in
    select p.id from projects p where p.deleted_at is not null order by random() limit 10
  loop
    is_deleted := reap_rows(project, batch_size);
    if is_deleted then
      return true;
    end if;
    if not is_deleted then
      delete from projects p
        where p.id = (select q.id from projects q where q.id = project for update skip locked);
      if found then
        return true;
      end if;
    end if;
  end loop;

  select o.id into organization
    from organizations o
    where o.deleted_at is not null and not exists (select from projects p where p.organization_id = o.id)
    limit 1
    for update of o skip locked;
  if found then
    delete from organizations o where o.id = organization;
  end if;
  return found;
end
$$;
