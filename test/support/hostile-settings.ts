/**
 * Settings of Postgres that a role or a database can have, with a value that would change what
 * Tidings reads, writes or gets back.
 */
export const HOSTILE: Record<string, string> = {
  client_encoding: 'LATIN1',
  TimeZone: 'Asia/Kathmandu',
  DateStyle: 'SQL, DMY',
  IntervalStyle: 'sql_standard',
  extra_float_digits: '-15',
  bytea_output: 'escape',
  xmloption: 'document',
  standard_conforming_strings: 'off',
  backslash_quote: 'off',
  array_nulls: 'off',
  transform_null_equals: 'on',
  quote_all_identifiers: 'on',
  gin_fuzzy_search_limit: '1',
  row_security: 'off',
  default_table_access_method: 'none',
  default_transaction_isolation: 'serializable',
  default_transaction_deferrable: 'on',
  'plpgsql.extra_errors': 'all',
  statement_timeout: '1',
  lock_timeout: '1',
  idle_in_transaction_session_timeout: '1',
  idle_session_timeout: '1',
  exit_on_error: 'on',
  synchronous_commit: 'off',
  max_parallel_workers_per_gather: '8',
  jit: 'on',
  search_path: 'nowhere',
}

/** Hostile values of settings that Tidings leaves to the operator: results stay the same. */
export const HOSTILE_BUT_LEFT: Record<string, string> = {
  lc_monetary: 'C',
  lc_numeric: 'C',
  lc_time: 'C',
  default_text_search_config: 'pg_catalog.german',
  plan_cache_mode: 'force_generic_plan',
  client_min_messages: 'debug1',
  check_function_bodies: 'off',
  synchronize_seqscans: 'off',
  timezone_abbreviations: 'India',
  default_toast_compression: 'pglz',
}

/** Why Tidings pins no value of its own, by the name of a setting. */
export const LEFT: readonly (readonly [RegExp, string])[] = [
  [/^(enable_|geqo|.*_cost$|.*_limit$)/, 'Chooses plans; results stay the same.'],
  [/^(cursor_tuple_fraction|recursive_worktable_factor|plan_cache_mode)$/, 'Chooses plans.'],
  [/^(constraint_exclusion|default_statistics_target|effective_cache_size)$/, 'Chooses plans.'],
  [/^(from|join)_collapse_limit$/, 'Chooses plans.'],
  [
    /^(min_parallel_.*|parallel_.*|max_parallel_.*|.*_parallel_query|force_parallel_mode)$/,
    'Plans.',
  ],
  [/_mem$|_multiplier$|^temp_buffers$|^max_stack_depth$/, 'Memory; the operator knows how much.'],
  [/(_io_|^io_|flush_after|^file_copy|vacuum_)/, 'Speed of disks and of maintenance.'],
  [/^(log_|debug_|track_|trace_|client_min_messages|wal_debug)/, 'Notices and figures, not rows.'],
  [/^(application_name|update_process_title|backtrace_functions)$/, 'Names and logs.'],
  [/^(commit_|wal_|deadlock_timeout|local_preload_|session_preload_|jit_)/, 'Speed, or preloads.'],
  [/^lc_(monetary|numeric|time|messages)$/, 'No statement formats money, months or local numbers.'],
  [/^default_(tablespace|toast_compression|text_search_config)$/, 'Storage; searches name theirs.'],
  [/^(temp_tablespaces|temp_file_limit|allow_in_place_tablespaces)$/, 'Storage.'],
  [
    /^(check_function_bodies|escape_string_warning)$/,
    'Only warns, or checks when functions are made.',
  ],
  [/^(synchronize_seqscans|timezone_abbreviations|xmlbinary)$/, 'No statement relies on it.'],
  [
    /^(password_encryption|createrole_self_grant|event_triggers|scram_|md5_)/,
    'Tidings makes no roles there.',
  ],
  [/^icu_validation_level$/, 'Only for new collations.'],
  [/^(client_connection_check_interval|stats_fetch_consistency)$/, 'Ends work for absent clients.'],
  [/^(transaction_(deferrable|isolation|read_only))$/, 'Of one transaction: see default_….'],
  [/^(session_replication_role|transaction_timeout)$/, 'Checked at the start.'],
  [/^default_transaction_read_only$/, 'Closes a database for writes, and is respected.'],
  [/^(role|session_authorization|seed)$/, 'Not a value of a role or a database.'],
  [/^(tcp_)/, 'Set beside these, without a check: a socket file has none.'],
  [/^(ignore_|zero_damaged_pages|allow_system_table_mods|lo_compat)/, 'Repairs by a superuser.'],
  [/^(dynamic_library_path|extension_control_path|restrict_nonsystem)/, 'Extensions; pg_dump.'],
  [
    /^(compute_query_id|allow_alter_system|recovery_prefetch|send_abort)/,
    'Monitoring; the server.',
  ],
]
