-- The only row is the VAPID key pair, by which push services know this installation. private_key is
-- sealed.
create table vapid_keys (
  id uuid primary key,
  singleton boolean not null default true unique check (singleton),
  public_key text not null,
  private_key text not null,
  created_at timestamptz not null default now()
);

-- One row is a browser that receives notifications for the account signed in there. It is deleted
-- with the session.
create table push_subscriptions (
  id uuid primary key,
  account_id uuid not null references accounts on delete cascade,
  -- A session has one subscription. A browser that subscribes again replaces it.
  session_id uuid not null unique references sessions on delete cascade,
  -- SHA-256 of the endpoint. An endpoint belongs to one browser, and to the account that signed in
  -- there last.
  endpoint_hash bytea not null unique check (octet_length(endpoint_hash) = 32),
  -- The endpoint and the keys as JSON, sealed.
  address text not null,
  -- The host of the endpoint, which is that of the push service.
  host text not null,
  label text not null,
  is_on boolean not null default true,
  -- True once its push service has accepted a push. It lengthens the session of an installed app.
  is_proven boolean not null default false,
  -- Quiet hours, in minutes since midnight in a time zone. Nothing is pushed in them.
  quiet_from smallint check (quiet_from between 0 and 1439),
  quiet_to smallint check (quiet_to between 0 and 1439),
  quiet_zone text,
  created_at timestamptz not null default now(),
  -- The last response of the push service, as a sentence for the screen.
  last_push_at timestamptz,
  last_outcome text,
  -- Consecutive refusals, and the reason of the last one. The fifth refusal deletes the
  -- subscription.
  refusals smallint not null default 0,
  flagged text,
  -- When a test was last requested.
  tested_at timestamptz,
  check (num_nulls(quiet_from, quiet_to, quiet_zone) in (0, 3)),
  check ((flagged is null) = (refusals = 0)),
  check ((last_push_at is null) = (last_outcome is null))
);

-- Serves the list of an account's devices, and the devices of an organization's members.
create index push_subscriptions_of_account on push_subscriptions (account_id, id);

-- One row is an account's settings for a channel; a null channel stands for all channels of the
-- project. A setting that is null for a channel is that of the project. Without a row, the account
-- is notified of every event.
create table notification_settings (
  account_id uuid not null references accounts on delete cascade,
  project_id uuid not null references projects on delete cascade,
  channel_id uuid,
  state text check (state in ('on', 'mute')),
  -- When the mute ends. Null with the state 'mute' means that it does not end.
  mute_until timestamptz,
  -- True if bursts are collapsed.
  collapse boolean,
  -- Serves an account's settings in a project and, by its first column, the deletion of a project.
  unique nulls not distinct (project_id, account_id, channel_id),
  foreign key (project_id, channel_id) references channels (project_id, id) on delete cascade,
  check (mute_until is null or state is not null and state = 'mute')
);

-- Serves the deletion of a channel.
create index notification_settings_of_channel on notification_settings (project_id, channel_id);

-- Serves the deletion of an account.
create index notification_settings_of_account on notification_settings (account_id);

-- Returns the settings that apply to an account in a channel now. Each is that of the channel; if
-- there is none, that of the project. It returns a table, so that Postgres can inline it into the
-- statement.
create function effective_notification_settings(project uuid, channel uuid, account uuid)
returns table (is_muted boolean, collapses boolean)
language sql stable as $$
  select
    coalesce((
      select n.state = 'mute'
      from notification_settings n
      where n.project_id = project and n.account_id = account
        and (n.channel_id = channel or n.channel_id is null)
        and n.state is not null
        and (n.mute_until is null or n.mute_until > now())
      order by n.channel_id nulls last
      limit 1
    ), false),
    coalesce((
      select n.collapse
      from notification_settings n
      where n.project_id = project and n.account_id = account
        and (n.channel_id = channel or n.channel_id is null)
        and n.collapse is not null
      order by n.channel_id nulls last
      limit 1
    ), true)
$$;

-- Returns true if an account has muted a channel now.
create function is_muted(project uuid, channel uuid, account uuid) returns boolean
language sql stable as $$
  select s.is_muted from effective_notification_settings(project, channel, account) s
$$;

