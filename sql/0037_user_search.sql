-- Returns the ids of up to `max_rows` users, newest first. Their user_id or an alias matches
-- `pattern`, or their properties have all words of `search`. With `before`, only users with an
-- earlier id are returned. It reads up to 10,000 matches of each kind. When a kind has more, it
-- also reads the newest 2,000 users: with so many matches, these usually fill a page. Users without
-- current words in the index are parsed, the newest first, for up to 500 ms. They are listed before
-- the index is read: on Citus each statement has a snapshot of its own, and the indexer works
-- meanwhile.
--
-- It is planned each time, because `like` uses its index only for a known pattern. The settings
-- force the index of words, whatever the statistics say.
create or replace function find_users(project uuid, pattern text, search text, before uuid, max_rows int) returns setof uuid
language plpgsql stable
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set jit = off
as $$
declare
  ends_at timestamptz;
  query tsquery := user_words_query(project, search);
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
  changed uuid[] := array(
    select distinct u.id from unindexed_users u where u.project_id = project order by u.id desc limit 20000
  );
  described uuid[] := array(
    select w.id
    from user_words w
    where w.words @@ query and (w.project_id = project) is true
      and not exists (select from unindexed_users u where u.project_id = w.project_id and u.id = w.id)
    limit 10000
  );
  unindexed uuid[] := '{}';
  newest uuid[];
begin
  if query is not null then
    ends_at := clock_timestamp() + interval '500 ms';
    for n in 1 .. cardinality(changed) by 20 loop
      exit when clock_timestamp() >= ends_at;
      unindexed := unindexed || array(
        select i.id
        from identities i
        where i.project_id = project and i.id = any(changed[n:n + 19])
          and words_of_user(project, i.properties) @@ query
      );
    end loop;
  end if;
  if 10000 in (cardinality(named), cardinality(aliased), cardinality(described)) then
    newest := array(
      select i.id
      from (
        select i.id, i.project_id, i.user_id
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
        or (
          exists (
            select from user_words w where w.project_id = i.project_id and w.id = i.id and w.words @@ query
          )
          and not exists (select from unindexed_users u where u.project_id = i.project_id and u.id = i.id)
        )
      order by i.id desc
      limit max_rows
    );
  end if;
  return query
  select distinct f.id
  from unnest(named || aliased || described || unindexed || newest) as f (id)
  where before is null or f.id < before
  order by f.id desc
  limit max_rows;
end
$$;
