import { canonical, toNumber, type Raw } from './spelling.ts'

/** The data that a project must have stored, by the contract's rules over all accepted requests. */
export interface Model {
  seq: number
  events: Map<string, StoredEvent>
  channels: Map<string, { id: string; name: string }>
  users: Map<string, { id: string; properties: unknown; aliases: Set<string> }>
  /** The owner of each alias. */
  owners: Map<string, string>
  /** The number of events of each erased user_id, at its last erasure. */
  erased: Map<string, number>
  /** The last event of the newest thread of each key, by channel and key. */
  threads: Map<string, Record<string, any>>
  /** The request of each Idempotency-Key, and the answer while it is still the first one. */
  keys: Map<string, { print: string; text: string | undefined }>
}

export interface StoredEvent {
  data: Record<string, any>
  ref: string | null
}

export interface EventFields {
  channelName: string
  title: string
  description: string | null
  icon: string | null
  tags: string[]
  metadata: unknown
  ref: string | null
  notify: boolean
  source: string
  /** Milliseconds since 1970; null for the moment of creation. */
  timestampMs: number | null
  level?: string
  url?: string
  thread?: string
  state?: string
}

export function createModel(): Model {
  return {
    seq: 0,
    events: new Map(),
    channels: new Map(),
    users: new Map(),
    owners: new Map(),
    erased: new Map(),
    threads: new Map(),
    keys: new Map(),
  }
}

/** Resolves a reference to a user_id. */
export function resolveUser({ users, owners }: Model, ref: string): string {
  return users.has(ref) ? ref : (owners.get(ref) ?? ref)
}

/** Returns the identity of a channel name: equal for all its spellings. */
function toSlug(name: string): string {
  return name.normalize('NFC').trim().toLowerCase().normalize('NFC').replace(/\s+/gu, ' ')
}

/** Adds an event; throws unless the answer's data is the sent event at the next seq of the log. */
export function addEvent(model: Model, fields: EventFields, data: Record<string, any>): void {
  const slug = toSlug(fields.channelName)
  const known = model.channels.get(slug)
  const { id, channelId, createdAt, timestamp, ...rest } = data
  const { ref, timestampMs, level: sentLevel, state: sentState, ...sent } = fields
  const threadKey = `${slug}\0${sent.thread}`
  const last = model.threads.get(threadKey)
  const isOver = ['resolved', 'succeeded', 'failed'].includes(last?.['state'])
  const thread = isOver && sentState !== 'resolved' ? undefined : last
  const level = sentLevel ?? thread?.['level'] ?? 'normal'
  const state = sentState ?? thread?.['state']
  expectSame('the event', rest, {
    ...sent,
    ...(level !== 'normal' && { level }),
    ...(state !== undefined && { state }),
    ...(sent.thread !== undefined && { threadSeq: thread?.['threadSeq'] ?? model.seq + 1 }),
    seq: model.seq + 1,
    channelName: known?.name ?? fields.channelName.normalize('NFC').trim(),
    userId: ref === null ? null : resolveUser(model, ref),
  })
  if (known && known.id !== channelId) throw new Error('Another channel of the same name')
  const moment = timestampMs === null ? createdAt : new Date(timestampMs).toISOString()
  if (!Number.isNaN(timestampMs)) expectSame('the timestamp', timestamp, moment)
  if (!/^evt_\w{26}$/.test(id) || model.events.has(id)) throw new Error(`A bad id: ${id}`)
  model.seq++
  if (sent.thread !== undefined) model.threads.set(threadKey, data)
  model.channels.set(slug, { id: channelId, name: rest['channelName'] })
  model.events.set(id, { data, ref })
}

/** Returns the event as readers must see it now. */
export function toCurrent(model: Model, { data, ref }: StoredEvent): Record<string, any> {
  return { ...data, userId: ref === null ? null : resolveUser(model, ref) }
}

/** Adds an identify; throws unless the answer reports the outcome that the contract requires. */
export function addUser(
  model: Model,
  sent: { userId: string; properties?: unknown; aliases?: string[] },
  data: Record<string, any>,
): void {
  const { users, owners } = model
  const { userId } = sent
  const user = users.get(userId) ?? { id: data['id'], properties: {}, aliases: new Set<string>() }
  users.set(userId, user)
  if (sent.properties !== undefined) user.properties = sent.properties
  const created: string[] = []
  const failed: string[] = []
  for (const alias of sent.aliases ?? []) {
    const isFree = !users.has(alias) && !owners.has(alias)
    ;(isFree ? created : failed).push(alias)
    if (!isFree) continue
    owners.set(alias, userId)
    user.aliases.add(alias)
  }
  expectSame(
    'the identity',
    [data['id'], data['userId'], data['properties']],
    [user.id, userId, user.properties],
  )
  expectSame('the new aliases', data['aliases'].created, created)
  const reported = data['aliases'].failed?.map(({ alias }: { alias: string }) => alias)
  expectSame('the failed aliases', reported, failed.length > 0 ? failed : undefined)
}

