-- Functions that no server calls any more, and that older databases have.

drop function if exists stored_times();
drop function if exists extend_deadlines(interval);
drop function if exists clamp_future_times(interval);
drop function if exists delete_events(uuid, bigint[]);
drop function if exists search_tokens(uuid, text, text[], text, text);
drop function if exists erase_responses(uuid, text[], int);
drop function if exists erase_other_responses(uuid, text, text, int);
drop function if exists erase_history(uuid, text, text[], bigint, int);
drop function if exists long_search_words(text, text);
drop function if exists words_of_user(uuid, json);
drop function if exists user_words_query(uuid, text);
drop function if exists split_words(text);
drop function if exists delete_archived_events(uuid, uuid, bigint, bigint[], bigint[]);
drop function if exists begin_archive_erasure(uuid, text, json, timestamptz);
drop function if exists oldest_running_erasure(uuid);
drop function if exists erased_users_of(uuid);
drop function if exists has_targets(text, uuid);
drop function if exists take_event_ranges(text, uuid[], int);
drop function if exists count_in_window(int, timestamptz, int);
drop function if exists open_window_start(timestamptz);

-- With its trigger, which delivered audit entries to webhooks.
drop function if exists enqueue_audit_entry() cascade;
