-- What people say of a channel. Its slug stays what it was, whatever its name becomes.
alter table channels
  add column description text,
  -- It still takes events; nobody is notified of them.
  add column is_archived boolean not null default false,
  -- Days for which its events are kept, whatever its project says; null for as long as the project says.
  add column keep_days int check (keep_days > 0);

-- How far a person has read a channel, or with null for a channel all of them. The further of the two counts.
create table read_marks (
  person_id uuid not null references people on delete cascade,
  project_id uuid not null references projects on delete cascade,
  channel_id uuid,
  seq bigint not null check (seq >= 0),
  -- Serves what a person has not read; and, by its first columns, a project or channel that goes.
  unique nulls not distinct (project_id, channel_id, person_id),
  foreign key (project_id, channel_id) references channels (project_id, id) on delete cascade
);

-- Serves a person who goes.
create index read_marks_of_person on read_marks (person_id);

-- How many events of a channel come after `mark`, counted up to 100. Where there is no mark, those since `since`.
-- The plan is pinned, here and below: a channel with few events, or none, must not be looked for among all of a
-- project's. Comparing both columns in one asks for the index that begins with the channel, and no other gives the order.
create function count_unread(project uuid, channel uuid, mark bigint, since timestamptz) returns int
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
begin
  return (
    select count(*)
    from (
      select e.created_at
      from events e
      where e.project_id = project
        and (e.channel_id, e.seq) > (channel, coalesce(mark, 0))
        and (e.channel_id, e.seq) <= (channel, 9223372036854775807)
        and e.deleted_at is null
      order by e.channel_id desc, e.seq desc
      limit 100
    ) newest
    where mark is not null or newest.created_at >= since
  );
end
$$;

-- The newest event of a channel; no row where there is none.
create function last_event(project uuid, channel uuid) returns table (seq bigint, created_at timestamptz)
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
begin
  return query
  select e.seq, e.created_at
  from events e
  where e.project_id = project
    and (e.channel_id, e.seq) > (channel, 0)
    and (e.channel_id, e.seq) <= (channel, 9223372036854775807)
    and e.deleted_at is null
  order by e.channel_id desc, e.seq desc
  limit 1;
end
$$;

-- When the oldest event of a channel was created; null where there is none.
create function oldest_event(project uuid, channel uuid) returns timestamptz
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
begin
  return (
    select e.created_at
    from events e
    where e.project_id = project
      and (e.channel_id, e.seq) > (channel, 0)
      and (e.channel_id, e.seq) <= (channel, 9223372036854775807)
    order by e.channel_id, e.seq
    limit 1
  );
end
$$;

-- Until when the events of a channel are past keeping; null where they are kept for ever, or the project is going.
create function kept_since(project uuid, channel uuid) returns timestamptz
language sql stable as $$
  select now() - make_interval(days => coalesce(c.keep_days, p.keep_days))
  from channels c
    join projects p on p.id = c.project_id and p.deleted_at is null
  where c.project_id = project and c.id = channel
$$;

-- Whether this transaction alone clears old events of a project away, until it ends.
create function may_clear(project uuid) returns boolean
language sql as $$
  select pg_try_advisory_xact_lock(hashtextextended('clear events', hashtextextended(project::text, 0)))
$$;

-- Deletes at most so many of a channel's events that are past keeping, from the oldest after after_seq on. Returns how
-- many were deleted and the last seq that was looked at; no row where nothing is due, or another process is at it.
create function expire_events(project uuid, channel uuid, after_seq bigint, most int)
returns table (deleted int, last_seq bigint)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  seqs bigint[];
begin
  if not may_clear(project) then
    return;
  end if;
  -- Before the lock, so that nobody waits while old pages are read from the disk.
  select array_agg(o.seq order by o.seq) into seqs
    from (
      select e.seq, e.created_at
      from events e
      where e.project_id = project
        and (e.channel_id, e.seq) > (channel, after_seq)
        and (e.channel_id, e.seq) <= (channel, 9223372036854775807)
      order by e.channel_id, e.seq
      limit most
    ) o
    where o.created_at < kept_since(project, channel);
  if seqs is null then
    return;
  end if;
  deleted := delete_unlocked(project, seqs, null);
  last_seq := seqs[cardinality(seqs)];
  -- What the feed tells those whose cursor is older.
  update event_logs l set cut_seq = greatest(l.cut_seq, expire_events.last_seq) where l.project_id = project;
  return next;
