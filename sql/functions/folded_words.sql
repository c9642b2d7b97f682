-- The words of texts and of searches. Everything that searches texts uses these functions: the
-- search index, lists, the feed and saved views. They do not depend on the locale of the database.
-- After a change of these rules, search_rules must return another number.

-- Returns the number of the rules by which the search index has words. Parts that were indexed by
-- other rules are read in full, until they are indexed anew.
create or replace function search_rules() returns smallint
language sql immutable parallel safe
return 3::smallint;

-- Returns a text in which equal words are written equally: case, accents and normal forms are
-- folded, and soft hyphens and joiners are left out.
create or replace function fold_text(content text) returns text
language plpgsql immutable parallel safe as $$
begin
  if octet_length(content) = length(content) then
    return lower(content collate "C");
  end if;
  return fold_other_letters(lower(normalize(content, NFD) collate "C"));
end
$$;

-- Returns the words of a folded text, each between spaces. A word is a run of letters and digits.
-- Each letter of a script without spaces has \x02 before it: a search finds any part of a run.
create or replace function words_of_text(folded text) returns text
language plpgsql immutable parallel safe as $$
declare
  words text collate "C";
begin
  -- A single space stays, because each replacement takes time.
  if octet_length(folded) = length(folded) then
    return regexp_replace(' ' || folded || ' ' collate "C", '[^a-z0-9]{2,}|[^a-z0-9 ]', ' ', 'g');
  end if;
  words := regexp_replace(
    ' ' || folded || ' ' collate "C",
    '[^a-z0-9' || other_letters() || ']{2,}|[^a-z0-9 ' || other_letters() || ']', ' ', 'g'
  );
  if words ~ ('[' || unspaced_letters() || ']') then
    words := regexp_replace(words, '([' || unspaced_letters() || '])([^ ' || unspaced_letters() || '])', E'\\1 \\2', 'g');
    words := regexp_replace(words, '([^ ' || unspaced_letters() || '])([' || unspaced_letters() || '])', E'\\1 \\2', 'g');
    words := regexp_replace(words, '([' || unspaced_letters() || '])', E'\x02\\1', 'g');
  end if;
  return words;
end
$$;

-- Returns the words that an event is found by. A version like v2.3 is also found without its v: all
-- words follow once more.
create or replace function words_to_find(folded text) returns text
language plpgsql immutable parallel safe as $$
declare
  words text collate "C" := words_of_text(folded);
begin
  if strpos(words, ' v') > 0 and words ~ ' v[0-9]' then
    return words || regexp_replace(words, ' v([0-9])', E' \\1', 'g');
  end if;
  return words;
end
$$;

-- Returns a folded text with its symbols, and \x01 before and after each word.
create or replace function symbols_of_text(folded text) returns text
language plpgsql immutable parallel safe as $$
begin
  return regexp_replace(
    regexp_replace(folded collate "C", E'[\x01-\x20\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+', ' ', 'g'),
    '((?:(?![' || unspaced_letters() || '])[a-z0-9' || other_letters() || '])+)', E'\x01\\1\x01', 'g'
  );
end
$$;

-- Returns the text of an event in which the patterns of text_patterns are found.
create or replace function search_text(title text, description text) returns text
language plpgsql immutable parallel safe as $$
declare
  folded text := fold_text(title || ' ' || coalesce(description, ''));
begin
  return words_to_find(folded) || symbols_of_text(folded);
end
$$;

-- Returns the tokens of words for the search index: each word, cut off after 200 characters. A run
-- in a script without spaces has a token for each two letters, and one for its last letter. More
-- than 500 tokens are one, '*', which stands for every word.
create or replace function tokens_of_words(words text) returns text[]
language plpgsql immutable parallel safe as $$
declare
  tokens text[];
begin
  if octet_length(words) <= 1000 and strpos(words, E'\x02') = 0 then
    return tsvector_to_array(array_to_tsvector(array_remove(string_to_array(words, ' '), '')));
  end if;
  tokens := array(
    select left(w.word, 200)
    from unnest(string_to_array(words, ' ')) as w (word)
    where w.word <> '' and not starts_with(w.word, E'\x02')
    union
    select r.letter || coalesce(lead(r.letter) over (partition by w.n order by r.n), '')
    from unnest(string_to_array(words, ' ')) with ordinality as w (word, n)
      cross join lateral unnest(string_to_array(substr(w.word, 2), E'\x02')) with ordinality as r (letter, n)
    where starts_with(w.word, E'\x02')
  );
  return case when cardinality(tokens) > 500 then '{*}' else tokens end;
