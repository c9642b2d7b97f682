import { Kind, Type } from '@sinclair/typebox'
import {
  checkCharacters,
  checkLength,
  checkVisible,
  defineRule,
  invalidType,
  issue,
  NO_ISSUES,
  NOT_BLANK,
} from '../../http/rules.ts'

// Two names that look the same must be the same. So invisible characters, and those that change the
// direction of text, are not allowed. Joiners and selectors are allowed inside an emoji.
/** Every name matches, once it is trimmed and composed. Needs the flag `u`. */
export const NAME_PATTERN =
  '^(?=[^]*\\S)(?:[^\\p{Cc}\\p{Default_Ignorable_Code_Point}\\p{Bidi_Control}\\p{Zl}\\p{Zp}]' +
  '|(?<=\\p{Extended_Pictographic})\\uFE0F|(?<=[0-9#*])\\uFE0F(?=\\u20E3)' +
  '|(?<=[\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\uFE0F])\\u200D(?=\\p{Extended_Pictographic})' +
  '|(?<=\\u{1F3F4}[\\u{E0020}-\\u{E007F}]*)[\\u{E0020}-\\u{E007F}])*$'
const VISIBLE = new RegExp(NAME_PATTERN, 'u')
const PLAIN = /^[\x20-\x7e]*$/
// A composed character consists of at most four others, of two UTF-16 units each.
const MAX_UNITS = 8 * 255

const CHANNEL_NAME = defineRule('ChannelName', (value, schema) => {
  if (typeof value !== 'string') return invalidType('string', value)
  const bad = checkCharacters(value)
  if (bad.length > 0) return bad
  // Composition (NFC) takes quadratic time: 40,000 combining marks take half a minute.
  const trimmed = value.trim()
  if (trimmed.length > MAX_UNITS) return checkLength(trimmed, { ...schema, minLength: 0 })
  const name = toDisplayName(trimmed)
  const length = checkLength(name, schema)
  if (length.length > 0) return length
  if (PLAIN.test(name)) return NO_ISSUES
  if (VISIBLE.test(name)) return checkVisible(name)
  return issue('invalid_format', 'Must not contain control, bidirectional or zero-width characters')
})

/** The name of a channel in a request. */
export const ChannelName = Type.Unsafe<string>({
  [Kind]: CHANNEL_NAME,
  type: 'string',
  minLength: 1,
  maxLength: 255,
  pattern: NOT_BLANK,
  description:
    'Name of the channel, which is created if it does not exist. Names that differ only in case or in runs of white ' +
    'space are equal. White space around a name is removed. The length is that of the composed form (NFC). Control, ' +
    'bidirectional and zero-width characters are rejected, except inside an emoji.',
  examples: ['payments'],
})

/** Returns the name to display: composed (NFC) and trimmed. */
export function toDisplayName(name: string): string {
  return PLAIN.test(name) ? name.trim() : name.normalize('NFC').trim()
}

/**
 * Returns the text that identifies a channel. `Big  payments` and `big payments` are one channel;
 * `big-payments` is another.
 */
export function toSlug(name: string): string {
  // A few Greek letters compose only in lower case.
  return toDisplayName(toDisplayName(name).toLowerCase()).replace(/\s+/gu, ' ')
}
