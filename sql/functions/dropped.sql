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

-- With its trigger, which delivered audit entries to webhooks.
drop function if exists enqueue_audit_entry() cascade;
