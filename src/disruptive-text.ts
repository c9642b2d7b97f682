// Characters that move a terminal's cursor, break lines, or change the direction of text.
const DISRUPTIVE = /[\p{Cc}\p{Zl}\p{Zp}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu

// White space, what Unicode draws nothing for, and the blank pattern of Braille.
const INVISIBLE = /^[\s\p{Cc}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffb]*$/u

/** Returns whether a reader sees nothing of `text`. */
export function isInvisible(text: string): boolean {
  return INVISIBLE.test(text)
}

/** Returns whether `text` contains control characters, or some that change its direction. */
export function isDisruptive(text: string): boolean {
  return text.search(DISRUPTIVE) >= 0
}

/** Returns `text` with `replacement` in the place of each such character. */
export function replaceDisruptive(text: string, replacement: string): string {
  return text.replace(DISRUPTIVE, replacement)
}
