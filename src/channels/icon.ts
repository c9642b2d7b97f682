import { Kind, Type } from '@sinclair/typebox'
import { checkCharacters, defineRule, invalidType, issue, NO_ISSUES } from '../http/rules.ts'

// One grapheme is not enough: `1`, stacked marks and endless joiner sequences are single graphemes.
const EMOJI = /^\p{RGI_Emoji}$/v
// The longest emoji has ten code points.
const MAX_EMOJI_UNITS = 40

const ICON = defineRule('Icon', value => {
  if (typeof value !== 'string') return invalidType('string', value)
  const bad = checkCharacters(value)
  if (bad.length > 0) return bad
  return toEmoji(value) ? NO_ISSUES : issue('invalid_format', 'Must be a single emoji')
})

/** A single emoji. */
export const Icon = Type.Unsafe<string>({
  [Kind]: ICON,
  type: 'string',
  format: 'emoji',
  description: 'A single emoji.',
  examples: ['💰'],
})

/**
 * Returns `text` as an emoji, or undefined. A symbol that needs emoji style (❤, ©) gets that style.
 */
export function toEmoji(text: string): string | undefined {
  if (text.length === 0 || text.length > MAX_EMOJI_UNITS) return undefined
  if (EMOJI.test(text)) return text
  const styled = `${text}\uFE0F`
  return EMOJI.test(styled) ? styled : undefined
}

/** Splits `text` into the emoji at its start, if any, and the rest. */
export function splitEmoji(text: string): { icon?: string; rest: string } {
  const first = /^(\p{RGI_Emoji})(?![\uFE0F\u200D])/v.exec(text)?.[1]
  return first === undefined ? { rest: text } : { icon: first, rest: text.slice(first.length) }
}
