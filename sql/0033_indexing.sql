-- Returns the words of a long text for the search index. Long words are cut off. A text with more
-- than 500 words has the token '*' in their place, which stands for every word.
create function long_search_words(title text, description text) returns text[]
language plpgsql immutable parallel safe as $$
declare
  words text[] := tsvector_to_array(words_of_event(title, description));
begin
  if cardinality(words) > 500 then
    return '{*}';
  end if;
  return array(select distinct left(w.word, 200) from unnest(words) as w (word));
end
$$;

-- Adds a part with the events from first_seq to last_seq to the search index. The caller has locked
-- the project's search cursor. The tokens are those of search_tokens, which would take as long as
-- the rest: a call for each event, with queries in it.
create or replace function add_search_part(project uuid, first_seq bigint, last_seq bigint) returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set work_mem = '64MB'
set jit = off
as $$
begin
  insert into event_tokens (project_id, first_seq, first_token, tokens, counts, offsets, bits)
  with part as (
    select (e.seq - add_search_part.first_seq)::smallint as n, e.channel_id, e.source, e.tags, e.title, e.description
    from events e
    where e.project_id = project and e.seq >= add_search_part.first_seq and e.seq <= add_search_part.last_seq
  ), placed as (
    select p.n, unnest(case
        when octet_length(p.title) + coalesce(octet_length(p.description), 0) > 1000
          then long_search_words(p.title, p.description)
        else tsvector_to_array(words_of_event(p.title, p.description))
      end) as token
    from part p
    union all
    select p.n, '#' || unnest(p.tags) from part p
    union all
    select p.n, '@' || p.source from part p
    union all
    select p.n, '=' || p.channel_id from part p
  ), found as (
    select p.token collate "C" as token, array_agg(p.n) as offsets from placed p group by 1
  ), numbered as (
    select
      f.token, f.offsets, cardinality(f.offsets) as n,
      -- A token with bits has a row of its own, and the next token begins another row.
      row_number() over (order by f.token) / 64 as group_number,
      count(*) filter (where cardinality(f.offsets) > 256) over (order by f.token rows unbounded preceding) as bits_before
    from found f
  )
  select
    project, add_search_part.first_seq, min(n.token),
    array_agg(n.token order by n.token), array_agg(n.n::smallint order by n.token),
    concat_offsets(n.offsets order by n.token), null
  from numbered n
  where n.n <= 256
  group by n.group_number, n.bits_before
  union all
  select project, add_search_part.first_seq, n.token, null, null, null, offsets_to_bits(n.offsets)
  from numbered n
  where n.n > 256;
  insert into search_parts (project_id, first_seq, last_seq)
    values (project, add_search_part.first_seq, add_search_part.last_seq);
end
$$;