/**
 * Erases a user; returns how many events named them, or undefined for an unknown name. A user who
 * is already erased has the number of then.
 */
export function eraseUser(model: Model, name: string): number | undefined {
  const { users, owners, events, keys, erased } = model
  if (!users.has(name) && owners.has(name)) return erased.get(name)
  let forgotten = 0
  for (const event of events.values()) {
    if (event.ref === null || resolveUser(model, event.ref) !== name) continue
    event.ref = null
    forgotten++
  }
  const isKnown = users.delete(name)
  for (const [alias, owner] of owners) if (owner === name) owners.delete(alias)
  // Stored answers may have contained the name.
  for (const known of keys.values()) known.text = undefined
  if (isKnown || forgotten > 0) erased.set(name, forgotten)
  return erased.get(name)
}

/** Returns the seqs of the events that a query must list, in order and ignoring its limit. */
export function listSeqs(model: Model, query: Record<string, string>): number[] {
  const { channel, tag, userId, source, level, state, thread, threadSeq, from, to, after } = query
  // Any other list has every event of a thread.
  const isLatestOnly =
    query['threads'] !== 'all' &&
    [tag, userId, source, query['text'], threadSeq, from, to, after].every(one => one === undefined)
  const latest = new Map<number, number>()
  for (const { data } of model.events.values()) latest.set(data['threadSeq'], data['seq'])
  const isInstant = (text: string | undefined) => (text === undefined ? undefined : toMs(text))
  const [fromMs, toMs_] = [isInstant(from), isInstant(to)]
  const seqs = [...model.events.values()]
    .map(event => toCurrent(model, event))
    .filter(
      event =>
        (channel === undefined ||
          event['channelId'] === channel ||
          event['channelId'] === model.channels.get(toSlug(channel))?.id) &&
        (tag === undefined || event['tags'].includes(tag)) &&
        (userId === undefined || event['userId'] === resolveUser(model, userId)) &&
        (source === undefined || event['source'] === source) &&
        (level === undefined || (event['level'] ?? 'normal') === level) &&
        (state === undefined || event['state'] === state) &&
        (thread === undefined || event['thread'] === thread) &&
        (threadSeq === undefined || event['threadSeq'] === Number(threadSeq)) &&
        (!isLatestOnly || !event['threadSeq'] || latest.get(event['threadSeq']) === event['seq']) &&
        (fromMs === undefined || Date.parse(event['timestamp']) >= fromMs) &&
        (toMs_ === undefined || Date.parse(event['timestamp']) <= toMs_) &&
        (after === undefined || event['seq'] > Number(after)),
    )
    .map(event => event['seq'] as number)
  return after === undefined ? seqs.reverse() : seqs
}

/**
 * Parses a number, or a date and time of RFC 3339, to milliseconds since 1970; NaN for other
 * accepted spellings.
 */
export function toMs(moment: string | number | Raw): number {
  if (typeof moment === 'string') return fromText(moment)
  const unix = toNumber(moment)
  return Math.round(unix < 1e11 ? unix * 1000 : unix)
}

function fromText(text: string): number {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:[0-5]\d)(?:\.(\d+))?(Z|([+-])(\d\d):(\d\d))$/i.exec(
    text,
  )
  if (!match) return NaN
  const [, date, time, fraction = '', , sign, hours = 0, minutes = 0] = match
  const offset = (Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -1 : 1)
  return (
    Date.parse(`${date}T${time}Z`) + Number(fraction.slice(0, 3).padEnd(3, '0')) - offset * 60_000
  )
}

export function expectSame(what: string, actual: unknown, expected: unknown): void {
  const [a, b] = [canonical(actual), canonical(expected)]
  if (a === b) return
  let at = 0
  while (a[at] === b[at]) at++
  const cut = (text: string) => text.slice(Math.max(0, at - 200), at + 200)
  throw new Error(`${what} differ:\n  actual   ${cut(a)}\n  expected ${cut(b)}`)
}
