// Made from the schemas of the server by `bun run build:client`. Do not edit.
export interface Answer {
  /**
   * `expired`: nobody answered in time.
   */
  state: 'waiting' | 'answered' | 'expired'
  /**
   * The id of the chosen action.
   */
  action: string | null
  /**
   * The name of the member, or of the token.
   */
  by: string | null
  /**
   * When it was answered, or expired.
   */
  at: string | null
  expiresAt: string
  /**
   * When the program fetched the answer, or accepted the callback.
   */
  receivedAt: string | null
}

export interface Channel {
  id: string
  /**
   * The name as first sent, or the new name after a rename.
   */
  name: string
  icon: string | null
  createdAt: string
}

export interface Detail {
  path: string[]
  message: string
  code:
    | 'required'
    | 'invalid_type'
    | 'too_short'
    | 'too_long'
    | 'too_many'
    | 'too_deep'
    | 'invalid_format'
    | 'invalid_value'
    | 'out_of_range'
    | 'invalid_json'
    | 'invalid_encoding'
}

export interface Erased {
  userId: string
  /**
   * The number of events from which the user was removed.
   */
  events: number
  /**
   * When the identity was deleted. A repeated request gets the time of the first.
   */
  erasedAt: string
  /**
   * The API key that erased the user; null if a member did.
   */
  erasedBy: {
    id: string
    name: string
  } | null
  /**
   * Months whose files of `tidings export` can name the user. Erase the user there, too. Absent if there are none.
   */
  exportedMonths?: string[]
}

export interface Event {
  id: string
  /**
   * Its place in the project's log: dense, in commit order.
   */
  seq: number
  channelId: string
  channelName: string
  /**
   * The user_id, or the reference as sent when no user has it.
   */
  userId: string | null
  /**
   * When it happened.
   */
  timestamp: string
  /**
   * When it was accepted.
   */
  createdAt: string
  title: string
  /**
   * More about it.
   */
  description: string | null
  /**
   * A single emoji.
   */
  icon: string | null
  tags: string[]
  metadata: {
    [k: string]: unknown
  }
  source: string
  notify: boolean
  /**
   * How urgent it is. Absent for `normal`.
   */
  level?: 'low' | 'normal' | 'high' | 'critical'
  /**
   * The page that it leads to. Absent if it has none.
   */
  url?: string
  /**
   * The key of its thread. Absent if it has none.
   */
  thread?: string
  /**
   * The state of the thread after it. Absent if the thread has none.
   */
  state?: 'resolved' | 'succeeded' | 'running' | 'firing' | 'failed'
  /**
   * The `seq` of the event that opened the thread. A thread that ended and opens again has another one. Absent without `thread`.
   */
  threadSeq?: number
}

export interface EventDetail {
  id: string
  /**
   * Its place in the project's log: dense, in commit order.
   */
  seq: number
  channelId: string
  channelName: string
  /**
   * The user_id, or the reference as sent when no user has it.
   */
  userId: string | null
  /**
   * When it happened.
   */
  timestamp: string
  /**
   * When it was accepted.
   */
  createdAt: string
  title: string
  /**
   * More about it.
   */
  description: string | null
  /**
   * A single emoji.
   */
  icon: string | null
  tags: string[]
  metadata: {
    [k: string]: unknown
  }
  source: string
  notify: boolean
  /**
   * How urgent it is. Absent for `normal`.
   */
  level?: 'low' | 'normal' | 'high' | 'critical'
  /**
   * The page that it leads to. Absent if it has none.
   */
  url?: string
  /**
   * The key of its thread. Absent if it has none.
   */
  thread?: string
  /**
   * The state of the thread after it. Absent if the thread has none.
   */
  state?: 'resolved' | 'succeeded' | 'running' | 'firing' | 'failed'
  /**
   * The `seq` of the event that opened the thread. A thread that ended and opens again has another one. Absent without `thread`.
   */
  threadSeq?: number
  /**
   * The answers that members choose from. Absent if it asks nothing.
   */
  actions?: {
    id: string
    label: string
  }[]
  /**
   * How it is answered. Absent if it asks nothing.
   */
  answer?: {
    expiresAt: string
    /**
     * Members with this role or a higher one may answer.
     */
    by: 'members' | 'admins' | 'owners'
    /**
     * Verifies the callback. Only in the response to the creation.
     */
    secret?: string
  }
}

