-- One row is a view of whose matches an account is notified, also in muted channels.
create table view_bells (
  project_id uuid not null,
  view_id uuid not null,
  account_id uuid not null references accounts on delete cascade,
  -- Serves the dispatch and, by its first columns, the deletion of a view.
  primary key (project_id, view_id, account_id),
  foreign key (project_id, view_id) references views on delete cascade
);

-- Serves the deletion of an account.
create index view_bells_of_account on view_bells (account_id);

-- One row is an event in a muted channel of which an account is notified, and the view that it
-- matches. The sender reads it.
create table view_pushes (
  project_id uuid not null,
  event_id uuid not null,
  account_id uuid not null,
  view_id uuid not null,
  created_at timestamptz not null default now(),
  primary key (project_id, event_id, account_id)
);

-- Serves the sweep of old rows.
create index view_pushes_of_time on view_pushes (created_at);

-- Enqueues pushes for the events of a range that match a view, for the accounts that have its bell
-- on and have muted the channel. Others are notified anyway. Returns the number of deliveries.
--
-- It runs after dispatch_pushes in the same transaction, which has recorded these pushes as
-- withheld. The outcome of a delivery replaces such a record.
create function dispatch_view_pushes(
  project uuid, view uuid, from_seq bigint, to_seq bigint, event_ids uuid[], sentences jsonb
) returns int
language plpgsql as $$
declare
  matches push_event[] := array(
    select e
    from list_push_events(array[project], array[from_seq], array[to_seq]) e
    where e.id = any(event_ids) and e.reason is null
  );
  account uuid;
  events push_event[];
  recipients push_recipient[];
  device_groups push_device_group[];
  total int := 0;
begin
  for account in
    select b.account_id
    from view_bells b
      join views v on v.project_id = b.project_id and v.id = b.view_id
    where b.project_id = project and b.view_id = view and (v.account_id is null or v.account_id = b.account_id)
  loop
    with added as (
      insert into view_pushes (project_id, event_id, account_id, view_id)
      select m.project_id, m.id, account, view
      from unnest(matches) m
      where is_muted(m.project_id, m.channel_id, account)
      -- Another view has the event, too.
      on conflict (project_id, event_id, account_id) do nothing
      returning event_id
    )
    select array_agg(
        row(
          m.project_id, m.organization_id, m.channel_id, m.id, m.created_at, null::text,
          (select count(*)::int from unnest(matches) o join added p on p.event_id = o.id
            where o.channel_id = m.channel_id and o.newer < m.newer)
        )::push_event
      )
      into events
      from unnest(matches) m
        join added a on a.event_id = m.id;
    continue when events is null;
    recipients := array(
      select row(
          r.project_id, r.channel_id, r.account_id, false, r.collapses, n.event_count,
          case when r.collapses then r.individual_count else n.event_count end,
          r.has_summary, r.first_event_at, r.device_ids, r.device_is_on, r.device_subscribed_at
        )::push_recipient
      from find_push_recipients(events) r
        cross join lateral (
          select count(*)::int as event_count
          from unnest(events) e
          where e.channel_id = r.channel_id and e.created_at >= (
            select min(d.subscribed_at)
            from unnest(r.device_is_on, r.device_subscribed_at) as d (is_on, subscribed_at)
            where d.is_on
          )
        ) n
      where r.account_id = account
    );
    device_groups := array(select g from group_push_devices(recipients) g where g.reason is null);
    perform record_withheld_pushes(events, device_groups, sentences);
    perform count_bursts(recipients);
    total := total + enqueue_pushes(events, device_groups);
  end loop;
  return total;
end
$$;

-- Adds the bells to the tables that are emptied when a project is deleted.
create or replace function list_project_tables() returns text[]
language sql immutable as $$
  select array[
    'view_pushes', 'view_bells', 'view_marks', 'views', 'insight_cards',
    'push_bursts', 'notification_settings', 'outbox', 'dead_letters', 'deliveries', 'withheld_deliveries', 'delivery_cursors',
    'webhook_attempts', 'webhook_channels', 'webhooks',
    'events', 'event_counts', 'event_segments', 'event_tokens', 'search_parts', 'stale_segments', 'search_cursors',
    'read_marks', 'channels', 'alias_changes', 'aliases',
    'user_words', 'unindexed_users', 'identities', 'erasure_names', 'erasures',
    'erased_names', 'erased_users',
    'idempotency_keys', 'event_logs', 'key_usage', 'rate_windows', 'api_keys'
  ]
$$;
