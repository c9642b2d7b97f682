/** Tables that a server also writes by itself, some time after the request that caused it. */
export const BACKGROUND_TABLES = [
  'delivery_cursors',
  'event_tokens',
  'key_usage',
  'organization_usage',
  'rate_windows',
  'search_cursors',
  'search_parts',
  'stale_segments',
  'unindexed_users',
  'user_words',
]
