/** Chromium fills in forms with events that have no key. */
type KeyPress = Pick<KeyboardEvent, 'code' | 'shiftKey'> & { key?: string }

/**
 * Returns the key of a shortcut. On a layout without Latin letters, such as Russian, it is the
 * letter that a US keyboard has there. Caps Lock makes no difference.
 */
export function toShortcutKey({ key, code, shiftKey }: KeyPress): string {
  if (!key || key.length > 1) return key ?? ''
  // Latin letters end at U+024F. The user sees those, wherever the layout has them.
  const letter = key > '\u024f' ? code.replace(/^Key(?=[A-Z]$)/, '') : key
  return shiftKey || letter.length > 1 ? key : letter.toLowerCase()
}

/** Returns whether an input method takes the key, as Enter to choose Japanese characters. */
export function isComposing(event: KeyboardEvent): boolean {
  // Safari ends the composition before this event, and gives it the code 229.
  return event.isComposing || event.keyCode === 229
}
