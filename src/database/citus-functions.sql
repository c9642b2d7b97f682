-- Bodies of functions for a database on Citus. `tidings migrate --distributed` replaces them after
-- each migration.

-- Cancels the deliveries of deleted events, which a trigger does elsewhere. Like the settler, it
-- locks rows in the order of their ids. The settings are those of the trigger.
create or replace function cancel_deliveries_of(project uuid, event_ids uuid[]) returns void
language plpgsql
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = on
as $$
begin
  with found as materialized (
    select o.id
    from outbox o
    where o.project_id = project and o.event_id = any(event_ids)
    order by o.id
    for update
  ), ended as (
    delete from outbox o
      using found f
      where o.id = f.id
      returning o.id, o.project_id, o.event_id, o.kind, o.target_id, o.attempts
  )
  insert into deliveries as d (id, project_id, event_id, kind, target_id, state, attempts, reason)
    select e.id, e.project_id, e.event_id, e.kind, e.target_id, 'cancelled', e.attempts, 'The event was deleted'
    from ended e
      join projects p on p.id = e.project_id and p.deleted_at is null
    order by e.project_id, e.event_id, e.kind, e.target_id
    on conflict (project_id, event_id, kind, target_id) do update set
      id = excluded.id, state = excluded.state, attempts = excluded.attempts,
      latency_ms = null, reason = excluded.reason, at = excluded.at
      -- A delivery that succeeded before its event was sent again stays delivered.
      where d.state <> 'delivered';
  delete from dead_letters d
    where d.project_id = project and d.event_id = any(event_ids);
end
$$;

-- Returns the size of the database on all nodes that can be reached, in bytes.
create or replace function database_bytes() returns bigint
language plpgsql
as $$
begin
  return pg_database_size(current_database()) + (
    select coalesce(sum(n.result::bigint), 0)
    from run_command_on_workers('select pg_database_size(current_database())') n
    where n.success
  );
end
$$;

-- Returns the projects with users to index. The table is small, because the indexer
-- empties it.
create or replace function unindexed_project_ids() returns setof uuid
language plpgsql stable
as $$
begin
  return query select distinct u.project_id from unindexed_users u;
end
$$;

-- Returns the channels with a retention. Citus reads all of them, and their oldest events, in one
-- statement on each node.
create or replace function channels_with_retention(after_project uuid, after_channel uuid, max_rows int)
returns table (project_id uuid, channel_id uuid, late_s float8)
language plpgsql stable
as $$
#variable_conflict use_column
begin
  return query
    with kept as materialized (
      select p.id, p.keep_days from projects p where p.deleted_at is null
    )
    select
      c.project_id, c.id,
      coalesce(extract(epoch from now() - make_interval(days => coalesce(c.keep_days, k.keep_days)) - (
        select e.created_at
        from events e
        where e.project_id = c.project_id
          and (e.channel_id, e.seq) > (c.id, 0) and (e.channel_id, e.seq) <= (c.id, 9223372036854775807)
          and e.created_at <= now()
        order by e.channel_id, e.seq
        limit 1
      )), 0)::float8
    from channels c
      join kept k on k.id = c.project_id
    where coalesce(c.keep_days, k.keep_days) is not null
      and (c.project_id, c.id) > (after_project, after_channel)
    order by c.project_id, c.id
    limit max_rows;
end
$$;

-- Deletes expired Idempotency-Keys of up to 100 projects, `max_rows` of each, and corrects those
-- that a clock which was ahead has made. Returns their number, up to `max_rows`. Citus locks rows
-- of one project at a time.
create or replace function delete_expired_keys(max_rows int) returns int
language plpgsql
as $$
declare
  project uuid;
  n int;
  sum int := 0;
begin
  for project in
    select distinct k.project_id
    from idempotency_keys k
    where k.expires_at < now() or k.expires_at > now() + interval '24 hours 1 minute'
    limit 100
  loop
    update idempotency_keys d set expires_at = now() + interval '24 hours'
      where d.project_id = project and d.key = any(array(
        select k.key
        from idempotency_keys k
        where k.project_id = project and k.expires_at > now() + interval '24 hours 1 minute'
        limit max_rows
        for update skip locked
      ));
    get diagnostics n = row_count;
    sum := sum + n;
    delete from idempotency_keys d
      where d.project_id = project and d.key = any(array(
        select k.key
        from idempotency_keys k
        where k.project_id = project and k.expires_at < now()
        limit max_rows
        for update skip locked
      ));
    get diagnostics n = row_count;
    sum := sum + n;
  end loop;
  return least(sum, max_rows);
end
$$;

-- Appends batches on the node of `project`. Batch n has project_counts[n] of the projects, all of
-- one shard, and event_counts[n] of the events. project_numbers count the projects of a batch from
-- 1. Each batch is appended by the append_batch of its shard. Returns its result, one row per
-- batch.
create or replace function append_batches(
  project uuid, project_ids uuid[], project_counts int[], event_counts int[], project_numbers int[],
  ids uuid[], occurred_ats timestamptz[],
  channel_ids uuid[], channel_public_ids text[], channel_slugs text[], channel_names text[],
  titles text[], descriptions text[], icons text[], tag_lists text[], metadatas text[], user_refs text[],
  sources text[], notifies boolean[],
  keys text[], fingerprints bytea[], response_heads text[], response_tails text[],
  levels smallint[] default null, urls text[] default null,
  threads text[] default null, states smallint[] default null
) returns table (at_ms bigint, windows json, seqs json, notes json)
language plpgsql
as $$
declare
  project_at int := 1;
  a int := 1;
  z int;
begin
  for n in 1 .. cardinality(event_counts) loop
    z := a + event_counts[n] - 1;
    return query execute format(
        'select at_ms, windows, seqs, notes
        from append_batch_%s(
          $1, null, null, $2, null, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
          $21, $22, $23, $24
        )',
        get_shard_id_for_distribution_column('event_logs', project_ids[project_at])
      ) using
        project_ids[project_at:project_at + project_counts[n] - 1],
        case when project_counts[n] > 1 then project_numbers[a:z] end,
        ids[a:z], occurred_ats[a:z], channel_ids[a:z], channel_public_ids[a:z], channel_slugs[a:z],
        channel_names[a:z], titles[a:z], descriptions[a:z], icons[a:z], tag_lists[a:z], metadatas[a:z],
        user_refs[a:z], sources[a:z], notifies[a:z], keys[a:z], fingerprints[a:z], response_heads[a:z],
        response_tails[a:z], levels[a:z], urls[a:z], threads[a:z], states[a:z];
    project_at := project_at + project_counts[n];
    a := z + 1;
  end loop;
end
$$;
