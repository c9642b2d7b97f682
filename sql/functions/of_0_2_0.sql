-- Functions that servers of 0.2.0 call, and later ones do not. They keep their meaning while such
-- servers run beside newer ones. The version after 0.3.0 drops them.

-- Returns the words of an event that search matches.
--
-- Postgres' text parser takes quadratic time on a long run of characters without white space. At
-- each punctuation mark it tries again to read an address or a path. 60,000 characters take most of
-- a minute. So texts over 1,000 bytes get a space after each punctuation mark that follows 99
-- characters without white space. For the same reason, a space breaks up the start of each HTML
-- comment.
create or replace function words_of_event(title text, description text) returns tsvector
language sql immutable parallel safe as $$
  select to_tsvector('simple', case
    when octet_length(title) + coalesce(octet_length(description), 0) > 1000 then
      regexp_replace(replace(title || ' ' || coalesce(description, ''), '<!', '< !'), '\S{99}[^[:alnum:]\s]', '\& ', 'g')
    else title || ' ' || coalesce(description, '')
  end)
$$;

-- Returns the seqs of up to `max_rows` candidates, in order, from first_seq to last_seq. An event
-- must be in one of the channels, come from one of the sources, have all `tags`, and have a word
-- with each prefix in `words`. An empty list does not filter. Each event of the tail is a
-- candidate.
--
-- It stops after time_limit_ms. When it stops before max_rows, the last seq is the last one that it
-- examined, which may not match.
create or replace function find_search_candidates(
  project uuid, channel_ids uuid[], sources text[], tags text[], words text[],
  first_seq bigint, last_seq bigint, is_newest_first boolean, max_rows int, time_limit_ms float8
) returns setof bigint
language plpgsql stable
set search_path from current
as $$
declare
  groups int[];
  lows text[];
  highs text[];
begin
  select array_agg(r.number), array_agg(r.low), array_agg(r.high) into groups, lows, highs
    from (
      select dense_rank() over (order by t.kind, t.name) as number, t.low, t.high
      from (
        select 'channel', '', '=' || c.id, '=' || c.id from unnest(channel_ids) as c (id)
        union all
        select 'source', '', '@' || s.source, '@' || s.source from unnest(sources) as s (source)
        union all
        select 'tag', t.tag, '#' || t.tag, '#' || t.tag from unnest(tags) as t (tag)
        union all
        -- The words of 0.2.0 can have several words of today.
        select 'word', u.token, r.low, r.high
        from unnest(words) as w (word)
          cross join lateral unnest(tokens_of_words(words_of_text(fold_text(w.word)))) as u (token)
          cross join lateral (values (left(u.token, 200), left(u.token, 200) || chr(1114111)), ('*', '*')) as r (low, high)
      ) t (kind, name, low, high)
    ) r;
  return query
    select c.seq
    from find_token_candidates(
      project, groups, lows, highs, first_seq, last_seq, is_newest_first, max_rows, time_limit_ms
    ) as c (seq);
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
set search_path from current
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

-- Does the same as store_settlements, but returns the ids whose token the caller still held.
create or replace function settle_deliveries(
  ids uuid[], tokens uuid[], states text[], made_attempts int[], delays_ms float8[], reasons text[], latencies_ms bigint[]
) returns setof uuid
language plpgsql
set search_path from current
as $$
declare
  lost uuid[] := array(
    select s.id
    from store_settlements(ids, tokens, states, made_attempts, delays_ms, reasons, latencies_ms) as s (id)
  );
begin
  return query select i.id from unnest(ids) as i (id) where i.id <> all(lost);
end
$$;

-- Finds users as search_users does. The pattern is the beginning of `search` in lower case.
create or replace function find_users(project uuid, pattern text, search text, before uuid, max_rows int) returns setof uuid
language plpgsql stable
set search_path from current
as $$
begin
  return query
    select unnest(f.ids) from search_users(project, regexp_split_to_array(search, '\s+'), before, max_rows, 3000) f;
end
$$;

-- Does the same as write_identities, with reasons in place of codes.
create or replace function identify_users(
  project_ids uuid[], user_ids text[], ids uuid[], public_ids text[], properties_list json[], alias_lists json[],
  keys text[], fingerprints bytea[], response_tails text[]
) returns table (ord int, outcome text, body text)
language plpgsql
set search_path from current
as $$
begin
  return query
    select w.ord, w.outcome, describe_failed_aliases(w.body)
    from write_identities(
      project_ids, user_ids, ids, public_ids, properties_list, alias_lists, keys, fingerprints, response_tails
    ) w;
end
$$;

-- Returns a response to identify with reasons in place of codes.
create or replace function describe_failed_aliases(body text) returns text
language plpgsql immutable as $$
declare
  response json := body;
  failed text;
begin
  select string_agg(
      '{"alias":' || (f.item -> 'alias')::text || ',"reason":' || to_json(case f.item ->> 'reason'
        when 'repeated' then 'Repeated in this request'
        when 'own_user_id' then 'Equals this user''s own user_id'
        when 'other_user_id' then 'Equals another user''s user_id'
        when 'own_alias' then 'Already an alias of this user'
        when 'other_alias' then 'Already an alias of another user'
        when 'too_many' then 'This user already has 1,000 aliases'
        else f.item ->> 'reason'
      end)::text || '}',
      ',' order by f.ord
    )
    into failed
    from json_array_elements(response #> '{data,aliases,failed}') with ordinality as f (item, ord);
  if failed is null then
    return body;
  end if;
  return '{"success":true,"data":{"id":' || (response #> '{data,id}')::text
    || ',"userId":' || (response #> '{data,userId}')::text
    || ',"properties":' || (response #> '{data,properties}')::text
    || ',"aliases":{"created":' || (response #> '{data,aliases,created}')::text
    || ',"failed":[' || failed
    || ']},"updatedAt":' || (response #> '{data,updatedAt}')::text
    || '},"requestId":' || (response -> 'requestId')::text || '}';
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
