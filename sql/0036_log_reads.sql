-- Statements that read the log of a project together with other tables use the functions below.
-- Postgres inlines them. On Citus, where the log can be on another node, each call reads it there.

-- Returns the size of the database in bytes.
create function database_bytes() returns bigint
language sql as $$
  select pg_database_size(current_database())
$$;

-- Returns the head of a project's log; no row for a deleted project.
create function log_of(project uuid) returns setof event_logs
language sql stable as $$
  select l.* from event_logs l where l.project_id = project
$$;

-- Returns the search cursor of a project; no row before the first part.
create function search_cursor_of(project uuid) returns setof search_cursors
language sql stable as $$
  select c.* from search_cursors c where c.project_id = project
$$;

-- Returns the events of a project with after_seq < seq <= until_seq.
create function events_between(project uuid, after_seq bigint, until_seq bigint) returns setof events
language sql stable as $$
  select e.* from events e where e.project_id = project and e.seq > after_seq and e.seq <= until_seq
$$;

-- Returns the first event of a project from a seq on; no row without events.
create function first_event_from(project uuid, from_seq bigint) returns table (created_at timestamptz)
language sql stable as $$
  select e.created_at
  from events e
  where e.project_id = project and e.seq >= from_seq
  order by e.seq
  limit 1
$$;

-- Returns an event of a project by its id. The range with its order needs a sort with any index but
-- that of (project_id, id), which therefore serves it even while the table is empty.
create function event_by_id(project uuid, event_id uuid) returns setof events
language sql stable as $$
  select e.*
  from events e
  where e.project_id = project and e.id >= event_id and e.id <= event_id
  order by e.id
  limit 1
$$;

-- Returns those events of a project that have one of these ids.
create function events_by_ids(project uuid, event_ids uuid[]) returns setof events
language sql stable as $$
  select e.* from events e where e.project_id = project and e.id = any(event_ids)
$$;

-- Returns when the oldest visible event of a project was accepted; no row without events.
create function oldest_visible_event(project uuid) returns table (created_at timestamptz)
language sql stable as $$
  select e.created_at
  from events e
  where e.project_id = project and e.deleted_at is null
  order by e.seq
  limit 1
$$;

-- Returns the newest visible events of a project, with the names of their channels.
create function newest_events(project uuid, max_rows int)
returns table (seq bigint, id uuid, title text, icon text, channel_name text, created_at timestamptz)
language sql stable as $$
  select e.seq, e.id, e.title, coalesce(e.icon, c.icon), c.name, e.created_at
  from (
    select e.seq, e.id, e.title, e.icon, e.channel_id, e.created_at
    from events e
    where e.project_id = project and e.deleted_at is null
    order by e.seq desc
    limit max_rows
  ) e
    join channels c on c.project_id = project and c.id = e.channel_id
$$;

-- Counts the visible events after after_seq that were accepted since a time, among the newest
-- `max_rows`.
create function count_events_since(project uuid, after_seq bigint, since timestamptz, max_rows int)
returns table (n int)
language sql stable as $$
  select count(*)::int
  from (
    select e.created_at
    from events e
    where e.project_id = project and e.seq > after_seq and e.deleted_at is null
    order by e.seq desc
    limit max_rows
  ) e
  where e.created_at >= since
$$;

-- Returns the counts of a project from one hour to another. The offset forces one range of the
-- primary key.
create function counts_of_hours(project uuid, first_hour timestamptz, last_hour timestamptz)
returns table (channel_id uuid, hour timestamptz, n bigint)
language sql stable as $$
  select e.channel_id, e.hour, e.n
  from event_counts e
  where e.project_id = project and e.hour >= first_hour and e.hour <= last_hour
  offset 0
$$;

