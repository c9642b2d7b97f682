-- Functions that servers of 0.3.0 call while they run beside those of this version. The next
-- version drops them. It also drops what only 0.3.0 uses: the tables resumed_targets,
-- openid_providers and sign_in_steps, the columns webhooks.paused_until, outbox.is_resumed,
-- outbox.failed_at, projects.users_indexed_to and quiet_from, quiet_to and quiet_zone of
-- push_subscriptions, and the kind 'table' of insight_cards.

-- Returns what read_webhooks does. Probes and pauses are those of claim_deliveries. A webhook with
-- an own body or headers seems disabled, so that 0.3.0 leaves its deliveries to this version.
create or replace function read_webhook_deliveries(
  project_ids uuid[], webhook_ids uuid[], event_ids uuid[], may_probe boolean, failures_to_pause int, probe_s float8
) returns table (project_id uuid, id uuid, event_text text, webhook json)
language sql
set search_path from current
as $$
  select
    r.project_id, r.id, r.event_text,
    (
      r.webhook::jsonb || '{"type": "event.created", "pausedUntilMs": null, "hasProbe": false}'
      || case when r.webhook ->> 'own' is null then '{}' else jsonb_build_object('disabledAtMs', r.webhook -> 'checkedNowMs') end
    )::json
  from read_webhooks(project_ids, webhook_ids, event_ids) r
$$;

-- Returns the newest event of a channel.
create or replace function last_event(project uuid, channel uuid) returns table (seq bigint, created_at timestamptz)
language sql stable as $$
  select n.seq, n.created_at from newest_of_channel(project, channel) n
$$;

-- Does the same as append_batch.
create or replace function append_events(
  project_ids uuid[], key_hashes bytea[], key_counts int[],
  project_numbers int[], key_numbers int[], ids uuid[], occurred_ats timestamptz[],
  channel_ids uuid[], channel_public_ids text[], channel_slugs text[], channel_names text[],
  titles text[], descriptions text[], icons text[], tag_lists text[], metadatas text[], user_refs text[],
  sources text[], notifies boolean[],
  keys text[], fingerprints bytea[], response_heads text[], response_tails text[],
  out at_ms bigint, out windows json, out seqs json, out notes json
)
language sql
set search_path from current
as $$
  select b.at_ms, b.windows, b.seqs, b.notes
  from append_batch(
    project_ids => project_ids, key_hashes => key_hashes, key_counts => key_counts,
    project_numbers => project_numbers, key_numbers => key_numbers, ids => ids, occurred_ats => occurred_ats,
    channel_ids => channel_ids, channel_public_ids => channel_public_ids, channel_slugs => channel_slugs,
    channel_names => channel_names, titles => titles, descriptions => descriptions, icons => icons,
    tag_lists => tag_lists, metadatas => metadatas, user_refs => user_refs, sources => sources,
    notifies => notifies, keys => keys, fingerprints => fingerprints, response_heads => response_heads,
    response_tails => response_tails
  ) b
$$;

-- Does the same as append_single, with the level of the channel and without a url.
create or replace function append_event(
  project uuid, key_hash bytea, event_id uuid, occurred timestamptz, channel uuid, event_title text,
  event_description text, event_icon text, event_tags text[], event_metadata json, event_user text,
  event_source text, is_notifying boolean,
  out at_ms bigint, out windows json, out seqs json, out notes json
)
language sql
set search_path from current
as $$
  select s.at_ms, s.windows, s.seqs, s.notes
  from append_single(
    project => project, key_hash => key_hash, event_id => event_id, occurred => occurred, channel => channel,
    event_title => event_title, event_description => event_description, event_icon => event_icon,
    event_tags => event_tags, event_metadata => event_metadata, event_user => event_user,
    event_source => event_source, is_notifying => is_notifying, event_level => null, event_url => null
  ) s
$$;

-- Returns what text_of_event does, without a level, a url and a thread.
create or replace function event_text(
  project uuid, id uuid, seq bigint, channel_public_id text, channel_name text, user_ref text,
  occurred_at timestamptz, created_at timestamptz, title text, description text, icon text, tags text[],
  metadata json, source text, notify boolean
) returns table (text text, user_id text)
language sql stable parallel safe
begin atomic
  select t.text, t.user_id
  from text_of_event(
    project => event_text.project, id => event_text.id, seq => event_text.seq,
    channel_public_id => event_text.channel_public_id, channel_name => event_text.channel_name,
    user_ref => event_text.user_ref, occurred_at => event_text.occurred_at, created_at => event_text.created_at,
    title => event_text.title, description => event_text.description, icon => event_text.icon,
    tags => event_text.tags, metadata => event_text.metadata, source => event_text.source,
    notify => event_text.notify, level => null, url => null, thread => null, state => null, thread_seq => null
  ) t;