end
$$;

-- Returns how an event matches each term of a search: search_text has the pattern. A term matches
-- words next to each other, in order. The last one is a beginning, unless the term is a phrase. A
-- term that begins or ends with a symbol is found as it is written. Quotes, brackets and the
-- punctuation at its end are no such symbols. Terms without anything to find have no row, and those
-- without words only if no term has words.
--
-- The folded text of a match has the needle. The search index has a token of the match that begins
-- with each of `tokens`.
create or replace function text_patterns(terms text[], are_phrases boolean[])
returns table (ord int, pattern text, needle text, has_symbols boolean, tokens text[])
language plpgsql immutable parallel safe as $$
declare
  letter text := '[a-z0-9' || other_letters() || ']';
  folded text collate "C";
  found_words text[];
  words text collate "C";
  has_words boolean := exists (select from unnest(terms) as t (term) where fold_text(t.term) ~ letter);
begin
  for n in 1 .. cardinality(terms) loop
    folded := btrim(regexp_replace(fold_text(terms[n]), E'[\x01-\x20\u0085\u00a0\u3000]+', ' ', 'g'), ' ');
    folded := coalesce(nullif(regexp_replace(regexp_replace(
      folded,
      E'^[][("''{ \u00a1\u00ab\u00bf\u2018-\u201f\u2039\u203a\u3008-\u3011\uff08]+', ''),
      E'[][)"''} .,;:!?\u00bb\u2018-\u201f\u2026\u2039\u203a\u3001\u3002\u3008-\u3011\uff01\uff09\uff0c\uff1a\uff1b\uff1f]+$', ''
    ), ''), folded);
    words := words_of_text(folded);
    found_words := string_to_array(btrim(words), ' ');
    has_symbols := folded !~ ('^' || letter) or folded !~ (letter || '$');
    if has_symbols then
      pattern := symbols_of_text(folded);
      if not are_phrases[n] then
        pattern := rtrim(pattern, E'\x01');
      end if;
    else
      -- Any part of a run in a script without spaces matches.
      if starts_with(found_words[1], E'\x02') then
        words := ltrim(words, ' ');
      end if;
      if not are_phrases[n] or starts_with(found_words[cardinality(found_words)], E'\x02') then
        words := rtrim(words, ' ');
      end if;
      pattern := words;
    end if;
    continue when folded = '' or (has_words and found_words = '{}');
    ord := n;
    needle := coalesce((
      select replace(w.word, E'\x02', '') from unnest(found_words) as w (word) order by length(w.word) desc limit 1
    ), '');
    -- The index cuts long words in long texts alone.
    tokens := array(select distinct left(t.token, 200) from unnest(tokens_of_words(words)) as t (token));
    return next;
  end loop;
end
$$;

-- Returns true if an event has all wanted patterns, and none of the unwanted ones. The needles are
-- those of the wanted patterns: most events lack one, and are not split into words. Texts in
-- ASCII are not split either: a short expression finds the same words.
create or replace function matches_texts(
  title text, description text, needles text[], wanted text[], unwanted text[], has_symbols boolean
) returns boolean
language plpgsql immutable parallel safe as $$
declare
  folded text collate "C" := fold_text(title || ' ' || coalesce(description, ''));
  is_simple boolean := octet_length(folded) = length(folded) and not has_symbols and folded !~ '(^|[^a-z0-9])v[0-9]';
  words text collate "C";
  part text;
  is_found boolean;
begin
  foreach part in array needles loop
    if strpos(folded, part) = 0 then
      return false;
    end if;
  end loop;
  if not is_simple then
    words := words_to_find(folded) || case when has_symbols then symbols_of_text(folded) else '' end;
  end if;
  for n in 1 .. cardinality(wanted) + cardinality(unwanted) loop
    part := coalesce(wanted[n], unwanted[n - cardinality(wanted)]);
    if is_simple then
      is_found := octet_length(part) = length(part) and folded ~
        replace(regexp_replace(regexp_replace(part, '^ ', '(^|[^a-z0-9])'), ' $', '([^a-z0-9]|$)'), ' ', '[^a-z0-9]+');
    else
      is_found := strpos(words, part) > 0;
    end if;
    if is_found <> (n <= cardinality(wanted)) then
      return false;
    end if;
  end loop;
  return true;
end
$$;