-- Returns the counts of channels for each hour, as a JSON array. It looks up one row for each
-- channel and hour, however many channels the project has.
create function hourly_counts_of_channels(
  project uuid, channels uuid[], first_hour timestamptz, last_hour timestamptz
) returns table (channel_id uuid, counts text)
language sql stable as $$
  select w.id, (
      select json_agg(coalesce(n.n, 0) order by h.hour)::text
      from generate_series(first_hour, last_hour, interval '1 hour') as h (hour)
        left join event_counts n on n.project_id = project and n.hour = h.hour and n.channel_id = w.id
    )
  from unnest(channels) as w (id)
$$;

-- Returns the seq of a project's oldest event; null without events.
create function first_seq_of(project uuid) returns bigint
language sql stable as $$
  select min(e.seq) from events e where e.project_id = project
$$;

-- Returns a channel of a project by its id.
create function channel_by_id(project uuid, channel_id uuid) returns setof channels
language sql stable as $$
  select c.* from channels c where c.project_id = project and c.id = channel_id
$$;

-- Returns the channels of a project.
create function channels_of(project uuid) returns setof channels
language sql stable as $$
  select c.* from channels c where c.project_id = project
$$;

-- Returns the channels of several projects.
create function channels_of_all(projects uuid[]) returns setof channels
language sql stable as $$
  select c.* from channels c where c.project_id = any(projects)
$$;

-- Returns the time before which a channel's events have expired. Returns null when they are kept
-- forever, or when the project is deleted.
create or replace function retention_cutoff(project uuid, channel uuid) returns timestamptz
language sql stable as $$
  select now() - make_interval(days => coalesce(c.keep_days, p.keep_days))
  from channel_by_id(project, channel) c
    join projects p on p.id = c.project_id and p.deleted_at is null
$$;

-- Returns the channels with a retention of all projects, of their own or of the project, after a
-- channel. They are ordered by project and id. late_s is the time since the oldest event of the
-- channel expired, in seconds; negative when nothing has expired, 0 without events.
create function channels_with_retention(after_project uuid, after_channel uuid, max_rows int)
returns table (project_id uuid, channel_id uuid, late_s float8)
language sql stable as $$
  select
    k.project_id, k.id,
    coalesce(
      extract(epoch from retention_cutoff(k.project_id, k.id) - oldest_event_at(k.project_id, k.id)), 0
    )::float8
  from (
    select c.project_id, c.id
    from channels c
      join projects p on p.id = c.project_id and p.deleted_at is null
    where coalesce(c.keep_days, p.keep_days) is not null
      and (c.project_id, c.id) > (after_project, after_channel)
    order by c.project_id, c.id
    limit max_rows
  ) k
  order by k.project_id, k.id
$$;

-- Locks a project's search cursor until the transaction ends, and returns its seq. Returns null
-- when another transaction has locked it, or when the project is deleted and has no log.
create or replace function try_lock_search_cursor(project uuid) returns bigint
language plpgsql as $$
declare
  cursor_seq bigint;
begin
  select c.seq into cursor_seq
    from search_cursors c where c.project_id = project for update skip locked;
  if found then
    return cursor_seq;
  end if;
  insert into search_cursors (project_id)
    select l.project_id from event_logs l where l.project_id = project
    on conflict (project_id) do nothing
    returning seq into cursor_seq;
  return cursor_seq;
end
$$;

-- Returns when the oldest erasure began that is in progress in a project; null without any.
create function oldest_running_erasure(project uuid) returns table (erased_at timestamptz)
language sql stable as $$
  select min(u.erased_at)
  from erasures e
    join erased_users u on u.project_id = e.project_id and u.id = e.id
  where e.project_id = project
$$;

-- Returns the erased users of a project.
create function erased_users_of(project uuid) returns setof erased_users
language sql stable as $$
  select u.* from erased_users u where u.project_id = project
$$;

-- Returns the user_id that a name refers to: that of an identity, or that of an alias's owner. Null
-- if it is neither.
create function user_of_name(project uuid, name text) returns text
language sql stable as $$
  select coalesce(
    (select i.user_id from identities i where i.project_id = project and i.user_id = name),
    (select a.user_id from aliases a where a.project_id = project and a.alias = name)
  )