end;

-- Returns what size_of_event does, without a url.
create or replace function bytes_of_event(metadata json, description text) returns int
language sql immutable parallel safe
return size_of_event(bytes_of_event.metadata, bytes_of_event.description, null);

-- Stores settlements, and waits for locked rows. Returns the ids whose token the caller no longer
-- held.
create or replace function store_settlements(
  ids uuid[], tokens uuid[], states text[], made_attempts int[], delays_ms float8[], reasons text[], latencies_ms bigint[]
) returns setof uuid
language plpgsql
set enable_seqscan = off
as $$
begin
  perform
  from unnest(ids, tokens) as i (id, token)
    join outbox o on o.id = i.id and o.token = i.token
  order by o.id
  for update of o;
  return query
    select s.id
    from settle_free_deliveries(
      ids => ids, tokens => tokens, states => states, made_attempts => made_attempts, delays_ms => delays_ms,
      reasons => reasons, latencies_ms => latencies_ms
    ) s;
end
$$;

-- Resumes the targets that a server of 0.3.0 asks for. Returns them, for its memory.
create or replace function resume_deliveries(max_rows int) returns table (kind text, target_id uuid, is_done boolean)
language sql
set search_path from current
as $$
  with taken as (
    delete from resumed_targets r
    where (r.kind, r.target_id) in (
      select t.kind, t.target_id
      from resumed_targets t
      order by t.kind, t.target_id
      limit 1
      for update skip locked
    )
    returning r.kind, r.target_id
  )
  insert into delivery_targets as d (kind, id, resumed_at)
  select t.kind, t.target_id, now() from taken t
  on conflict on constraint delivery_targets_pkey do update set
    paused_until = '-infinity', single_until = '-infinity', probe_id = null, resumed_at = excluded.resumed_at
  returning d.kind, d.id, true
$$;

-- Returns a title with # in place of each number, by which 0.3.0 groups alike titles.
create or replace function shape_of_title(title text) returns text
language plpgsql immutable parallel safe as $$
begin
  return regexp_replace(title, '[0-9]+([-+.,:/''_ ]?[0-9]+)*', '#', 'g');
end
$$;

-- Removes up to `max_rows` expired events of a channel.
create or replace function expire_events(project uuid, channel uuid, after_seq bigint, max_rows int)
returns table (deleted int, last_seq bigint)
language sql volatile
set search_path from current
as $$
  select * from expire_channel(
    project => project, channel => channel, after_seq => after_seq, max_rows => max_rows, needs_export => false
  )
$$;

-- Returns that a user is not in the archive, which later servers do not have.
create or replace function begin_archive_erasure(
  project uuid, name text, author json, last_erased_at timestamptz
) returns boolean
language sql immutable
return false;

-- Keeps the daily window of 0.3.0 and the quiet hours of a device alike, whichever was written.
-- Quiet hours that are no daily window give no window.
create or replace function keep_quiet_window() returns trigger
language plpgsql
as $$
begin
  if new.quiet_hours is distinct from old.quiet_hours then
    select extract(epoch from (h ->> 'from')::time) / 60, extract(epoch from (h ->> 'to')::time) / 60, h ->> 'timeZone'
      into new.quiet_from, new.quiet_to, new.quiet_zone
      from (select new.quiet_hours -> 0 as h) r
      where jsonb_array_length(new.quiet_hours) = 1 and jsonb_array_length(h -> 'days') = 7
        and h ->> 'from' <> h ->> 'to';
  elsif (new.quiet_from, new.quiet_to, new.quiet_zone) is distinct from (old.quiet_from, old.quiet_to, old.quiet_zone) then
    new.quiet_hours := case when new.quiet_from is not null then jsonb_build_array(jsonb_build_object(
      'days', '[1, 2, 3, 4, 5, 6, 7]'::jsonb, 'from', to_char(make_interval(mins => new.quiet_from), 'HH24:MI'),
      'to', to_char(make_interval(mins => new.quiet_to), 'HH24:MI'), 'timeZone', new.quiet_zone
    )) end;
  end if;
  return new;
end
$$;

create or replace trigger push_subscriptions_keep_window before insert or update of quiet_hours, quiet_from, quiet_to, quiet_zone on push_subscriptions
  for each row execute function keep_quiet_window();