end
$$;

-- Deletes for good at most so many events of a project that were hidden before `before`; returns how many.
create function purge_events(project uuid, before timestamptz, most int) returns int
language plpgsql as $$
declare
  seqs bigint[];
begin
  if not may_clear(project) then
    return 0;
  end if;
  select array_agg(h.seq) into seqs
    from (
      select e.seq
      from events e
      where e.deleted_at < before and e.project_id = project
      order by e.deleted_at
      limit most
    ) h;
  return case when seqs is null then 0 else delete_unlocked(project, seqs, before) end;
end
$$;

-- Deletes those of `seqs` that nobody else is at work on, given `before` only what was hidden before it; returns how many. It waits for the project's log, like every writer, and for nothing else: so it can be part of no
-- deadlock.
create function delete_unlocked(project uuid, seqs bigint[], before timestamptz) returns int
language plpgsql as $$
declare
  free bigint[];
begin
  -- Losing this in a crash loses nothing: it is done again. So the log is not held until the disk has it.
  perform set_config('synchronous_commit', 'off', true);
  perform from event_logs l where l.project_id = project for update;
  free := array(
    select e.seq
    from events e
    where e.project_id = project and e.seq = any(seqs)
      and (before is null or e.deleted_at < before)
    order by e.seq
    for update skip locked
  );
  return (select count(*) from delete_events(project, free));
end
$$;

-- Serves the search for users by the beginning of a user_id, and of an alias.
create index identities_of_name on identities (project_id, lower(user_id) text_pattern_ops);
create index aliases_of_name on aliases (project_id, lower(alias) text_pattern_ops);

-- The words of a user's properties, each behind the name of their project, so that a search meets nothing of others. Two
-- projects may get one name, and long words are cut: what is found is looked at again.
-- The body names nothing but built-in functions: an index is built without the search path.
create function words_of_user(project uuid, properties json) returns tsvector
language plpgsql immutable parallel safe as $$
declare
  name text := encode(substr(int8send(uuid_hash_extended(project, 0)), 1, 6), 'base64') || ' ';
begin
  if properties::text = '{}' then
    return ''::tsvector;
  end if;
  return array_to_tsvector(array(
    select name || left(w.word, 200)
    from unnest(tsvector_to_array(json_to_tsvector('simple', properties, '["string", "numeric"]'))) as w (word)
  ));
end
$$;

-- A word as it stands in a tsquery, where any word that begins like it will do.
create function quote_word(word text) returns text
language sql immutable
return '''' || replace(replace(word, E'\\', E'\\\\'), '''', '''''') || ''':*';

-- What the words of users match that have words which begin like all of `words`, or like the parts of those.
create function words_query(project uuid, words text[]) returns tsquery
language sql immutable as $$
  with tokens as (
    select w.place, w.word as whole, p.part
    from unnest(words) with ordinality as w (word, place)
      cross join lateral (
        select null as part
        union all
        select t.part from unnest(tsvector_to_array(to_tsvector('simple', w.word))) as t (part)
      ) p
  ), quoted as (
    select place, part is null as is_whole,
      quote_word(
        encode(substr(int8send(uuid_hash_extended(project, 0)), 1, 6), 'base64')
          || ' ' || left(coalesce(part, lower(whole)), 200)
      ) as token
    from tokens
  ), alternatives as (
    select place,
      '(' || string_agg(token, '&') filter (where is_whole)
        || coalesce('|(' || string_agg(token, '&') filter (where not is_whole) || ')', '') || ')' as text
    from quoted
    group by place
  )
  select string_agg(text, '&')::tsquery from alternatives
$$;

-- Serves the search for users by words in their properties. Rows wait in a list, so that an identify stays cheap: a
-- very short one, because the identify that fills it sorts it in while it holds the project's log.
create index identities_words on identities using gin (words_of_user(project_id, properties))
  with (gin_pending_list_limit = 64);

