import { isRawNumber } from '../http/raw-number.ts'
import { countPoints } from '../http/rules.ts'
import type { EventInput, LogInput } from './schema.ts'
import { splitEmoji } from '../channels/icon.ts'

const MAX_TAGS = 20
const MAX_TAG_LENGTH = 50

/** An event from LogSnag's body; its pairs of tags become metadata, and tags `key:value` where they fit. */
export function fromLog(input: LogInput): EventInput {
  const pairs = Object.entries(input.tags ?? {})
  return {
    channelName: input.channel,
    title: input.event,
    ...(input.description !== undefined && { description: input.description }),
    ...(input.icon !== undefined && { icon: input.icon }),
    ...(input.tags && { metadata: input.tags }),
    tags: pairs
      .filter(([, value]) => typeof value !== 'object' || isRawNumber(value))
      .map(([key, value]) => `${key}:${isRawNumber(value) ? JSON.stringify(value) : value}`)
      .filter(tag => countPoints(tag) <= MAX_TAG_LENGTH)
      .slice(0, MAX_TAGS),
    userId: input.user_id ?? null,
    notify: input.notify ?? false,
    ...(input.timestamp !== undefined && {
      timestamp: new Date(input.timestamp * 1000).toISOString(),
    }),
  }
}

/** The fields of an event from plain text: a leading emoji, the first line, the rest. */
export function fromText(text: string): Pick<EventInput, 'title'> & Partial<EventInput> {
  const { icon, rest } = splitEmoji(text.trimStart())
  const [first = '', ...lines] = rest.trimStart().split(/\r?\n/)
  const description = lines.join('\n').trim()
  return { title: first.trim(), ...(icon && { icon }), ...(description && { description }) }
}
