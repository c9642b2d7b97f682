import { Kind, Type } from '@sinclair/typebox'
import { nameToEmoji } from 'gemoji'
import { checkCharacters, defineRule, invalidType, issue, NO_ISSUES } from '../../http/rules.ts'

// Emoji of the platform's tables, with all their selectors (U+FE0F).
const KNOWN = /^\p{RGI_Emoji}$/v
// Newer emoji. One grapheme is not enough: stacked marks and endless joiner sequences are single
// graphemes.
const PICTOGRAPH =
  /^\p{Extended_Pictographic}\uFE0F?\p{Emoji_Modifier}?(?:\u200D\p{Extended_Pictographic}\uFE0F?\p{Emoji_Modifier}?){0,3}$/v
const SELECTORS = /[\uFE0E\uFE0F]/g
// Characters that are text unless U+FE0F or a skin tone follows.
const TEXT_STYLE = /[\p{Emoji}--\p{Emoji_Presentation}](?!\p{Emoji_Modifier})/gv
// Slack writes a skin tone as a second shortcode, from :skin-tone-2: to :skin-tone-6:.
const SHORTCODE = /^:([\w+-]+):(?::skin-tone-([2-6]):)?/
const SKIN_TONES = ['', '', '🏻', '🏼', '🏽', '🏾', '🏿']
// The longest shortcode has 42 characters, a skin tone 13, and the longest emoji ten code points.
const MAX_UNITS = 57

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

const ICON = defineRule('Icon', value => {
  if (typeof value !== 'string') return invalidType('string', value)
  const bad = checkCharacters(value)
  if (bad.length > 0) return bad
  return value.trim() === '' || toEmoji(value)
    ? NO_ISSUES
    : issue('invalid_format', 'Must be a single emoji, or its shortcode, like :rocket:')
})

/** An emoji, its shortcode, or blank text. `toEmoji` returns what is stored. */
export const Icon = Type.Unsafe<string>({
  [Kind]: ICON,
  type: 'string',
  format: 'emoji',
  description:
    "A single emoji, or GitHub's shortcode of one, like `:rocket:`. Blank text counts as absent.",
  examples: ['💰'],
})

/**
 * Returns the emoji that `text` names, with all selectors that its spelling requires (❤ becomes
 * ❤️). Undefined if `text` is neither an emoji nor a known shortcode, such as blank text.
 */
export function toEmoji(text: string): string | undefined {
  const trimmed = text.trim()
  if (trimmed.length === 0 || trimmed.length > MAX_UNITS) return undefined
  if (KNOWN.test(trimmed)) return trimmed
  const split = splitShortcode(trimmed)
  if (split) return split.rest === '' ? split.icon : undefined
  const bare = trimmed.replaceAll(SELECTORS, '')
  const qualified = bare.replaceAll(TEXT_STYLE, '$&\uFE0F')
  return [qualified, bare].find(one => KNOWN.test(one) || PICTOGRAPH.test(one))
}

/** A text without the emoji at its start. */
export interface TextParts {
  icon?: string
  rest: string
}

/** Splits `text` into the emoji or shortcode at its start, if any, and the rest. */
export function splitEmoji(text: string): TextParts {
  const split = splitShortcode(text)
  if (split) return split
  const [first] = graphemes.segment(text.slice(0, MAX_UNITS))
  const icon = first && toEmoji(first.segment)
  return icon === undefined ? { rest: text } : { icon, rest: text.slice(first?.segment.length) }
}

function splitShortcode(text: string): { icon: string; rest: string } | undefined {
  const [code, name = '', tone] = SHORTCODE.exec(text) ?? []
  if (code === undefined || !Object.hasOwn(nameToEmoji, name)) return undefined
  // The table lacks the selectors of a few emoji.
  const plain = toEmoji(nameToEmoji[name] ?? '')
  const toned = tone && plain?.replace(/^(.)\uFE0F?/u, `$1${SKIN_TONES[Number(tone)]}`)
  const icon = toned && KNOWN.test(toned) ? toned : plain
  return icon === undefined ? undefined : { icon, rest: text.slice(code.length) }
}