-- The ids of at most so many users, newest first and before `before`, that have a user_id or an alias which begins like
-- `pattern` says, or all of `words` in their properties. Of each kind 10,000 are looked at; where there are more, the
-- newest 2,000 users are looked through, too, which makes a page where so many are meant.
-- Planned anew each time, because the pattern leads into its index only where it is known; and the index of words is
-- meant where it is asked for: no statistics may choose to read all properties.
create function find_users(project uuid, pattern text, words text[], before uuid, most int) returns setof uuid
language plpgsql stable
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set jit = off
as $$
declare
  query tsquery := words_query(project, words);
  named uuid[] := array(
    select i.id
    from identities i
    where i.project_id = project and lower(i.user_id) like pattern
    limit 10000
  );
  aliased uuid[] := array(
    select i.id
    from aliases a
      join identities i on i.project_id = a.project_id and i.user_id = a.user_id
    where a.project_id = project and lower(a.alias) like pattern
    limit 10000
  );
  described uuid[] := array(
    select i.id
    from identities i
    where words_of_user(i.project_id, i.properties) @@ query and (i.project_id = project) is true
    limit 10000
  );
  newest uuid[];
begin
  if 10000 in (cardinality(named), cardinality(aliased), cardinality(described)) then
    newest := array(
      select i.id
      from (
        select i.id, i.project_id, i.user_id, i.properties
        from identities i
        where i.project_id = project and (before is null or i.id < before)
        order by i.id desc
        limit 2000
      ) i
      where lower(i.user_id) like pattern
        or exists (
          select from aliases a
          where a.project_id = i.project_id and a.user_id = i.user_id and lower(a.alias) like pattern
        )
        or words_of_user(i.project_id, i.properties) @@ query
      order by i.id desc
      limit most
    );
  end if;
  return query
  select distinct f.id
  from unnest(named || aliased || described || newest) as f (id)
  where before is null or f.id < before
  order by f.id desc
  limit most;
end
$$;

-- What is known of a user from the events that name them, by user_id or alias: how many, counted up to 10,000, when the
-- first and the last of them happened, and in which ten channels the most of those counted are.
create function user_activity(project uuid, name text)
returns table (events int, first_at timestamptz, last_at timestamptz, channels text)
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
begin
  return query
  with names as (
    select n.name from unnest(names_of_user(project, user_activity.name)) as n (name)
  ), counted as materialized (
    select e.channel_id
    from names n
      cross join lateral (
        select e.channel_id
        from events e
        where e.project_id = project and e.user_ref is not null and e.deleted_at is null
          and (e.user_ref, e.seq) > (n.name, 0)
          and (e.user_ref, e.seq) <= (n.name, 9223372036854775807)
        order by e.user_ref desc, e.seq desc
        limit 10000
      ) e
    limit 10000
  ), top as (
    select c.public_id, c.name, c.icon, t.n
    from (select k.channel_id, count(*) as n from counted k group by k.channel_id) t
      join channels c on c.project_id = project and c.id = t.channel_id
    order by t.n desc, c.id
    limit 10
  )
  select
    (select count(*)::int from counted),
    (
      select min(e.occurred_at)
      from names n
        cross join lateral (
          select e.occurred_at
          from events e
          where e.project_id = project and e.user_ref is not null and e.deleted_at is null
            and (e.user_ref, e.seq) > (n.name, 0)
            and (e.user_ref, e.seq) <= (n.name, 9223372036854775807)
          order by e.user_ref, e.seq
          limit 1
        ) e
    ),
    (
      select max(e.occurred_at)
      from names n
        cross join lateral (
          select e.occurred_at
          from events e
          where e.project_id = project and e.user_ref is not null and e.deleted_at is null
            and (e.user_ref, e.seq) > (n.name, 0)
            and (e.user_ref, e.seq) <= (n.name, 9223372036854775807)
          order by e.user_ref desc, e.seq desc
          limit 1
        ) e
    ),
    (
      select coalesce(
        json_agg(
          json_build_object('id', t.public_id, 'name', t.name, 'icon', t.icon, 'events', t.n)
          order by t.n desc, t.public_id
        ),
        '[]'
      )::text
      from top t
    );
end
$$;

-- Something that happened to an alias of a user: 'moved from' and 'moved to' name the other user. Written by whoever
-- writes aliases, in the same transaction. person_id is who did it in the dashboard, null for an application.
create table alias_changes (
  project_id uuid not null references projects,
  user_id text not null,
  at timestamptz not null,
  id bigint generated always as identity,
  alias text not null,
  change text not null check (change in ('added', 'removed', 'moved from', 'moved to')),
  other text,
  person_id uuid references people on delete set null,
  -- Serves a user's history, newest first.
  primary key (project_id, user_id, at, id)
);

