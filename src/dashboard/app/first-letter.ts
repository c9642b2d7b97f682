/** The first letter of a text as a reader sees it, in upper case. */
export function toFirstLetter(text: string): string {
  // Creating a segmenter delays the first paint, and most names begin with two plain letters.
  if (/^[a-z]{2}/i.test(text)) return text.charAt(0).toUpperCase()
  const [first] = new Intl.Segmenter().segment(text)
  return first?.segment.toUpperCase() ?? '·'
}