-- One row is a burst: the recent pushes of a channel to an account. After ten in 60 seconds, one
-- summary counts the rest. The table is unlogged, so a crash of Postgres resets all bursts.
create unlogged table push_bursts (
  project_id uuid not null,
  channel_id uuid not null,
  account_id uuid not null,
  -- When the last ten pushes were sent.
  recent timestamptz[] not null,
  -- When the burst began, the number of pushes collapsed since, and when the last of them was.
  burst_at timestamptz,
  collapsed int not null default 0,
  collapsed_at timestamptz,
  -- When the summary is due; null once it is sent.
  summary_at timestamptz,
  touched_at timestamptz not null default now(),
  -- Serves the dispatch, and the summary.
  primary key (project_id, channel_id, account_id)
);

-- Serves the sweep of old bursts.
create index push_bursts_of_time on push_bursts (touched_at);

-- One event of a dispatch. `reason` says why nobody is notified of it; null if accounts may be
-- notified.
create type push_event as (
  project_id uuid,
  organization_id uuid,
  channel_id uuid,
  id uuid,
  created_at timestamptz,
  reason text,
  -- The number of newer events of its channel in the same dispatch.
  newer int
);

-- An account with devices, and the events of one channel that it is notified of.
create type push_recipient as (
  project_id uuid,
  channel_id uuid,
  account_id uuid,
  is_muted boolean,
  collapses boolean,
  -- The number of events that it is notified of: the newest ones, since its first device was
  -- subscribed.
  event_count int,
  -- The number of pushes of their own that these events may get. The rest of the events are
  -- collapsed.
  individual_count int,
  -- True if a summary of the collapsed events is already enqueued.
  has_summary boolean,
  -- When the oldest event of the channel was created.
  first_event_at timestamptz,
  device_ids uuid[],
  device_is_on boolean[],
  device_subscribed_at timestamptz[]
);

-- Devices that get the same pushes of one channel. `reason` says why they get none; null if they
-- get some.
create type push_device_group as (
  project_id uuid,
  channel_id uuid,
  reason text,
  event_count int,
  individual_count int,
  has_summary boolean,
  -- When the devices were subscribed; null if that was before the oldest event of the channel.
  subscribed_at timestamptz,
  device_ids uuid[]
);

-- Returns the devices of an organization's members whose sessions have not expired.
create function subscribed_devices(organization uuid)
returns table (id uuid, account_id uuid, is_on boolean, subscribed_at timestamptz)
language sql stable as $$
  select
    d.id, d.account_id, d.is_on,
    case
      -- A created_at in the future means that the clock was set back.
      when d.created_at > now() + interval '5 s' then '-infinity'
      else date_trunc('milliseconds', d.created_at)
    end
  from memberships m
    join push_subscriptions d on d.account_id = m.account_id
    join sessions s on s.id = d.session_id
  where m.organization_id = organization
    and not is_session_expired(s.is_installed and d.is_proven, s.created_at, s.last_seen_at)
$$;

-- Returns how many pushes of a channel an account can get now: 10 in 60 seconds, minus the recent
-- ones.
create function burst_capacity(recent timestamptz[]) returns table (capacity int)
language sql stable as $$
  select greatest(0, 10 - count(*))::int
  from unnest(recent) as r (at)
  where r.at > now() - interval '60 s'
$$;

-- Returns the events with from_seq < seq <= to_seq of each project, and why nobody is notified of
-- some of them.
create function list_push_events(project_ids uuid[], from_seqs bigint[], to_seqs bigint[])
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
      join events e on e.project_id = r.project_id and e.seq > r.from_seq and e.seq <= r.to_seq
      join channels c on c.project_id = e.project_id and c.id = e.channel_id
  ) f
$$;

