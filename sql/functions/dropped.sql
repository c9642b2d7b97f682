-- Functions that no server calls any more, and that older databases have.

drop function if exists delete_events(uuid, bigint[]);
drop function if exists search_tokens(uuid, text, text[], text, text);
