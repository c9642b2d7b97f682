-- The constraints that this drops have no effect on servers of 0.2.0.
-- Oldest server: 0.2.0

-- insert_webhook_attempts locks the webhooks of attempts, which proves once that they exist.
alter table webhook_attempts drop constraint if exists webhook_attempts_project_id_webhook_id_fkey;

-- webhook_attempts_of_webhook finds an attempt, too. The ids are random, and only inserted once.
alter table webhook_attempts drop constraint if exists webhook_attempts_pkey;

-- webhook_attempts_of_event serves recovery as well. An event has few attempts.
drop index if exists webhook_attempts_delivered;

-- Returns what attempts of deliveries need: one row for each webhook, and one with the event_text
-- of each event. A deleted webhook or event has no row. With may_probe, one delivery of a webhook
-- that has failed failures_to_pause times, and whose pause is over, becomes its probe. The others
-- wait probe_s seconds for its outcome. Times are in ms since 1970.
create function read_webhook_deliveries(
  project_ids uuid[], webhook_ids uuid[], event_ids uuid[], may_probe boolean, failures_to_pause int, probe_s float8
) returns table (project_id uuid, id uuid, event_text text, webhook json)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
  return query
    with targets as materialized (
      select distinct t.project_id, t.id
      from unnest(project_ids, webhook_ids) as t (project_id, id)
    ), probe_candidates as materialized (
      select t.project_id, t.id
      from targets t
        cross join lateral (
          select w.id
          from webhooks w
          where w.project_id = t.project_id and w.id = t.id
            and w.failures >= failures_to_pause and w.paused_until <= now() and w.disabled_at is null
            and may_probe
          -- A locked webhook must not delay the others.
          for no key update skip locked
        ) w
    ), probes as (
      update webhooks w set paused_until = now() + make_interval(secs => probe_s)
      from probe_candidates f
      where w.project_id = f.project_id and w.id = f.id
      returning w.id
    )
    select
      t.project_id, t.id, null,
      json_build_object(
        'type', w.type, 'url', w.url, 'preset', w.preset, 'secret', w.secret,
        'previousSecret', case when w.previous_until > now() then w.previous_secret end,
        'disabledAtMs', extract(epoch from w.disabled_at) * 1000,
        'pausedUntilMs', extract(epoch from w.paused_until) * 1000,
        'hasFailures', w.failures > 0,
        'hasProbe', exists (select from probes f where f.id = t.id),
        'project', p.name, 'organizationId', o.id, 'organization', o.name,
        'nowMs', extract(epoch from clock_timestamp()) * 1000
      )
    from targets t
      join webhooks w on w.project_id = t.project_id and w.id = t.id and w.deleted_at is null
      join projects p on p.id = w.project_id and p.deleted_at is null
      join organizations o on o.id = p.organization_id and o.deleted_at is null
    union all
    select e.project_id, e.id, x.text, null
    from (
        select distinct t.project_id, t.event_id
        from unnest(project_ids, event_ids) as t (project_id, event_id)
        where t.event_id is not null
      ) t
      cross join lateral event_by_id(t.project_id, t.event_id) e
      left join lateral channel_by_id(e.project_id, e.channel_id) c on true
      cross join lateral event_text(
        e.project_id, e.id, e.seq, c.public_id, c.name, e.user_ref, e.occurred_at, e.created_at,
        e.title, e.description, e.icon, e.tags, e.metadata, e.source, e.notify
      ) x
    where e.deleted_at is null;
end
$$;