$$;

-- Returns the projects with unindexed users.
create function unindexed_project_ids() returns setof uuid
language sql stable
set enable_seqscan = off
as $$
  with recursive found (id) as (
    (select u.project_id from unindexed_users u order by u.project_id limit 1)
    union all
    select (
      select u.project_id from unindexed_users u where u.project_id > f.id order by u.project_id limit 1
    )
    from found f
    where f.id is not null
  )
  select f.id from found f where f.id is not null
$$;

-- Leases at most max_deliveries due deliveries: first the oldest of each requested target, then the
-- second oldest of each, and so on. It skips locked rows. Each target gives at most its room, of
-- deliveries that are due at its due_at or later. The result says what an attempt needs to know:
-- is_gone means that the event or its project no longer exists, and hidden_ms is the time since the
-- event was deleted.
create or replace function claim_deliveries(
  of_kind text, target_ids uuid[], rooms int[], due_ats timestamptz[], max_deliveries int, lease_ms float8, new_token uuid
) returns table (
  id uuid, project_id uuid, event_id uuid, target_id uuid, claim_count smallint, attempts smallint, is_gone boolean,
  age_ms float8, waited_ms float8, hidden_ms float8
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
  -- After a crash the deliveries are claimed again, so the commit need not wait for fsync.
  perform set_config('synchronous_commit', 'off', true);
  return query
    with chosen as materialized (
      select r.id
      from unnest(target_ids, rooms, due_ats) with ordinality as w (target_id, room, due_at, place)
        cross join lateral (
          select d.id, row_number() over (order by d.available_at, d.id) as rank
          from (
            select o.id, o.available_at
            from outbox o
            where o.kind = of_kind and o.target_id = w.target_id
              and o.available_at >= w.due_at and o.available_at <= now()
            order by o.available_at, o.id
            limit w.room
          ) d
        ) r
      order by r.rank, w.place
      limit max_deliveries
    ), locked as materialized (
      select o.id
      from chosen c
        join outbox o on o.id = c.id
      -- The sum keeps the planner from choosing outbox_of_target.
      where o.available_at + interval '0 s' <= now()
      for update of o skip locked
    ), taken as (
      update outbox o set
        available_at = now() + lease_ms * interval '1 ms', token = new_token, claim_count = o.claim_count + 1
      from locked l
      where o.id = l.id
      returning o.id, o.project_id, o.event_id, o.target_id, o.claim_count, o.attempts, o.requested_at
    )
    select
      t.id, t.project_id, t.event_id, t.target_id, t.claim_count, t.attempts,
      coalesce(e.id, s.id) is null or p.deleted_at is not null,
      coalesce(extract(epoch from clock_timestamp() - coalesce(e.created_at, s.at)) * 1000, 0)::float8,
      (extract(epoch from clock_timestamp() - t.requested_at) * 1000)::float8,
      (extract(epoch from clock_timestamp() - e.deleted_at) * 1000)::float8
    from taken t
      join projects p on p.id = t.project_id
      left join lateral event_by_id(t.project_id, t.event_id) e on true
      -- The limit keeps Postgres from looking up an entry for each event.
      left join lateral (
        select s.id, s.at from audit_log s where s.id = t.event_id and e.id is null limit 1
      ) s on true;
end
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
            and (not only_free or w.failures = 0 and w.paused_until is null)
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
        select a.event_id is null or a.kind = 'audit.entry' or exists (
            select
            from event_by_id(a.project_id, a.event_id) f
            where f.user_ref is not null or not a.has_user
          ) as is_same
      ) s
      join found w on w.project_id = a.project_id and w.id = a.webhook_id
    returning id;
end
$$;

