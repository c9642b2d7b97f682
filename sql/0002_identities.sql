-- A person as an application knows them. updated_at moves on every identify.
create table identities (
  project_id uuid not null references projects,
  user_id text not null,
  id uuid not null,
  public_id text not null,
  -- json, not jsonb: kept and returned as it was sent.
  properties json not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (project_id, user_id),
  unique (project_id, id)
);

-- Another name of an identity. It has exactly one owner within its project.
create table aliases (
  project_id uuid not null,
  alias text not null,
  user_id text not null,
  created_at timestamptz not null,
  primary key (project_id, alias),
  foreign key (project_id, user_id) references identities (project_id, user_id) on delete cascade
);

-- Serves the list of a person's aliases, and erasure.
create index aliases_of_identity on aliases (project_id, user_id);

-- Identifies many users in one call, in order; a row each, with the JSON answer. The project's log is locked first,
-- as by every writer of a project: so keys and aliases are claimed by one transaction at a time.
-- A null in properties_list keeps the stored properties. No row comes back for a project that is gone.
-- The plan is pinned, as in append_events: one made on empty tables would scan them when they have grown.
create function identify_users(
  project_ids uuid[], user_ids text[], ids uuid[], public_ids text[], properties_list text[], alias_lists text[],
  keys text[], fingerprints bytea[], tails text[]
) returns table (ord int, outcome text, body text)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  at timestamptz;
  seen record;
  person record;
  created text;
  failed text;
  others text[];
  running bigint[] := running_keys(project_ids, keys);
begin
  perform from event_logs l
    where l.project_id = any(without_places(project_ids, running))
    order by l.project_id
    for update;

  for n in 1 .. cardinality(project_ids) loop
    ord := n;
    if n = any(running) then
      outcome := 'running';
      body := null;
      return next;
      continue;
    end if;
    continue when not exists (select from event_logs l where l.project_id = project_ids[n]);
    at := date_trunc('milliseconds', clock_timestamp());

    if keys[n] is not null then
      select k.fingerprint, k.body into seen
        from idempotency_keys k
        where k.project_id = project_ids[n] and k.key = keys[n] and k.expires_at > at;
      if found then
        outcome := case when seen.fingerprint = fingerprints[n] then 'replayed' else 'reused' end;
        body := seen.body;
        return next;
        continue;
      end if;
    end if;

    insert into identities as i (project_id, user_id, id, public_id, properties, created_at, updated_at)
      values (
        project_ids[n], user_ids[n], ids[n], public_ids[n],
        coalesce(properties_list[n], '{}')::json, at, at
      )
      on conflict (project_id, user_id) do update set
        properties = coalesce(properties_list[n]::json, i.properties),
        updated_at = greatest(at, i.updated_at + interval '1 ms')
      returning i.public_id, i.properties, i.updated_at into person;

    with asked as (
      select a.alias, a.place, row_number() over (partition by a.alias order by a.place) as nth
      from json_array_elements_text(alias_lists[n]::json) with ordinality as a (alias, place)
    ), judged as (
      select asked.alias, asked.place, case
          when asked.nth > 1 then 'Repeated in this request'
          when asked.alias = user_ids[n] then 'Equals this user''s own user_id'
          when i.user_id is not null then 'Equals another user''s user_id'
          when a.user_id = user_ids[n] then 'Already an alias of this user'
          when a.user_id is not null then 'Already an alias of another user'
        end as reason
      from asked
        left join lateral (
          select i.user_id
          from identities i where i.project_id = project_ids[n] and i.user_id = asked.alias limit 1
        ) i on true
        left join lateral (
          select a.user_id
          from aliases a where a.project_id = project_ids[n] and a.alias = asked.alias limit 1
        ) a on true
    ), made as (
      insert into aliases (project_id, alias, user_id, created_at)
      select project_ids[n], judged.alias, user_ids[n], at from judged where judged.reason is null
    )
    select
        coalesce(string_agg(to_json(judged.alias)::text, ',' order by place) filter (where reason is null), ''),
        string_agg(
          '{"alias":' || to_json(judged.alias)::text || ',"reason":' || to_json(reason)::text || '}', ','
          order by place
        ) filter (where reason is not null),
        array_agg(judged.alias) filter (where reason like '%another user%')
      into created, failed, others
      from judged;

    outcome := 'done';
    body := '{"success":true,"data":{"id":"' || person.public_id
      || '","userId":' || to_json(user_ids[n])::text
      || ',"properties":' || person.properties::text
      || ',"aliases":{"created":[' || created || ']' || coalesce(',"failed":[' || failed || ']', '')
      || '},"updatedAt":"' || to_char(person.updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
      || '"}' || tails[n];

    if keys[n] is not null then
      insert into idempotency_keys as k (
          project_id, key, fingerprint, status, user_id, others, body, expires_at
        )
        values (
          project_ids[n], keys[n], fingerprints[n], 200, user_ids[n], others, body, at + interval '24 hours'
        )
        on conflict (project_id, key) do update set
          fingerprint = excluded.fingerprint, status = excluded.status, user_id = excluded.user_id,
          others = excluded.others, body = excluded.body, expires_at = excluded.expires_at;
    end if;
    return next;
  end loop;
end
$$;
