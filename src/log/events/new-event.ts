import { splitEmoji, toEmoji, type TextParts } from '../channels/icon.ts'
import type { Level } from '../channels/level.ts'
import { toDisplayName, toSlug } from '../channels/name.ts'
import { removeEscapeSequences } from '../../base/display-text.ts'
import { isRawNumber, toNumberText } from '../../http/exact-json.ts'
import { countCodePoints } from '../../http/rules.ts'
import { newId, type Id } from '../../base/ids.ts'
import { parseTimestamp } from './timestamp.ts'
import type { State } from './state.ts'
import type { Event, EventInput, LogInput } from './schema.ts'

const MAX_TAGS = 20
const MAX_TAG_LENGTH = 50

/** The fields that the append assigns, and the time, which is optional before. */
type AssignedField = 'id' | 'seq' | 'channelId' | 'userId' | 'timestamp' | 'createdAt' | 'threadSeq'
/** The fields that a response has only with a value. */
export type OptionalField = 'level' | 'url' | 'thread' | 'state' | 'threadSeq'

/** A validated event on its way into the log. */
export interface NewEvent extends Omit<Event, AssignedField | 'metadata' | OptionalField> {
  id: Id
  channelSlug: string
  metadataJson: string
  userRef: string | null
  /** Milliseconds since 1970. Null means the time of creation. */
  occurredAtMs: number | null
  /** Null takes the level of the thread or the channel. */
  level: Level | null
  url: string | null
  thread: string | null
  /** Null keeps the state of the thread. */
  state: State | null
}

/** Fills in defaults and normalizes the channel name, tags and icon. */
export function toNewEvent(input: EventInput): NewEvent {
  return {
    id: newId('evt'),
    channelName: toDisplayName(input.channelName),
    channelSlug: toSlug(input.channelName),
    title: input.title.trim(),
    description: input.description ?? null,
    icon: (input.icon === undefined ? undefined : toEmoji(input.icon)) ?? null,
    tags: input.tags ? [...new Set(input.tags)] : [],
    metadataJson: input.metadata ? JSON.stringify(input.metadata) : '{}',
    userRef: input.userId ?? input.user_id ?? null,
    source: input.source ?? 'api',
    notify: input.notify ?? true,
    occurredAtMs: input.timestamp === undefined ? null : (parseTimestamp(input.timestamp) ?? null),
    level: input.level ?? null,
    url: input.url ?? null,
    thread: input.thread ?? null,
    state: input.state ?? null,
  }
}

/**
 * Converts LogSnag's body. Its `tags` object becomes the metadata. Each pair also becomes a tag
 * `key:value`, if it is not an object and fits the limits of tags. LogSnag knows no levels, so the
 * event is normal in every channel.
 */
export function fromLogSnag(input: LogInput): EventInput {
  const pairs = Object.entries(input.tags ?? {})
  return {
    channelName: input.channel,
    title: input.event,
    ...(input.description !== undefined && { description: input.description }),
    ...(input.icon !== undefined && { icon: input.icon }),
    ...(input.tags && { metadata: input.tags }),
    tags: takeTags(
      pairs
        .filter(([, value]) => typeof value !== 'object' || isRawNumber(value))
        .map(([key, value]) => `${key}:${isRawNumber(value) ? toNumberText(value) : value}`),
    ),
    userId: input.user_id ?? null,
    notify: input.notify ?? false,
    level: 'normal',
    ...(input.timestamp !== undefined && { timestamp: input.timestamp }),
  }
}

/** Returns the tags that fit the limits of tags. */
export function takeTags(tags: readonly string[]): string[] {
  return tags.filter(tag => countCodePoints(tag) <= MAX_TAG_LENGTH).slice(0, MAX_TAGS)
}

/**
 * Converts plain text. Escape sequences of a terminal are removed. An emoji or shortcode at the
 * start is the icon if other text follows. The rest of the first line is the title, and the other
 * lines are the description.
 */
export function fromPlainText(text: string): Pick<EventInput, 'title'> & Partial<EventInput> {
  const plain = removeEscapeSequences(text)
  const split = splitEmoji(plain.trimStart())
  const { icon, rest }: TextParts = split.rest.trim() === '' ? { rest: plain } : split
  const [first = '', ...lines] = rest.trimStart().split(/\r?\n/)
  const description = lines.join('\n').trim()
  return { title: first.trim(), ...(icon && { icon }), ...(description && { description }) }
}