-- Returns what each account with a device gets of each channel. A muted channel gives nothing. Any
-- other gives as many individual pushes as the burst still allows.
create function find_push_recipients(events push_event[]) returns setof push_recipient
language sql stable as $$
  with channel_events as materialized (
    select e.project_id, e.organization_id, e.channel_id, count(*)::int as n, min(e.created_at) as first_event_at
    from unnest(events) e
    where e.reason is null
    group by e.project_id, e.organization_id, e.channel_id
  ), subscribers as materialized (
    select
      o.organization_id, d.account_id, min(d.subscribed_at) filter (where d.is_on) as subscribed_at,
      array_agg(d.id) as ids, array_agg(d.is_on) as states, array_agg(d.subscribed_at) as subscribed_ats
    from (select distinct organization_id from channel_events) o
      cross join lateral subscribed_devices(o.organization_id) d
    group by o.organization_id, d.account_id
  ), settings as materialized (
    select
      c.project_id, c.channel_id, c.n, c.first_event_at, s.account_id, s.subscribed_at, s.ids, s.states,
      s.subscribed_ats, n.is_muted, n.collapses
    from channel_events c
      join subscribers s on s.organization_id = c.organization_id
      cross join lateral effective_notification_settings(c.project_id, c.channel_id, s.account_id) n
  )
  select
    s.project_id, s.channel_id, s.account_id, s.is_muted, s.collapses, n.event_count,
    case when s.collapses then c.capacity else n.event_count end,
    -- An older summary may have been cancelled with its event.
    coalesce(b.summary_at > now() - interval '60 s', false), s.first_event_at, s.ids, s.states, s.subscribed_ats
  from settings s
    left join push_bursts b
      on b.project_id = s.project_id and b.channel_id = s.channel_id and b.account_id = s.account_id
    cross join lateral burst_capacity(b.recent) c
    cross join lateral (
      select case
        when s.is_muted or s.subscribed_at is null then 0
        when s.subscribed_at <= s.first_event_at then s.n
        else (
          select count(*)::int
          from unnest(events) e
          where e.project_id = s.project_id and e.channel_id = s.channel_id and e.reason is null
            and e.created_at >= s.subscribed_at
        )
      end as event_count
    ) n
$$;

-- Groups devices that get the same pushes, so that the cost of a burst does not grow with the
-- number of accounts.
create function group_push_devices(recipients push_recipient[]) returns setof push_device_group
language sql stable as $$
  select
    r.project_id, r.channel_id, d.reason,
    case when d.reason is null then r.event_count end, case when d.reason is null then r.individual_count end,
    case when d.reason is null then r.has_summary end, d.subscribed_at, array_agg(d.id)
  from unnest(recipients) r
    cross join lateral (
      select
        u.id, case when u.subscribed_at > r.first_event_at then u.subscribed_at end as subscribed_at,
        case when not u.is_on then 'off' when r.is_muted then 'muted' end as reason
      from unnest(r.device_ids, r.device_is_on, r.device_subscribed_at) as u (id, is_on, subscribed_at)
    ) d
  group by 1, 2, 3, 4, 5, 6, 7
$$;

-- Enqueues a delivery for each event and device, up to the limit of the burst. Beyond the limit,
-- the delivery of the newest event becomes the summary. It is due 5 seconds later, so that it also
-- counts the next events. Returns the number of deliveries.
--
-- The functions that write have a generic plan. It also plans the checks of their foreign keys
-- once; planning them for each row would cost more than the rows. A generic plan does not know the
-- lengths of the arrays and would choose nested loops, so these are off.
create function enqueue_pushes(events push_event[], device_groups push_device_group[]) returns int
language sql
set plan_cache_mode = force_generic_plan
set enable_nestloop = off as $$
  with queued as (
    insert into outbox (project_id, event_id, kind, target_id, available_at)
    select
      e.project_id, e.id, 'push', d.id,
      case when g.event_count - e.newer <= g.individual_count then now() else now() + interval '5 s' end
    from unnest(device_groups) g
      join unnest(events) e
        on e.project_id = g.project_id and e.channel_id = g.channel_id and e.reason is null
      cross join unnest(g.device_ids) as d (id)
    where g.reason is null and e.newer < g.event_count
      and (g.event_count - e.newer <= g.individual_count or e.newer = 0 and not g.has_summary)
      and (g.subscribed_at is null or g.subscribed_at <= e.created_at)
    on conflict (project_id, event_id, kind, target_id) do nothing
    returning 1
  )
  select count(*)::int from queued
$$;

