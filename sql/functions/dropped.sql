-- Functions that 0.3.0 has, and that no server calls any more.

drop function if exists stored_times();
drop function if exists extend_deadlines(interval);
drop function if exists clamp_future_times(interval);
drop function if exists words_of_event(text, text);
drop function if exists find_search_candidates(uuid, uuid[], text[], text[], text[], bigint, bigint, boolean, int, float8);
drop function if exists read_webhook_attempts(uuid[], uuid[], uuid[], boolean, int, float8);
drop function if exists settle_deliveries(uuid[], uuid[], text[], int[], float8[], text[], bigint[]);
drop function if exists find_users(uuid, text, text, uuid, int);
drop function if exists identify_users(uuid[], text[], uuid[], text[], json[], json[], text[], bytea[], text[]);
drop function if exists describe_failed_aliases(text);
drop function if exists delete_archived_events(uuid, uuid, bigint, bigint[], bigint[]);
drop function if exists oldest_running_erasure(uuid);
drop function if exists erased_users_of(uuid);
drop function if exists has_targets(text, uuid);
drop function if exists take_event_ranges(text, uuid[], int);
drop function if exists count_in_window(int, timestamptz, int);
drop function if exists open_window_start(timestamptz);
drop function if exists mark_former_users(uuid);
drop function if exists other_digits();
drop function if exists other_currencies();
drop function if exists empty_event_response(json);
drop function if exists remove_aliases_from_response(json, text[]);
drop function if exists erase_purged_content(uuid, bigint[], uuid[]);
drop function if exists delete_locked_events(uuid, bigint[]);
drop function if exists delete_unlocked_events(uuid, bigint[], timestamptz);
drop function if exists remove_positions(uuid[], bigint[]);
drop function if exists empty_stored_response(text);
drop function if exists remove_aliases_from_stored(text, text[]);
drop function if exists remove_user_from_stored(smallint, text, text);
drop function if exists insert_erasure(uuid, text, text, json);
drop function if exists erase_user_responses(uuid, text[], bigint, int);
drop function if exists erase_user_history(uuid, text[], text, bigint, int);
drop function if exists erase_events(uuid, text[], bigint, int);
drop function if exists list_push_events(uuid[], bigint[], bigint[]);
drop function if exists event_json(bigint, text, text, text, timestamptz, timestamptz, text, text, text, text[], text, text, boolean);

-- With their triggers, whose work record_alias_changes does.
drop function if exists record_added_aliases() cascade;
drop function if exists record_alias_change() cascade;

-- With its trigger, which delivered audit entries to webhooks.
drop function if exists enqueue_audit_entry() cascade;
