-- Removes from the attempts of these events what repeats their content.
create or replace function erase_webhook_attempts(project uuid, event_ids uuid[]) returns void
language sql
set search_path from current
as $$
  update webhook_attempts a set response = null, body_hash = decode(repeat('00', 32), 'hex')
    where a.project_id = project and a.event_id = any(event_ids) and a.event_id is not null
$$;

-- Inserts attempts, in one plan for every call. has_users says whether the body named a user. An
-- attempt whose user or event was erased meanwhile has neither a response nor a hash. With
-- only_free it leaves out webhooks with failures to reset, and webhooks that are locked. It locks
-- each webhook once, in place of a foreign key, which would be checked for each attempt. Returns
-- the ids of the inserted attempts.
create or replace function insert_webhook_attempts(
  project_ids uuid[], ids uuid[], webhook_ids uuid[], event_ids uuid[], kinds text[], numbers int[], outcomes text[],
  statuses int[], errors text[], reasons text[], responses text[], latencies_ms int[], starts timestamptz[],
  hosts text[], presets text[], body_hashes bytea[], has_users boolean[], only_free boolean
) returns setof uuid
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
  -- A crash can lose the record of an attempt together with its settlement. Both are then repeated.
  perform set_config('synchronous_commit', 'off', true);
  if not only_free then
    perform
    from unnest(project_ids, webhook_ids) as t (project_id, id)
      join webhooks w on w.project_id = t.project_id and w.id = t.id
    order by w.id
    for key share of w;
  end if;
  return query
    with targets as materialized (
      select distinct t.project_id, t.id
      from unnest(project_ids, webhook_ids) as t (project_id, id)
    ), found as materialized (
      select w.project_id, w.id
      from targets t
        cross join lateral (
          select w.project_id, w.id
          from webhooks w
          where w.project_id = t.project_id and w.id = t.id
            and (not only_free or w.failures = 0 and w.pauses = 0)
          for key share skip locked
        ) w
    )
    insert into webhook_attempts (
      project_id, id, webhook_id, event_id, kind, number, outcome, status, error, reason, response,
      latency_ms, started_at, host, preset, body_hash
    )
    select
      a.project_id, a.id, a.webhook_id, a.event_id, a.kind, a.number, a.outcome, a.status, a.error, a.reason,
      case when s.is_same then a.response end, a.latency_ms, a.started_at, a.host, a.preset,
      case when s.is_same then a.body_hash else decode(repeat('00', 32), 'hex') end
    from unnest(
        project_ids, ids, webhook_ids, event_ids, kinds, numbers, outcomes, statuses, errors, reasons, responses,
        latencies_ms, starts, hosts, presets, body_hashes, has_users
      ) as a (
        project_id, id, webhook_id, event_id, kind, number, outcome, status, error, reason, response,
        latency_ms, started_at, host, preset, body_hash, has_user
      )
      cross join lateral (
        select a.event_id is null or exists (
            select
            from event_by_id(a.project_id, a.event_id) f
            where f.user_ref is not null or not a.has_user
          ) as is_same
      ) s
      join found w on w.project_id = a.project_id and w.id = a.webhook_id
    returning id;
end
$$;

