import { Kind, Type } from '@sinclair/typebox'
import {
  checkCharacters,
  checkLength,
  defineRule,
  invalidType,
  issue,
  NO_ISSUES,
} from '../http/rules.ts'

// Letters, marks, symbols, emoji and spaces; nothing that is invisible or turns the direction of text, because two
// names that look alike must be alike. What joins or styles an emoji is fine inside one.
const PATTERN =
  '^(?=[^]*\\S)(?:[^\\p{Cc}\\p{Default_Ignorable_Code_Point}\\p{Bidi_Control}\\p{Zl}\\p{Zp}]' +
  '|(?<=\\p{Extended_Pictographic})\\uFE0F|(?<=[0-9#*])\\uFE0F(?=\\u20E3)' +
  '|(?<=[\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\uFE0F])\\u200D(?=\\p{Extended_Pictographic})' +
  '|(?<=\\u{1F3F4}[\\u{E0020}-\\u{E007F}]*)[\\u{E0020}-\\u{E007F}])*$'
const VISIBLE = new RegExp(PATTERN, 'u')
const PLAIN = /^[\x20-\x7e]*$/
// Of the longest name, in whatever spelling: nothing composes out of more than four, and each may be two units.
const MAX_UNITS = 8 * 255

const CHANNEL_NAME = defineRule('ChannelName', (value, schema) => {
  if (typeof value !== 'string') return invalidType('string', value)
  const bad = checkCharacters(value)
  if (bad.length > 0) return bad
  // To compose marks takes the square of their number: 40,000 of them half a minute.
  const trimmed = value.trim()
  if (trimmed.length > MAX_UNITS) return checkLength(trimmed, { ...schema, minLength: 0 })
  const name = toDisplayName(trimmed)
  const length = checkLength(name, schema)
  if (length.length > 0) return length
  if (PLAIN.test(name) || VISIBLE.test(name)) return NO_ISSUES
  return issue('invalid_format', 'Must not contain control, bidirectional or zero-width characters')
})

/** The name of a channel as somebody writes it. */
export const ChannelName = Type.Unsafe<string>({
  [Kind]: CHANNEL_NAME,
  type: 'string',
  minLength: 1,
  maxLength: 255,
  pattern: PATTERN,
  description:
    'Name of the channel, created if absent. Case, and runs of spaces, `_` and `-`, make no difference between names. Its length is that of its composed form (NFC).',
  examples: ['payments'],
})

/** The spelling that people see: composed (NFC) and trimmed. */
export function toDisplayName(name: string): string {
  return PLAIN.test(name) ? name.trim() : name.normalize('NFC').trim()
}

/** What makes two names one channel: `Big  payments`, `big_payments` and `big-payments` are the same. */
export function toSlug(name: string): string {
  return toDisplayName(name)
    .toLowerCase()
    .replace(/[\s_-]+/gu, '-')
}
