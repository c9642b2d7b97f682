-- Removes those events of `seqs` that no other transaction has locked; with `before`, only events
-- hidden before it. Returns their number. It locks the project's log last, so writers wait for the
-- counts alone. Other transactions lock the log first, and may then wait for these events. So it
-- gives up before Postgres would look for a deadlock, and everything is undone.
create or replace function delete_unlocked_events(project uuid, seqs bigint[], before timestamptz) returns int
language plpgsql as $$
declare
  free bigint[];
  deleted bigint[];
  occurred_ats timestamptz[];
  channel_ids uuid[];
begin
  -- Commits without waiting for fsync, so the log is locked for less time. After a crash, the
  -- events are deleted again.
  perform set_config('synchronous_commit', 'off', true);
  free := array(
    select e.seq
    from events e
    where e.project_id = project and e.seq = any(seqs)
      and (before is null or e.deleted_at < before)
    order by e.seq
    for update skip locked
  );
  with gone as (
    delete from events e
      where e.project_id = project and e.seq = any(free)
      returning e.seq, e.occurred_at, e.channel_id, e.deleted_at
  )
  select
      array_agg(g.seq order by g.seq),
      array_agg(g.occurred_at order by g.seq) filter (where g.deleted_at is null),
      array_agg(g.channel_id order by g.seq) filter (where g.deleted_at is null)
    into deleted, occurred_ats, channel_ids
    from gone g;
  if deleted is null then
    return 0;
  end if;
  perform set_config('lock_timeout', '500ms', true);
  perform from event_logs l where l.project_id = project for update;
  perform subtract_event_counts(project, occurred_ats, channel_ids);
  insert into stale_segments as s (project_id, segment, first_at, last_at)
    select distinct project, d.seq >> 12, now(), now() from unnest(deleted) as d (seq) order by 2
    on conflict (project_id, segment) do update set last_at = excluded.last_at;
  return cardinality(deleted);
end
$$;