-- Returns what attempts of deliveries need: one row for each webhook, and one with the event_text
-- of each event. A deleted webhook or event has no row. Times are in ms since 1970.
create or replace function read_webhooks(project_ids uuid[], webhook_ids uuid[], event_ids uuid[])
returns table (project_id uuid, id uuid, event_text text, webhook json)
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
    )
    select
      t.project_id, t.id, null,
      json_build_object(
        'url', w.url, 'preset', w.preset, 'secret', w.secret,
        'previousSecret', case when is_unexpired(w.previous_until, interval '7 days') then w.previous_secret end,
        'previousUntilMs', extract(epoch from w.previous_until) * 1000,
        'own', w.own_request,
        'generation', w.generation,
        'disabledAtMs', extract(epoch from w.disabled_at) * 1000,
        'pauses', w.pauses,
        'hasFailures', w.failures > 0 or w.pauses > 0 or exists (
          select from delivery_targets d where d.kind = 'webhook' and d.id = w.id and d.single_until > now()
        ),
        'project', p.name, 'organizationId', o.id, 'organization', o.name,
        'nowMs', extract(epoch from clock_timestamp()) * 1000,
        'checkedNowMs', extract(epoch from (select checked_now())) * 1000
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
      cross join lateral text_of_event(
        e.project_id, e.id, e.seq, c.public_id, c.name, e.user_ref, e.occurred_at, e.created_at,
        e.title, e.description, e.icon, e.tags, e.metadata, e.source, e.notify, e.level, e.url,
        e.thread, e.state, e.thread_seq
      ) x
    where e.deleted_at is null;
end
$$;

-- Takes ranges of logs, and writes a delivery for each webhook without a view that matches an event
-- and is older than it. Deleted events get deliveries too, because they can still be restored.
-- It keeps the ranges for the views of other webhooks, and says so by `has_views`.
create or replace function dispatch_webhooks(project_ids uuid[], max_events int, refusal text, lease json)
returns table (ranges json, count bigint, leased json)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  new_ranges event_range[] := array(select r from lock_event_ranges('webhook', project_ids) r);
  with_targets uuid[];
  with_views uuid[];
  taken event_range[];
  wanted new_delivery[];
begin
  select coalesce(array_agg(f.project_id), '{}'), coalesce(array_agg(f.project_id) filter (where x.has_view), '{}')
  into with_targets, with_views
  from unnest(new_ranges) f
    cross join lateral (
      select bool_or(w.view_id is not null) as has_view
      from webhooks w
      where w.project_id = f.project_id and w.type = 'event.created' and w.deleted_at is null and w.disabled_at is null
      having count(*) > 0
    ) x;
  taken := array(select r from take_ranges('webhook', new_ranges, with_targets, max_events) r);
  wanted := array(
    select (e.project_id, e.id, w.id, e.created_at, e.deleted_at is not null, w.backlog_full_at is not null)::new_delivery
    from unnest(taken) r
      cross join lateral (
        select e.*
        from events_between(r.project_id, r.from_seq, r.to_seq) e
        -- The order needs a sort with any index but that of (project_id, seq), which therefore
        -- serves it even while the table is empty.
        order by e.seq
        limit r.to_seq - r.from_seq
      ) e
      join webhooks w on w.project_id = e.project_id and w.type = 'event.created' and w.view_id is null
        and w.deleted_at is null and w.disabled_at is null
        -- Events store milliseconds. A created_at in the future means that the clock was set back.
        and (
          date_trunc('milliseconds', w.created_at) <= e.created_at
          or w.created_at > now() + interval '5 s'
        )
    where r.has_targets and (
      w.has_all_channels
      or exists (
        select
        from webhook_channels c
        where c.project_id = w.project_id and c.webhook_id = w.id and c.channel_id = e.channel_id
      )
    )
  );
  if with_views <> '{}' then
    insert into bell_ranges (project_id, kind, from_seq, to_seq)
    select r.project_id, 'webhook', r.from_seq, r.to_seq
    from unnest(taken) r
    where r.has_targets and r.project_id = any(with_views);
  end if;
  return query
    select
      case
        when with_views <> '{}' then to_json(array(select to_jsonb(t) || jsonb_build_object('has_views', found) from unnest(taken) t))
        else array_to_json(taken)
      end,
      d.count, d.leased
    from insert_deliveries('webhook', wanted, refusal, lease) d;
end
$$;

-- Returns the acknowledgement with this id; a row of nulls if there is none.
create or replace function acknowledgement_by_id(project uuid, id uuid) returns acknowledgements
language plpgsql stable
as $$
declare
  found acknowledgements;
begin
  select * into found from acknowledgements a where a.project_id = project and a.id = acknowledgement_by_id.id;
  return found;
end
$$;
