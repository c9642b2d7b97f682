/**
 * Returns the start of `text`, with at most `units` UTF-16 units. It splits no character that a
 * reader sees, unless that character alone is longer than half of `units`.
 */
export function takeStart(text: string, units: number): string {
  if (text.length <= units) return text
  // The text after a character does not change where the character starts.
  const nearby = new Intl.Segmenter().segment(text.slice(0, units + 2))
  const start = nearby.containing(units)?.index ?? 0
  return text.slice(0, start < units / 2 ? units : start).replace(/[\ud800-\udbff]$/, '')
}

// Characters that move a terminal's cursor, break lines, or change the direction of text.
const DISRUPTIVE = /[\p{Cc}\p{Zl}\p{Zp}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu

// White space, what Unicode draws nothing for, and the blank pattern of Braille.
const INVISIBLE = /^[\s\p{Cc}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffb]*$/u

// Each quantifier excludes all that may follow it, and each sequence may lack its end. So a match
// never goes back, and the work grows with the length alone.
const ESCAPE_SEQUENCES = new RegExp(
  [
    // CSI, such as a colour: parameters, intermediate characters, and a final one.
    String.raw`(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?`,
    // OSC, DCS, SOS, PM and APC, such as a link. Without its end, one ends with the line.
    String.raw`\x1b[\]PX^_][^\n\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?`,
    // The others, such as that of a character set.
    String.raw`\x1b[ -/]*[0-~]?`,
  ].join('|'),
  'g',
)

/** Returns whether a reader sees nothing of `text`. */
export function isInvisible(text: string): boolean {
  return INVISIBLE.test(text)
}

/** Returns `text` without characters that reorder it; empty if a reader sees none of it. */
export function toVisible(text = ''): string {
  return isInvisible(text) ? '' : text.replace(/[\u202A-\u202E\u2066-\u2069]/g, '')
}

/** Returns whether `text` contains control characters, or some that change its direction. */
export function isDisruptive(text: string): boolean {
  return text.search(DISRUPTIVE) >= 0
}

/** Returns `text` with `replacement` in the place of each such character. */
export function replaceDisruptive(text: string, replacement: string): string {
  return text.replace(DISRUPTIVE, replacement)
}

/** Returns `text` without the escape sequences of a terminal (ECMA-48), in linear time. */
export function removeEscapeSequences(text: string): string {
  return text.replace(ESCAPE_SEQUENCES, '')
}
