-- One row is a URL that receives the events of a project, or the audit entries of its organization.
-- url, secret and previous_secret are sealed. Deleting a webhook clears them; its row is removed
-- after its last attempt.
create table webhooks (
  project_id uuid not null references projects on delete cascade,
  id uuid not null,
  name text not null,
  url text,
  -- The host of the URL. It is all that members below admin can see of the URL.
  host text not null,
  preset text not null check (preset in ('standard', 'slack', 'discord', 'telegram', 'ntfy')),
  type text not null default 'event.created' check (type in ('event.created', 'audit.entry')),
  -- True if it receives the events of every channel, false if only those of webhook_channels.
  has_all_channels boolean not null,
  secret text,
  -- Also signs, until previous_until.
  previous_secret text,
  previous_until timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz,
  -- A disabled webhook receives nothing. The reason is a sentence for the screen.
  disabled_at timestamptz,
  disabled_reason text,
  -- Consecutive failures, and when they began. After ten of them sending pauses, each time for
  -- longer.
  failures int not null default 0,
  failing_since timestamptz,
  pauses int not null default 0,
  paused_until timestamptz,
  -- When the backlog reached its limit. Until there is room, new events are recorded and not
  -- enqueued.
  backlog_full_at timestamptz,
  -- When a test was last requested.
  tested_at timestamptz,
  primary key (project_id, id),
  -- Serves the rotation of APP_SECRET.
  unique (id),
  check (deleted_at is not null or url is not null and secret is not null),
  check ((previous_secret is null) = (previous_until is null)),
  check ((disabled_at is null) = (disabled_reason is null)),
  check (type = 'event.created' or has_all_channels)
);

-- Serves the delivery of audit entries.
create index webhooks_of_audit_log on webhooks (project_id) where type = 'audit.entry' and deleted_at is null;

-- Serves the removal of deleted webhooks.
create index webhooks_deleted on webhooks (deleted_at) where deleted_at is not null;

-- Serves the check for room in a full backlog.
create index webhooks_full on webhooks (id) where backlog_full_at is not null;

-- One row is a channel whose events a webhook receives.
create table webhook_channels (
  project_id uuid not null,
  webhook_id uuid not null,
  channel_id uuid not null,
  primary key (project_id, webhook_id, channel_id),
  foreign key (project_id, webhook_id) references webhooks (project_id, id) on delete cascade,
  foreign key (project_id, channel_id) references channels (project_id, id) on delete cascade
);

-- Serves the deletion of a channel.
create index webhook_channels_of_channel on webhook_channels (project_id, channel_id);

-- One row is an attempt to deliver to a webhook, kept for 30 days. event_id is null for a test, and
-- the id of an audit entry for the kind 'audit.entry'.
create table webhook_attempts (
  project_id uuid not null,
  id uuid not null,
  webhook_id uuid not null,
  event_id uuid,
  kind text not null check (kind in ('event.created', 'audit.entry', 'webhook.test')),
  -- The number of the attempt among those of its delivery, from 1.
  number int not null check (number > 0),
  outcome text not null check (outcome in ('delivered', 'failed')),
  -- The status of the response; null without a response, in which case `error` says why.
  status int,
  error text,
  reason text not null,
  -- The first 1 KiB of the response, as text. Null when what it may repeat was erased or deleted.
  response text,
  latency_ms int not null,
  started_at timestamptz not null,
  -- The host of the request, the format of its body, and the SHA-256 of its body. The screen
  -- rebuilds the body from the event, and the hash shows whether it is still the same. The hash is
  -- zero when what the body said was erased or deleted: somebody could guess the text.
  host text not null,
  preset text not null,
  body_hash bytea not null check (octet_length(body_hash) = 32),
  primary key (project_id, id),
  foreign key (project_id, webhook_id) references webhooks (project_id, id) on delete cascade,
  check ((status is null) = (error is not null)),
  check ((event_id is null) = (kind = 'webhook.test'))
);

-- Serves the list of a webhook's attempts, newest first. Ids ascend with time.
create index webhook_attempts_of_webhook on webhook_attempts (project_id, webhook_id, id);

-- Serves recovery, which skips the events that a webhook has already received.
create index webhook_attempts_delivered on webhook_attempts (project_id, webhook_id, event_id)
  where outcome = 'delivered' and event_id is not null;

-- Serves erasure, and the deletion of events.
create index webhook_attempts_of_event on webhook_attempts (project_id, event_id) where event_id is not null;

-- Serves the sweep of old attempts.
create index webhook_attempts_of_time on webhook_attempts (started_at);

-- Removes from the attempts of these events what repeats their content.
create function erase_webhook_attempts(project uuid, event_ids uuid[]) returns void
language sql as $$
  update webhook_attempts a set response = null, body_hash = decode(repeat('00', 32), 'hex')
    where a.project_id = project and a.event_id = any(event_ids) and a.event_id is not null
$$;

-- Inserts attempts, in one plan for every call. has_users says whether the body named a user. An
-- attempt whose user or event was erased meanwhile has neither a response nor a hash. With
-- only_free it leaves out webhooks with failures to reset, and webhooks that are locked. Returns
-- the ids of the inserted attempts.
create function insert_webhook_attempts(
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
  return query
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
            from (
              select e.user_ref
              from events e
              -- Needs a sort with any index but that of (project_id, id).
              where e.project_id = a.project_id and e.id >= a.event_id and e.id <= a.event_id
              order by e.id
              limit 1
            ) f
            where f.user_ref is not null or not a.has_user
          ) as is_same
      ) s
    where not only_free or exists (
      select
      from webhooks w
      where w.project_id = a.project_id and w.id = a.webhook_id and w.failures = 0 and w.paused_until is null
      for key share skip locked
    )
    returning id;
end
$$;

-- Returns what attempts of deliveries need: the webhook, and the event_text of its event. A
-- deleted webhook has no row; a deleted event, or none, is null. With may_probe, one delivery of a
-- webhook that has failed failures_to_pause times, and whose pause is over, becomes its probe. The
-- others wait probe_s seconds for its outcome.
create function read_webhook_attempts(
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
      left join lateral (
        select e.*
        from events e
        -- On an empty table all indexes seem equally good. The range with its order needs a sort
        -- with any index but that of (project_id, id).
        where e.project_id = t.project_id and e.id >= t.event_id and e.id <= t.event_id
        order by e.id
        limit 1
      ) e on e.deleted_at is null
      left join channels c on c.project_id = e.project_id and c.id = e.channel_id
      left join lateral event_text(
        e.project_id, e.id, e.seq, c.public_id, c.name, e.user_ref, e.occurred_at, e.created_at,
        e.title, e.description, e.icon, e.tags, e.metadata, e.source, e.notify
      ) x on e.id is not null;
end
$$;

-- Writes the deliveries of an audit entry, in the transaction of the entry. A webhook with a full
-- backlog gets a record instead.
create function enqueue_audit_entry() returns trigger
language plpgsql as $$
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

create trigger audit_log_is_delivered after insert on audit_log
  for each row when (new.organization_id is not null) execute function enqueue_audit_entry();