-- Returns what attempts of deliveries need: the webhook, and the event_text of its event. A
-- deleted webhook has no row; a deleted event, or none, is null. With may_probe, one delivery of a
-- webhook that has failed failures_to_pause times, and whose pause is over, becomes its probe. The
-- others wait probe_s seconds for its outcome.
create or replace function read_webhook_attempts(
  project_ids uuid[], webhook_ids uuid[], event_ids uuid[], may_probe boolean, failures_to_pause int, probe_s float8
) returns table (
  ord int, url text, preset text, secret text, previous_secret text, disabled_at timestamptz, paused_until timestamptz,
  is_probe boolean, type text, project text, organization_id uuid, organization text, now timestamptz,
  event_text text
)
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
    with wanted as materialized (
      select t.project_id, t.id, t.event_id, t.ord
      from unnest(project_ids, webhook_ids, event_ids) with ordinality as t (project_id, id, event_id, ord)
    ), probe_candidates as materialized (
      select f.project_id, f.id, f.ord
      from (
          select wanted.project_id, wanted.id, min(wanted.ord) as ord
          from wanted
          group by wanted.project_id, wanted.id
        ) f
        cross join lateral (
          select w.id
          from webhooks w
          where w.project_id = f.project_id and w.id = f.id
            and w.failures >= failures_to_pause and w.paused_until <= now() and w.disabled_at is null
            and may_probe
          -- A locked webhook must not delay the others.
          for no key update skip locked
        ) w
    ), probes as (
      update webhooks w set paused_until = now() + make_interval(secs => probe_s)
      from probe_candidates f
      where w.project_id = f.project_id and w.id = f.id
      returning f.ord
    )
    select
      t.ord::int, w.url, w.preset, w.secret,
      case when w.previous_until > now() then w.previous_secret end,
      w.disabled_at, w.paused_until, exists (select from probes p where p.ord = t.ord),
      w.type, p.name, o.id, o.name, clock_timestamp(),
      x.text
    from wanted t
      join webhooks w on w.project_id = t.project_id and w.id = t.id and w.deleted_at is null
      join projects p on p.id = w.project_id and p.deleted_at is null
      join organizations o on o.id = p.organization_id and o.deleted_at is null
      left join lateral event_by_id(t.project_id, t.event_id) e on e.deleted_at is null
      left join lateral channel_by_id(e.project_id, e.channel_id) c on true
      left join lateral event_text(
        e.project_id, e.id, e.seq, c.public_id, c.name, e.user_ref, e.occurred_at, e.created_at,
        e.title, e.description, e.icon, e.tags, e.metadata, e.source, e.notify
      ) x on e.id is not null;
end
$$;

-- Returns the events with from_seq < seq <= to_seq of each project, and why nobody is notified of
-- some of them.
create or replace function list_push_events(project_ids uuid[], from_seqs bigint[], to_seqs bigint[])
returns setof push_event
language sql stable as $$
  select
    f.project_id, f.organization_id, f.channel_id, f.id, f.created_at, f.reason,
    (row_number() over (partition by f.project_id, f.channel_id, f.reason is null order by f.seq desc) - 1)::int
  from (
    select
      e.project_id, p.organization_id, e.channel_id, e.id, e.created_at, e.seq,
      case
        when not e.notify then 'notifyFalse'
        when c.is_archived then 'archived'
        when e.occurred_at < e.created_at - interval '10 minutes' then 'old'
      end as reason
    from unnest(project_ids, from_seqs, to_seqs) as r (project_id, from_seq, to_seq)
      join projects p on p.id = r.project_id
      cross join lateral events_between(r.project_id, r.from_seq, r.to_seq) e
      join lateral channels_of(r.project_id) c on c.id = e.channel_id
  ) f
$$;

-- Returns the projects with unindexed users, and their organizations.
create or replace function list_unindexed_projects() returns table (project_id uuid, organization_id uuid)
language sql stable as $$
  select p.id, p.organization_id
  from unindexed_project_ids() as f (id)
    join projects p on p.id = f.id and p.deleted_at is null
$$;