export interface EventInput {
  /**
   * Name of the channel, which is created if it does not exist. Names that differ only in case or in runs of white space are equal. White space around a name is removed. The length is that of the composed form (NFC). Control, bidirectional and zero-width characters are rejected, except inside an emoji.
   */
  channelName: string
  /**
   * What happened. White space around it is removed, and does not count. It must have a visible character.
   */
  title: string
  /**
   * More about it.
   */
  description?: string
  /**
   * A single emoji, or GitHub's shortcode of one, like `:rocket:`. Blank text counts as absent.
   */
  icon?: string
  /**
   * @maxItems 20
   */
  tags?: string[]
  /**
   * Anything else about the event. Any JSON object that fits into the body. Numbers are returned exactly as sent. Exponents range from -10,000 to 10,000.
   */
  metadata?: {
    [k: string]: unknown
  }
  userId?: string | null
  /**
   * The same as `userId`, which takes precedence.
   */
  user_id?: string | null
  /**
   * True if members are notified on their devices.
   */
  notify?: boolean
  source?: string
  /**
   * When it happened, at most 5 minutes in the future. Default: the time of creation. Text is ISO 8601 with an offset, in the extended or basic form. A number, also as text, is Unix seconds, or Unix milliseconds from 100,000,000,000 on. Years 0100 to 9999.
   */
  timestamp?: string | number
  /**
   * How urgent it is. Default: the level of its open thread, or of the channel, which is `normal` unless a member changes it.
   */
  level?: 'low' | 'normal' | 'high' | 'critical'
  /**
   * An http or https address, without a user name and a password. The title and notifications lead there.
   */
  url?: string
  /**
   * The key of what it is about, such as an incident. Events of a channel with the same key are updates of one thread.
   */
  thread?: string
  /**
   * The state of the thread after it. Requires `thread`. Default: the state before it.
   */
  state?: 'resolved' | 'succeeded' | 'running' | 'firing' | 'failed'
  /**
   * The answers that members choose from. Requires `answer`.
   *
   * @minItems 1
   * @maxItems 4
   */
  actions?: {
    /**
     * Lower-case letters, digits, `_` and `-`.
     */
    id: string
    /**
     * The text of its button. White space around it is removed, and does not count. It must have a visible character.
     */
    label: string
  }[]
  /**
   * How it is answered. Requires `actions`.
   */
  answer?: {
    /**
     * How long members can answer.
     */
    expiresInSeconds: number
    /**
     * Receives the answer: https or http, at a public address.
     */
    callbackUrl?: string
    /**
     * Members with this role or a higher one may answer.
     */
    by?: 'members' | 'admins' | 'owners'
  }
}

export interface EventFilters {
  /**
   * Name or id of a channel.
   */
  channel?: string
  /**
   * A tag that the event has.
   */
  tag?: string
  /**
   * A user_id or an alias. Finds the events under every name of the user.
   */
  userId?: string
  /**
   * The source of the event.
   */
  source?: string
  /**
   * The level of the event.
   */
  level?: 'low' | 'normal' | 'high' | 'critical'
  /**
   * The state of a thread after the event.
   */
  state?: 'resolved' | 'succeeded' | 'running' | 'firing' | 'failed'
  /**
   * The key of what it is about, such as an incident. Events of a channel with the same key are updates of one thread.
   */
  thread?: string
  /**
   * With `all`, a list has every event of a thread. By default, only its latest one. With `after`, or with another filter than channels, levels, states and threads, a list has every event that matches.
   */
  threads?: 'latest' | 'all'
  /**
   * Only the events of the thread with this `threadSeq`, all of them.
   */
  threadSeq?: number
  /**
   * Up to 20 words of the title or description, or their beginnings. All must match. `a.b` matches words next to each other, and symbols as in `C++` match as written.
   */
  text?: string
  /**
   * Only events at this time or later. Years 0100 to 9999.
   */
  from?: string
  /**
   * Only events at this time or earlier. Years 0100 to 9999.
   */
  to?: string
  /**
   * Reads forward in the order of the log, from the event after this seq.
   */
  after?: number
  /**
   * The `nextCursor` of the previous page.
   */
  cursor?: string
  /**
   * Items per page.
   */
  limit?: number
}

export interface Identified {
  id: string
  userId: string | null
  properties: {
    [k: string]: unknown
  }
  aliases: {
    created: string[]
    /**
     * Present only when at least one alias failed.
     */
    failed?: {
      alias: string
      reason: string
    }[]
  }
  updatedAt: string
}

export interface IdentifyInput {
  /**
   * Your own id of the user, the same in every call. Case and white space count.
   */
  user_id: string
  /**
   * Replaces all stored properties. When absent, they stay. `{}` clears them. Any JSON object that fits into the body. Numbers are returned exactly as sent. Exponents range from -10,000 to 10,000.
   */
  properties?: {
    [k: string]: unknown
  }
  /**
   * @maxItems 50
   */
  aliases?: string[]
}

export interface Me {
  organization: {
    id: string
    name: string
  }
  project: {
    id: string
    name: string
  }
  key: {
    id: string
    name: string
    /**
     * Requests per 60 seconds.
     */
    limit: number
    scopes: (
      'events:write' | 'events:read' | 'identities:write' | 'identities:read' | 'identities:erase'
    )[]
    expiresAt: string | null
  }
}

export interface Thread {
  /**
   * The `seq` of the event that opened it. It identifies the thread.
   */
  threadSeq: number
  /**
   * Its key, as events have it.
   */
  thread: string
  channelId: string
  channelName: string
  /**
   * Absent if no event had one.
   */
  state?: 'resolved' | 'succeeded' | 'running' | 'firing' | 'failed'
  /**
   * Absent for `normal`.
   */
  level?: 'low' | 'normal' | 'high' | 'critical'
  /**
   * The number of its events.
   */
  count: number
  /**
   * When its first event happened.
   */
  openedAt: string
  /**
   * When its latest event happened.
   */
  updatedAt: string
  /**
   * Its latest event.
   */
  event: {
    id: string
    seq: number
    title: string
    /**
     * A single emoji.
     */
    icon: string | null
    /**
     * The page that it leads to.
     */
    url?: string
  }
  /**
   * The member who takes care of it. Absent while nobody does.
   */
  acknowledged?: {
    by: string
    at: string
    until?: string
  }
}

export interface ThreadFilters {
  /**
   * Name or id of the channel of `thread`.
   */
  channel?: string
  /**
   * The key of a thread. Lists it and the former ones of this key, newest first.
   */
  thread?: string
  /**
   * The `nextCursor` of the previous page.
   */
  cursor?: string
  /**
   * Items per page.
   */
  limit?: number
}

export interface User {
  id: string
  userId: string
  properties: {
    [k: string]: unknown
  }
  aliases: string[]
  createdAt: string
  updatedAt: string
}