-- Serves erasure: whose an alias was before.
create index alias_changes_of_alias on alias_changes (project_id, alias);

-- Serves erasure: few changes name another user.
create index alias_changes_of_other on alias_changes (project_id, other) where other is not null;

-- Serves a person who goes.
create index alias_changes_of_person on alias_changes (person_id) where person_id is not null;

insert into alias_changes (project_id, user_id, at, alias, change)
select project_id, user_id, created_at, alias, 'added'
from aliases;

-- Keeps what happens to aliases. Who does it in the dashboard stands in the transaction's setting tidings.person.
create function keep_alias_change() returns trigger
language plpgsql as $$
declare
  moment timestamptz := date_trunc('milliseconds', clock_timestamp());
  person uuid := nullif(current_setting('tidings.person', true), '')::uuid;
begin
  if tg_op = 'INSERT' then
    insert into alias_changes (project_id, user_id, at, alias, change, person_id)
      values (new.project_id, new.user_id, moment, new.alias, 'added', person);
  elsif tg_op = 'DELETE' then
    insert into alias_changes (project_id, user_id, at, alias, change, person_id)
      values (old.project_id, old.user_id, moment, old.alias, 'removed', person);
  elsif new.user_id <> old.user_id then
    insert into alias_changes (project_id, user_id, at, alias, change, other, person_id)
      values
        (old.project_id, old.user_id, moment, old.alias, 'moved to', new.user_id, person),
        (new.project_id, new.user_id, moment, new.alias, 'moved from', old.user_id, person);
  end if;
  return null;
end
$$;
create trigger aliases_have_history after insert or update or delete on aliases
  for each row execute function keep_alias_change();

-- An answer to identify without the aliases that are among `names`.
create function forget_aliases(answer json, names text[]) returns text
language sql immutable as $$
  select '{"success":true,"data":{"id":' || (answer #> '{data,id}')::text
    || ',"userId":' || (answer #> '{data,userId}')::text
    || ',"properties":' || (answer #> '{data,properties}')::text
    || ',"aliases":{"created":[' || coalesce((
      select string_agg(to_json(c.alias)::text, ',' order by c.place)
      from json_array_elements_text(answer #> '{data,aliases,created}') with ordinality as c (alias, place)
      where c.alias <> all(names)
    ), '') || ']'
    || coalesce(',"failed":[' || (
      select string_agg(f.item::text, ',' order by f.place)
      from json_array_elements(answer #> '{data,aliases,failed}') with ordinality as f (item, place)
      where f.item ->> 'alias' <> all(names)
    ) || ']', '')
    || '},"updatedAt":' || (answer #> '{data,updatedAt}')::text
    || '},"requestId":' || (answer -> 'requestId')::text || '}'
$$;

-- Erases a user of a project, as before; and what the history of aliases tells of them. Who had one of their aliases
-- earlier may have a stored answer that says so: it is taken out of that, too.
create or replace function erase_user(project uuid, name text) returns table (events int, was_known boolean)
language plpgsql
set plan_cache_mode = force_custom_plan
as $$
declare
  names text[];
begin
  perform from event_logs l where l.project_id = project for update;
  names := names_of_user(project, name);
  events := forget_events(project, names, null);
  perform forget_answers(project, names, null);
  -- The answers to others may say that a name was taken.
  update idempotency_keys k set
    others = array(select o.name from unnest(k.others) as o (name) where o.name <> all(names)),
    body = forget_aliases(k.body::json, names)
  where k.project_id = project and k.status = 200 and k.others is not null and k.others && names;
  -- Or that they were given a name which is this user's since.
  update idempotency_keys k set body = forget_aliases(k.body::json, names)
    where k.project_id = project and k.status = 200
      and k.user_id in (
        select h.user_id from alias_changes h where h.project_id = project and h.alias = any(names)
      );

  delete from identities i where i.project_id = project and i.user_id = erase_user.name;
  was_known := found;

  -- After the identity, whose aliases leave their last changes as they go.
  delete from alias_changes h
    where h.project_id = project and (h.user_id = erase_user.name or h.alias = any(names));
  update alias_changes h set other = null
    where h.project_id = project and h.other = erase_user.name;
  return next;
end
$$;

drop function forget_failed(json, text[]);
