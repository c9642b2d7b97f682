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
