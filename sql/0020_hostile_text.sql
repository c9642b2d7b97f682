-- In a long run without white space, Postgres' parser of text looks at what may be an address or a path again from each
-- sign in it: 60,000 characters take it most of a minute, while the project's log is held. So long texts get a space
-- behind signs that come after 99 characters without one, and have no comments of HTML. Long words stay as they are.

-- The words of an event, as search looks for them.
create function words_of_event(title text, description text) returns tsvector
language sql immutable parallel safe as $$
  select to_tsvector('simple', case
    when octet_length(title) + coalesce(octet_length(description), 0) > 1000 then
      regexp_replace(replace(title || ' ' || coalesce(description, ''), '<!', '< !'), '\S{99}[^[:alnum:]\s]', '\& ', 'g')
    else title || ' ' || coalesce(description, '')
  end)
$$;

-- As in 0007, but that long texts are cut. What the index has of texts from before is found like before. It calls no
-- function of ours, words_of_event neither: Postgres makes indexes with a search path that has none.
create or replace function tokens_of(
  project uuid, seq bigint, channel_id uuid, source text, tags text[], title text, description text
) returns tsvector
language plpgsql immutable parallel safe as $$
declare
  bucket text := encode(substr(int8send(uuid_hash_extended(project, seq >> 14)), 1, 6), 'base64');
  content text := title || ' ' || coalesce(description, '');
  words text[];
begin
  if octet_length(content) > 1000 then
    content := regexp_replace(replace(content, '<!', '< !'), '\S{99}[^[:alnum:]\s]', '\& ', 'g');
  end if;
  words := tsvector_to_array(to_tsvector('simple', content));
  if octet_length(title) + coalesce(octet_length(description), 0) > 2000 then
    words := array(select left(word, 200) from unnest(words) as w (word));
  end if;
  return array_to_tsvector(array_remove(
    string_to_array(
      bucket || '=' || encode(substr(uuid_send(channel_id), 11), 'base64')
        || E'\x01' || bucket || '@' || source
        || E'\x01' || bucket || ' ' || array_to_string(words, E'\x01' || bucket || ' ')
        || case
          when tags = '{}' then ''
          else E'\x01' || bucket || '#' || array_to_string(tags, E'\x01' || bucket || '#')
        end,
      E'\x01', ''
    ),
    null
  ));
end
$$;

-- As in 0008, but that the texts of long properties are cut.
create or replace function words_of_user(project uuid, properties json) returns tsvector
language plpgsql immutable parallel safe as $$
declare
  name text := encode(substr(int8send(uuid_hash_extended(project, 0)), 1, 6), 'base64') || ' ';
  content text;
  parsed tsvector;
begin
  if properties::text = '{}' then
    return ''::tsvector;
  end if;
  if octet_length(properties::text) > 1000 then
    content := (
      select string_agg(v.value #>> '{}', ' ')
      from jsonb_path_query(properties::jsonb, 'strict $.** ? (@.type() == "string")') as v (value)
    );
    parsed := json_to_tsvector('simple', properties, '["numeric"]') || to_tsvector(
      'simple', coalesce(regexp_replace(replace(content, '<!', '< !'), '\S{99}[^[:alnum:]\s]', '\& ', 'g'), '')
    );
  else
    parsed := json_to_tsvector('simple', properties, '["string", "numeric"]');
  end if;
  return array_to_tsvector(array(
    select name || left(w.word, 200) from unnest(tsvector_to_array(parsed)) as w (word)
  ));
end
$$;
