/** The first letter of a text as a reader sees it, in upper case. */
export function toFirstLetter(text: string): string {
  // Creating a segmenter delays the first paint. In ASCII, each character stands alone.
  if (/^[ -~]([ -~]|$)/.test(text)) return text.charAt(0).toUpperCase()
  const [first] = new Intl.Segmenter().segment(text)
  return first?.segment.toUpperCase() ?? '·'
}