-- Records the devices that events are withheld from. A delivery with such a record is a summary.
create function record_withheld_pushes(events push_event[], device_groups push_device_group[], sentences jsonb)
returns void
language sql
set plan_cache_mode = force_generic_plan
set enable_nestloop = off as $$
  insert into withheld_deliveries (project_id, event_id, kind, reason, target_ids)
  select e.project_id, e.id, 'push', sentences ->> coalesce(g.reason, 'collapsed'), g.device_ids
  from unnest(device_groups) g
    join unnest(events) e
      on e.project_id = g.project_id and e.channel_id = g.channel_id and e.reason is null
  where (g.reason is not null or g.event_count - e.newer > g.individual_count)
    and (g.subscribed_at is null or g.subscribed_at <= e.created_at)
$$;

-- Records the events that nobody is notified of, for a reason of their own or because nobody had a
-- device.
create function record_events_without_push(events push_event[], device_groups push_device_group[], sentences jsonb)
returns void
language sql
set plan_cache_mode = force_generic_plan
set enable_nestloop = off as $$
  insert into deliveries (project_id, event_id, kind, state, reason)
  select e.project_id, e.id, 'push', 'withheld', sentences ->> coalesce(e.reason, 'noDevice')
  from unnest(events) e
  where e.reason is not null
    or not exists (
      select
      from unnest(device_groups) g
      where g.project_id = e.project_id and g.channel_id = e.channel_id
        and (g.subscribed_at is null or g.subscribed_at <= e.created_at)
    )
  on conflict (project_id, event_id, kind, target_id) do nothing
$$;

-- Adds the pushes of each account to its bursts, and counts the collapsed ones.
create function count_bursts(recipients push_recipient[]) returns void
language sql
set plan_cache_mode = force_generic_plan as $$
  insert into push_bursts as b (
    project_id, channel_id, account_id, recent, burst_at, collapsed, collapsed_at, summary_at
  )
  select
    r.project_id, r.channel_id, r.account_id, array_fill(now(), array[least(r.individual_count, r.event_count)]),
    case when r.event_count > r.individual_count then now() end, greatest(0, r.event_count - r.individual_count),
    case when r.event_count > r.individual_count then now() end,
    case when r.event_count > r.individual_count then now() + interval '5 s' end
  from unnest(recipients) r
  where r.event_count > 0 and r.collapses
  order by r.project_id, r.channel_id, r.account_id
  on conflict (project_id, channel_id, account_id) do update set
    recent = (b.recent || excluded.recent)[
      greatest(1, cardinality(b.recent) + cardinality(excluded.recent) - 9):
    ],
    -- A burst ends after 60 seconds without another collapsed push.
    burst_at = case
      when b.collapsed_at > now() - interval '60 s' then b.burst_at
      else coalesce(excluded.burst_at, b.burst_at)
    end,
    collapsed = case
      when excluded.collapsed = 0 or b.collapsed_at > now() - interval '60 s' then b.collapsed
      else 0
    end + excluded.collapsed,
    collapsed_at = coalesce(excluded.collapsed_at, b.collapsed_at),
    summary_at = case
      when b.summary_at > now() - interval '60 s' then b.summary_at
      else excluded.summary_at
    end,
    touched_at = now()
$$;

-- Turns the events with from_seq < seq <= to_seq of each project into deliveries, and records the
-- pushes that are withheld. `sentences` contains the text of each reason. Returns the number of
-- deliveries.
create function dispatch_pushes(project_ids uuid[], from_seqs bigint[], to_seqs bigint[], sentences jsonb) returns int
language plpgsql as $$
declare
  events push_event[];
  recipients push_recipient[];
  device_groups push_device_group[];
begin
  -- Sending a summary takes the same lock. So it either counts these events, or leaves them to
  -- another summary.
  perform from push_bursts b
    where b.project_id = any(project_ids) and b.summary_at is not null
    order by b.project_id, b.channel_id, b.account_id
    for no key update;
  events := array(select e from list_push_events(project_ids, from_seqs, to_seqs) e);
  recipients := array(select r from find_push_recipients(events) r);
  device_groups := array(select g from group_push_devices(recipients) g);
  perform record_events_without_push(events, device_groups, sentences);
  perform record_withheld_pushes(events, device_groups, sentences);
  perform count_bursts(recipients);
  return enqueue_pushes(events, device_groups);
end
$$;
